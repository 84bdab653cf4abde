#include <gtest/gtest.h>

#include <set>

#include "model/fact.h"
#include "model/finding.h"
#include "model/losses.h"
#include "model/process.h"
#include "model/run.h"
#include "model/span.h"
#include "model/value.h"

namespace hotlap {
namespace {

TEST(Value, MissingIsNotZero) {
  EXPECT_NE(Value::of(0.0), Value::missing(MissingReason::kNotSupported));
  EXPECT_FALSE(Value{}.number());
  EXPECT_EQ(Value::of(std::uint64_t{7}).number(), 7.0);
}

TEST(Run, UlidsSortByTimeAndKeepTheirBits) {
  const std::string early = make_ulid(1'000'000'000, 0, 0);
  const std::string late = make_ulid(2'000'000'000, 0, 0);
  EXPECT_LT(early, late);
  EXPECT_EQ(make_ulid(0, 0, 31), "0000000000000000000000000Z");
  EXPECT_EQ(make_ulid(0, 0xFFFF, UINT64_MAX), "0000000000ZZZZZZZZZZZZZZZZ");
  EXPECT_TRUE(is_ulid(late));
  EXPECT_FALSE(is_ulid("last"));
}

TEST(Losses, NamesAreUniqueAndExplained) {
  std::set<std::string_view> seen;
  for (const LossDesc& loss : kLosses) {
    EXPECT_TRUE(seen.insert(loss.counter).second) << loss.counter;
    EXPECT_FALSE(loss.help.empty()) << loss.counter;
  }
}

TEST(Span, EveryKindHasAName) {
  for (std::uint16_t i = 1; i < kSpanKindCount; ++i) EXPECT_NE(to_string(static_cast<SpanKind>(i)), "?") << i;
}

TEST(Process, LabelsNameTheSlot) {
  EXPECT_EQ(slot_label({.pid = 5, .role = ProcessRole::kLoader, .index = 3}), "loader 3");
  EXPECT_EQ(slot_label({.pid = 5, .command = "/usr/bin/tar -x"}), "tar (5)");
  EXPECT_EQ(slot_label({.role = ProcessRole::kLoader, .index = 3, .label = "rank 1 loader 3"}), "rank 1 loader 3");
}

TEST(Fact, AbsentFieldsStayAbsent) {
  Fact fact{.kind = "steps.summary"};
  fact.set("median_ms", std::nullopt).set("count", 3.0);
  EXPECT_FALSE(fact.number("median_ms"));
  EXPECT_EQ(fact.number("count"), 3.0);
}

}  // namespace
}  // namespace hotlap
