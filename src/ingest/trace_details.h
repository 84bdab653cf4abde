#pragma once
// The kept arguments of a trace's events, as texts in the sink's table of names. Bounded: kTextsMax different ones.
// Confined to the importing thread.
#include <cstdint>
#include <string_view>
#include <vector>

#include "ingest/importer.h"
#include "ingest/text_table.h"

namespace hotlap {

class TraceDetails {
 public:
  static constexpr std::size_t kRawTextsMax = 65'536;
  static constexpr std::size_t kTextsMax = 200'000;
  static constexpr std::size_t kBytesMax = std::size_t{32} << 10;  // of one
  static constexpr std::uint32_t kRefused = UINT32_MAX;

  // `out` outlives this.
  explicit TraceDetails(ImportSink& out) : out_(out) {}

  // `members`: TraceEvent::details, not empty. The id at the sink; kRefused: too long, too many, or none is kept.
  std::uint32_t id_of(std::string_view members);

 private:
  std::uint32_t id_of_new(std::string_view members);

  ImportSink& out_;
  // Details as they stand in the text, and as they are kept: with others between them many of the first are one.
  TextTable raw_{kRawTextsMax, std::size_t{24} << 20};
  std::vector<std::uint32_t> raw_ids_;  // at the sink
  TextTable texts_{kTextsMax, std::size_t{24} << 20};
  std::vector<std::uint32_t> ids_;
};

}  // namespace hotlap
