#include "ingest/trace_details.h"

#include <string>

namespace hotlap {

std::uint32_t TraceDetails::id_of(std::string_view members) {
  const TextTable::Place raw = raw_.place_of(members.substr(0, kBytesMax));
  if (raw.index == TextTable::kNone) return id_of_new(members);
  if (raw.is_new) raw_ids_.push_back(id_of_new(members));
  return raw_ids_[raw.index];
}

std::uint32_t TraceDetails::id_of_new(std::string_view members) {
  if (members.size() > kBytesMax) return kRefused;
  const std::string text = out_.kept_arguments().as_object(members);
  if (text.empty()) return kRefused;
  const TextTable::Place place = texts_.place_of(text);
  if (place.index == TextTable::kNone) return kRefused;
  if (place.is_new) ids_.push_back(out_.name(text));
  return ids_[place.index];
}

}  // namespace hotlap
