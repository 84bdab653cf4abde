#include "ingest/kept_arguments.h"

#include <array>

#include "base/json_reader.h"
#include "base/text.h"
#include "ingest/json_scan.h"
#include "ingest/trace_event.h"

namespace hotlap {
namespace {

// PyTorch's names, old and new.
constexpr std::array<std::string_view, 16> kStandard{"Input Dims",
                                                     "Input dims",
                                                     "Input type",
                                                     "Concrete Inputs",
                                                     "Call stack",
                                                     "Collective name",
                                                     "In msg nelems",
                                                     "Out msg nelems",
                                                     "Group size",
                                                     "dtype",
                                                     "Process Group Name",
                                                     "Process Group Description",
                                                     "Process Group Ranks",
                                                     "Seq",
                                                     "Src Rank",
                                                     "Dst Rank"};

}  // namespace

std::span<const std::string_view> standard_arguments() { return kStandard; }

const KeptArguments& KeptArguments::standard() {
  static const KeptArguments kept = of("");
  return kept;
}

KeptArguments KeptArguments::of(std::string_view words) {
  KeptArguments kept;
  if (words == "none") return kept;
  kept.keeps_all_ = words == "all";
  for (const std::string_view name : kStandard) kept.add(name);
  for (const std::string_view word : split(words, ',')) {
    if (const std::string_view name = trim(word); !name.empty()) kept.add(name);
  }
  return kept;
}

void KeptArguments::add(std::string_view name) {
  names_.emplace_back(name);
  lengths_ |= std::uint64_t{1} << (name.size() & 63U);
}

std::string KeptArguments::as_object(std::string_view members_untrusted) const {
  std::string out = "{";
  const char* at = members_untrusted.data();
  const char* const end = at + members_untrusted.size();
  while (true) {
    while (at != end && (json::is_space(*at) || *at == ',')) ++at;
    if (at == end) break;
    const char* const key_begin = at;
    if (*at != '"') return {};
    ++at;
    json::Text key;
    if (json::scan_text(at, end, key) != json::Scan::kOk) return {};
    at = json::skip_space(at, end);
    if (at == end || *at != ':') return {};
    at = json::skip_space(at + 1, end);
    const char* const key_end = key.raw.data() + key.raw.size() + 1;
    const char* const value = at;
    // A token that ends the text has no end that the scanner would see.
    if (at != end && *at != '"' && *at != '{' && *at != '[') {
      while (at != end && !json::ends_token(*at)) ++at;
    } else if (json::skip_value(at, end) != json::Scan::kOk) {
      return {};
    }
    if (kept_number(key.raw) != nullptr || !holds(key.raw)) continue;
    if (out.size() > 1) out += ',';
    out.append(key_begin, key_end);
    out += ':';
    out.append(value, at);
  }
  if (out.size() == 1) return {};
  out += '}';
  return JsonDocument::parse(out).ok() ? out : std::string();
}

}  // namespace hotlap
