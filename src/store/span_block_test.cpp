#include "store/span_block.h"

#include <gtest/gtest.h>

#include <random>

namespace hotlap {
namespace {

std::vector<Span> random_spans(std::mt19937_64& random) {
  std::vector<Span> spans(random() % 50);
  const bool has_details = random() % 2 == 0;
  for (Span& span : spans) {
    span.start_ns =
        random() % 9 == 0 ? static_cast<std::int64_t>(random()) : static_cast<std::int64_t>(random() % 1'000'000);
    span.duration_ns = random() % 4 == 0 ? -1 : static_cast<std::int64_t>(random() >> (random() % 63 + 1));
    span.kind = static_cast<SpanKind>(random() % 70);
    span.process = static_cast<std::uint32_t>(random());
    span.thread = static_cast<std::uint32_t>(random() % 3);
    span.name = static_cast<std::uint32_t>(random() >> 32);
    span.step = static_cast<std::int64_t>(random() % 100) - 1;
    span.value_a = random() % 3 == 0 ? INT64_MAX : -1;
    span.value_b = static_cast<std::int64_t>(random() % 5) - 1;
    if (has_details) span.detail = static_cast<std::uint32_t>(random() % 9);
  }
  return spans;
}

TEST(SpanBlock, ComesBackAndIsRefusedWhenCut) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Span> spans = random_spans(random);
    Bytes encoded;
    encode_spans(spans, encoded);
    std::vector<Span> back;
    ASSERT_TRUE(decode_spans(encoded, back));
    EXPECT_EQ(back, spans);
    if (!spans.empty()) {
      EXPECT_FALSE(decode_spans(ByteView(encoded).first(random() % encoded.size()), back));
    }
    encoded.push_back(std::byte{0});
    EXPECT_FALSE(decode_spans(encoded, back));
  }
}

TEST(SpanBlock, SummaryHoldsForEverySpan) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Span> spans = random_spans(random);
    const SpanSummary summary = summarize(spans);
    for (const Span& span : spans) {
      EXPECT_LE(summary.from_ns, span.start_ns);
      EXPECT_GE(summary.to_ns, span.start_ns);
      EXPECT_GE(summary.end_ns, span.start_ns);
      EXPECT_NE(summary.kinds & kind_bit(span.kind), 0U);
      EXPECT_NE(summary.names & name_bit(span.name), 0U);
    }
  }
}

TEST(SpanBlock, HostileCountsAreBounded) {
  Bytes bytes;
  put_varint(bytes, UINT64_MAX);
  bytes.resize(100);
  std::vector<Span> out;
  EXPECT_FALSE(decode_spans(bytes, out));
  EXPECT_LE(out.capacity(), kSpansPerBlockMax);
}

}  // namespace
}  // namespace hotlap
