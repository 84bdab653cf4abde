#include "store/span_block.h"

#include <algorithm>
#include <array>

namespace hotlap {
namespace {

constexpr std::size_t kColumns = 9;

// Differences wrap: every 64-bit value comes back, whatever a file holds.
std::uint64_t difference(std::uint64_t now, std::uint64_t before) {
  return zigzag(static_cast<std::int64_t>(now - before));
}

std::array<std::uint64_t, kColumns> fields(const Span& span) {
  return {static_cast<std::uint64_t>(span.start_ns),
          static_cast<std::uint64_t>(span.duration_ns) + 1,
          static_cast<std::uint64_t>(span.kind),
          span.name,
          span.process,
          span.thread,
          static_cast<std::uint64_t>(span.step),
          static_cast<std::uint64_t>(span.value_a) + 1,
          static_cast<std::uint64_t>(span.value_b) + 1};
}

constexpr std::array<bool, kColumns> kByDifference{true, false, true, true, true, true, true, false, false};

}  // namespace

void encode_spans(std::span<const Span> spans, Bytes& out) {
  put_varint(out, spans.size());
  Bytes column;
  for (std::size_t c = 0; c < kColumns; ++c) {
    column.clear();
    std::uint64_t before = 0;
    for (const Span& span : spans) {
      const std::uint64_t now = fields(span)[c];
      put_varint(column, kByDifference[c] ? difference(now, before) : now);
      before = now;
    }
    put_varint(out, column.size());
    put_bytes(out, column);
  }
}

bool decode_spans(ByteView bytes_untrusted, std::vector<Span>& out) {
  out.clear();
  ByteReader reader(bytes_untrusted);
  const std::uint64_t count = reader.varint();
  if (!reader.ok() || count > kSpansPerBlockMax || count > reader.remaining()) return false;
  out.resize(count);
  for (std::size_t c = 0; c < kColumns; ++c) {
    ByteReader column(reader.bytes(reader.varint()));
    if (!reader.ok()) return false;
    std::uint64_t now = 0;
    for (Span& span : out) {
      const std::uint64_t read = column.varint();
      now = kByDifference[c] ? now + static_cast<std::uint64_t>(unzigzag(read)) : read;
      switch (c) {
        case 0: span.start_ns = static_cast<std::int64_t>(now); break;
        case 1: span.duration_ns = static_cast<std::int64_t>(now - 1); break;
        case 2: span.kind = static_cast<SpanKind>(now); break;
        case 3: span.name = static_cast<std::uint32_t>(now); break;
        case 4: span.process = static_cast<std::uint32_t>(now); break;
        case 5: span.thread = static_cast<std::uint32_t>(now); break;
        case 6: span.step = static_cast<std::int64_t>(now); break;
        case 7: span.value_a = static_cast<std::int64_t>(now - 1); break;
        default: span.value_b = static_cast<std::int64_t>(now - 1); break;
      }
    }
    if (!column.ok() || column.remaining() != 0) return false;
  }
  return reader.remaining() == 0;
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
