#include "cli/clock_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::int64_t kUnix = 1'712'982'000 * kNsPerS;
constexpr std::int64_t kHourNs = 3600 * kNsPerS;

FileClock absolute(std::int64_t from_ns, std::int64_t to_ns) {
  return {.is_absolute = true,
          .uncertainty_ns = 0,
          .extent = {from_ns, to_ns},
          .step_ends_ns = {},
          .collective_ends_ns = {}};
}

FileClock with_steps(std::int64_t first_end_ns, std::int64_t step_ns, int from, int to) {
  FileClock file{.extent = {first_end_ns - step_ns, first_end_ns + (to - from) * step_ns}};
  for (int i = from; i < to; ++i) file.step_ends_ns[i] = first_end_ns + (i - from) * step_ns;
  return file;
}

TEST(ClockJoin, StepsOfTheSameNumberBringAFileToUnixTime) {
  FileClock trace = with_steps(kUnix, 100 * kNsPerMs, 10, 20);
  trace.is_absolute = true;
  trace.uncertainty_ns = 0;
  FileClock log = with_steps(5 * kNsPerS, 100 * kNsPerMs, 0, 50);  // step 10 ends at 6 s
  log.step_ends_ns[12] += 2 * kNsPerMs;
  const auto joined = join_clocks(std::vector{trace, log});
  ASSERT_TRUE(joined[1]);
  EXPECT_EQ(joined[1]->by, JoinedBy::kSteps);
  EXPECT_EQ(joined[1]->shift_ns, kUnix - 6 * kNsPerS);
  EXPECT_EQ(joined[1]->matches, 10U);
  EXPECT_TRUE(joined[1]->is_absolute);
  EXPECT_LE(joined[1]->uncertainty_ns, 2 * kNsPerMs);
  EXPECT_EQ(describe(*joined[1], "a.json"), "by 10 steps of the same number in a.json, within 0 us");
}

TEST(ClockJoin, OtherStepsOfTheSameNumbersAreNotTaken) {
  FileClock trace = with_steps(kUnix, 100 * kNsPerMs, 0, 20);
  trace.is_absolute = true;
  trace.uncertainty_ns = 0;
  const auto joined = join_clocks(std::vector{trace, with_steps(kNsPerS, 250 * kNsPerMs, 0, 20)});
  EXPECT_FALSE(joined[1]);
}

TEST(ClockJoin, CollectivesGoBeforeStepsAndNeedNoUnixTime) {
  FileClock a = with_steps(kNsPerS, 100 * kNsPerMs, 0, 5);
  FileClock b = with_steps(9 * kNsPerS, 100 * kNsPerMs, 0, 5);
  a.collective_ends_ns["nccl"] = {100, 200, 300, 400};
  b.collective_ends_ns["nccl"] = {1100, 1200, 1301, 1400};
  a.collective_ends_ns["other"] = {1};
  b.collective_ends_ns["other"] = {1, 2};  // one is missing: no match
  const auto joined = join_clocks(std::vector{a, b});
  EXPECT_FALSE(joined[1]);  // has most marks: the other is brought to it
  ASSERT_TRUE(joined[0]);
  EXPECT_EQ(joined[0]->by, JoinedBy::kCollectives);
  EXPECT_EQ(joined[0]->shift_ns, 1000);
  EXPECT_EQ(joined[0]->matches, 4U);
  EXPECT_FALSE(joined[0]->is_absolute);
}

TEST(ClockJoin, LocalTimeIsMovedByItsZoneWhereThatIsClear) {
  const FileClock trace = absolute(kUnix, kUnix + 10 * 60 * kNsPerS);
  FileClock smi = absolute(kUnix + 2 * kHourNs + kNsPerS, kUnix + 2 * kHourNs + 9 * 60 * kNsPerS);
  smi.uncertainty_ns = 14 * kHourNs;
  const auto joined = join_clocks(std::vector{smi, trace});
  ASSERT_TRUE(joined[0]);
  EXPECT_EQ(joined[0]->by, JoinedBy::kTimeZone);
  EXPECT_EQ(joined[0]->shift_ns, -2 * kHourNs);
  EXPECT_THAT(describe(*joined[0], "t.json"), testing::HasSubstr("UTC+2"));
  // Of a day's log several zones would do.
  smi.extent.to_ns = smi.extent.from_ns + 24 * kHourNs;
  EXPECT_FALSE(join_clocks(std::vector{smi, trace})[0]);
}

TEST(ClockJoin, WithNothingInCommonEachStandsForItself) {
  const auto joined = join_clocks(std::vector{with_steps(0, kNsPerMs, 0, 5), with_steps(0, kNsPerMs, 90, 95)});
  EXPECT_FALSE(joined[0]);
  EXPECT_FALSE(joined[1]);
  EXPECT_TRUE(join_clocks({}).empty());
}

}  // namespace
}  // namespace hotlap
