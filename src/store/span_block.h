#pragma once
// Spans, column by column: starts, durations, kinds, names, processes, threads, steps, values. Layout:
//
//   varint n, then nine columns, each: varint bytes, bytes (zigzag varints of differences to the span before; durations
//   and values as they are plus one, so that "missing" is 0)
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "model/span.h"
#include "store/format.h"

namespace hotlap {

void encode_spans(std::span<const Span> spans, Bytes& out);
// False when the bytes are not such a block; at most kSpansPerBlockMax.
bool decode_spans(ByteView bytes_untrusted, std::vector<Span>& out);

// What a block's row says, so that it can be skipped unread.
struct SpanSummary {
  std::int64_t from_ns = INT64_MAX;  // first start
  std::int64_t to_ns = INT64_MIN;    // last start
  std::int64_t end_ns = INT64_MIN;   // latest end
  std::uint64_t kinds = 0;           // bit min(kind, 62) of each
  std::uint64_t names = 0;           // bit id mod 63 of each
};
SpanSummary summarize(std::span<const Span> spans);
constexpr std::uint64_t kind_bit(SpanKind kind) {
  const auto number = static_cast<std::uint16_t>(kind);
  return std::uint64_t{1} << (number < 62 ? number : 62U);
}
constexpr std::uint64_t name_bit(std::uint32_t name) { return std::uint64_t{1} << (name % 63U); }

}  // namespace hotlap
