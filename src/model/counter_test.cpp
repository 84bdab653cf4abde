#include "model/counter.h"

#include <gtest/gtest.h>

#include <limits>

namespace hotlap {
namespace {

constexpr std::uint64_t kTop32 = 0xFFFF'FFFF;
constexpr Value reading(std::uint64_t n) { return Value::of(n); }
constexpr Value kReset = Value::missing(MissingReason::kCounterReset);

TEST(CounterDelta, GrowsOrStands) {
  EXPECT_EQ(counter_delta(reading(5), reading(5)), reading(0));
  EXPECT_EQ(counter_delta(reading(5), reading(12)), reading(7));
  EXPECT_EQ(counter_delta(reading(0), reading(UINT64_MAX)), reading(UINT64_MAX));
  EXPECT_EQ(counter_delta(Value::of(1.5), Value::of(4.0)), Value::of(2.5));
  EXPECT_EQ(counter_delta(Value::of(std::int64_t{INT64_MIN}), Value::of(std::int64_t{INT64_MAX})), reading(UINT64_MAX));
}

TEST(CounterDelta, ADecreaseIsAResetAndNeverASpike) {
  EXPECT_EQ(counter_delta(reading(1'000'000), reading(10)), kReset);
  EXPECT_EQ(counter_delta(reading(UINT64_MAX), reading(0)), kReset);
  EXPECT_EQ(counter_delta(Value::of(4.0), Value::of(1.0)), kReset);
  EXPECT_EQ(counter_delta(Value::of(std::int64_t{4}), Value::of(std::int64_t{1})), kReset);
  EXPECT_EQ(counter_delta(Value::of(1.0), Value::of(std::numeric_limits<double>::quiet_NaN())), kReset);
}

TEST(CounterDelta, A32BitCounterMayWrapOnlyCloseToItsEnd) {
  EXPECT_EQ(counter_delta(reading(kTop32 - 9), reading(90)), reading(100));
  EXPECT_EQ(counter_delta(reading(kTop32), reading(0)), reading(1));
  // Far from the end, or far from 0 afterwards: it was reset.
  EXPECT_EQ(counter_delta(reading(3'000'000'000), reading(90)), kReset);
  EXPECT_EQ(counter_delta(reading(kTop32 - 9), reading(1'000'000'000)), kReset);
  EXPECT_EQ(counter_delta(reading(kTop32 + 5), reading(90)), kReset);
}

TEST(CounterDelta, AMissingReadingGivesItsReason) {
  const Value lost = Value::missing(MissingReason::kSourceLost);
  EXPECT_EQ(counter_delta(reading(1), lost), lost);
  EXPECT_EQ(counter_delta(lost, reading(1)), lost);
  EXPECT_EQ(counter_delta(Value::of(1.0), reading(1)), kReset);
}

}  // namespace
}  // namespace hotlap
