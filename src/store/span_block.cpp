#include "store/span_block.h"

#include <algorithm>

namespace hotlap {
namespace {

// In the number of spans: a column of details follows. Without it a block is as it was before there were any.
constexpr std::uint64_t kHasDetails = std::uint64_t{1} << 32U;

// Differences wrap: every 64-bit value comes back, whatever a file holds.
std::uint64_t difference(std::uint64_t now, std::uint64_t before) {
  return zigzag(static_cast<std::int64_t>(now - before));
}

// `value` at `to`, which has room; behind it.
std::byte* write_varint(std::byte* to, std::uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<std::byte>(value);
  return to;
}

// Columns are the templates' arguments so that each has a loop of its own: these run once for every event of a trace.
template <auto kGet, bool kIsDifference>
void put_column(std::span<const Span> spans, Bytes& scratch, Bytes& out) {
  constexpr std::size_t kVarintMax = 10;
  if (scratch.size() < spans.size() * kVarintMax) scratch.resize(spans.size() * kVarintMax);
  std::byte* to = scratch.data();
  std::uint64_t before = 0;
  for (const Span& span : spans) {
    const std::uint64_t now = kGet(span);
    to = write_varint(to, kIsDifference ? difference(now, before) : now);
    before = now;
  }
  const auto size = static_cast<std::size_t>(to - scratch.data());
  put_varint(out, size);
  put_bytes(out, ByteView(scratch).first(size));
}

template <auto kSet, bool kIsDifference>
bool take_column(ByteReader& reader, std::vector<Span>& spans) {
  ByteReader column(reader.bytes(reader.varint()));
  if (!reader.ok()) return false;
  std::uint64_t now = 0;
  for (Span& span : spans) {
    const std::uint64_t read = column.varint();
    now = kIsDifference ? now + static_cast<std::uint64_t>(unzigzag(read)) : read;
    kSet(span, now);
  }
  return column.ok() && column.remaining() == 0;
}

constexpr auto kSigned = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
// "Missing" is -1 and is stored as 0.
constexpr auto kMissable = [](std::int64_t value) { return static_cast<std::uint64_t>(value) + 1; };
constexpr auto kUnmissable = [](std::uint64_t value) { return static_cast<std::int64_t>(value - 1); };

}  // namespace

void encode_spans(std::span<const Span> spans, Bytes& out) {
  const bool has_details = std::ranges::any_of(spans, [](const Span& s) { return s.detail != 0; });
  put_varint(out, spans.size() | (has_details ? kHasDetails : 0));
  Bytes scratch;
  put_column<[](const Span& s) { return kSigned(s.start_ns); }, true>(spans, scratch, out);
  put_column<[](const Span& s) { return kMissable(s.duration_ns); }, false>(spans, scratch, out);
  put_column<[](const Span& s) { return static_cast<std::uint64_t>(s.kind); }, true>(spans, scratch, out);
  put_column<[](const Span& s) { return std::uint64_t{s.name}; }, true>(spans, scratch, out);
  put_column<[](const Span& s) { return std::uint64_t{s.process}; }, true>(spans, scratch, out);
  put_column<[](const Span& s) { return std::uint64_t{s.thread}; }, true>(spans, scratch, out);
  put_column<[](const Span& s) { return kSigned(s.step); }, true>(spans, scratch, out);
  put_column<[](const Span& s) { return kMissable(s.value_a); }, false>(spans, scratch, out);
  put_column<[](const Span& s) { return kMissable(s.value_b); }, false>(spans, scratch, out);
  if (has_details) put_column<[](const Span& s) { return std::uint64_t{s.detail}; }, true>(spans, scratch, out);
}

bool decode_spans(ByteView bytes_untrusted, std::vector<Span>& out) {
  out.clear();
  ByteReader reader(bytes_untrusted);
  const std::uint64_t head = reader.varint();
  const bool has_details = (head & kHasDetails) != 0;
  const std::uint64_t count = head & ~kHasDetails;
  if (!reader.ok() || count > kSpansPerBlockMax || count > reader.remaining()) return false;
  out.resize(count);
  using Number = std::uint64_t;
  return take_column<[](Span& s, Number n) { s.start_ns = static_cast<std::int64_t>(n); }, true>(reader, out) &&
         take_column<[](Span& s, Number n) { s.duration_ns = kUnmissable(n); }, false>(reader, out) &&
         take_column<[](Span& s, Number n) { s.kind = static_cast<SpanKind>(n); }, true>(reader, out) &&
         take_column<[](Span& s, Number n) { s.name = static_cast<std::uint32_t>(n); }, true>(reader, out) &&
         take_column<[](Span& s, Number n) { s.process = static_cast<std::uint32_t>(n); }, true>(reader, out) &&
         take_column<[](Span& s, Number n) { s.thread = static_cast<std::uint32_t>(n); }, true>(reader, out) &&
         take_column<[](Span& s, Number n) { s.step = static_cast<std::int64_t>(n); }, true>(reader, out) &&
         take_column<[](Span& s, Number n) { s.value_a = kUnmissable(n); }, false>(reader, out) &&
         take_column<[](Span& s, Number n) { s.value_b = kUnmissable(n); }, false>(reader, out) &&
         (!has_details ||
          take_column<[](Span& s, Number n) { s.detail = static_cast<std::uint32_t>(n); }, true>(reader, out)) &&
         reader.remaining() == 0;
}

SpanSummary summarize(std::span<const Span> spans) {
  SpanSummary summary;
  for (const Span& span : spans) {
    summary.from_ns = std::min(summary.from_ns, span.start_ns);
    summary.to_ns = std::max(summary.to_ns, span.start_ns);
    std::int64_t end = span.start_ns;
    if (span.duration_ns > 0 && __builtin_add_overflow(span.start_ns, span.duration_ns, &end)) end = INT64_MAX;
    summary.end_ns = std::max(summary.end_ns, end);
    summary.kinds |= kind_bit(span.kind);
    summary.names |= name_bit(span.name);
  }
  return summary;
}

}  // namespace hotlap
