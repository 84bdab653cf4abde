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
  ASSERT_TRUE(joined[1]);
  EXPECT_EQ(joined[1]->by, JoinedBy::kBegin);
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
}

TEST(ClockJoin, FilesOfOneFormatAreOfOneZone) {
  // One log after the other: no zone moves the second onto the first.
  FileClock first = absolute(kUnix, kUnix + kHourNs);
  FileClock second = absolute(kUnix + 2 * kHourNs, kUnix + 3 * kHourNs);
  first.format = second.format = "training_log";
  first.uncertainty_ns = second.uncertainty_ns = 14 * kHourNs;
  auto joined = join_clocks(std::vector{first, second});
  EXPECT_FALSE(joined[0]);
  ASSERT_TRUE(joined[1]);
  EXPECT_EQ(joined[1]->shift_ns, 0);
  EXPECT_EQ(joined[1]->uncertainty_ns, 14 * kHourNs);
  // Once one of them has its place, so has the other.
  joined = join_clocks(std::vector{first, second, absolute(kUnix - kHourNs, kUnix)});
  ASSERT_TRUE(joined[0]);
  ASSERT_TRUE(joined[1]);
  EXPECT_EQ(joined[0]->shift_ns, -kHourNs);
  EXPECT_EQ(joined[1]->shift_ns, -kHourNs);
}

TEST(ClockJoin, AZoneThatIsNotClearStaysUncertain) {
  const FileClock trace = absolute(kUnix, kUnix + 10 * 60 * kNsPerS);
  // Of a day's log several zones would do: it lies among the others as it is.
  FileClock day = absolute(kUnix - kHourNs, kUnix + 23 * kHourNs);
  day.uncertainty_ns = 14 * kHourNs;
  auto joined = join_clocks(std::vector{day, trace});
  ASSERT_TRUE(joined[0]);
  EXPECT_EQ(joined[0]->by, JoinedBy::kTimeZone);
  EXPECT_EQ(joined[0]->shift_ns, 0);
  EXPECT_EQ(joined[0]->uncertainty_ns, 14 * kHourNs);
  EXPECT_TRUE(joined[0]->is_absolute);
  // Of a short one that never lies wholly inside, the zone in which most of it does.
  FileClock late = absolute(kUnix + 3 * kHourNs + 7 * 60 * kNsPerS, kUnix + 3 * kHourNs + 17 * 60 * kNsPerS);
  late.uncertainty_ns = 14 * kHourNs;
  joined = join_clocks(std::vector{late, trace});
  ASSERT_TRUE(joined[0]);
  EXPECT_EQ(joined[0]->shift_ns, -3 * kHourNs);
  EXPECT_EQ(joined[0]->uncertainty_ns, 14 * kHourNs);
}

TEST(ClockJoin, WithNothingInCommonFilesBeginTogetherWithinNobodyKnowsWhat) {
  const auto joined =
      join_clocks(std::vector{with_steps(kNsPerS, kNsPerMs, 0, 5), with_steps(9 * kNsPerS, kNsPerMs, 90, 93)});
  EXPECT_FALSE(joined[0]);  // has most marks: the other is brought to it
  ASSERT_TRUE(joined[1]);
  EXPECT_EQ(joined[1]->by, JoinedBy::kBegin);
  EXPECT_EQ(joined[1]->shift_ns, -8 * kNsPerS);
  EXPECT_EQ(joined[1]->uncertainty_ns, -1);
  EXPECT_EQ(describe(*joined[1], "a.json"),
            "to begin where a.json does, with unknown uncertainty: no certain Unix time, and no steps or collectives "
            "in common");
  EXPECT_TRUE(join_clocks({}).empty());
}

TEST(ClockJoin, NoUnixTimeIsMadeOfABeginThatIsAGuess) {
  const auto joined = join_clocks(std::vector{with_steps(kNsPerS, kNsPerMs, 0, 5), absolute(kUnix, kUnix + kHourNs),
                                              absolute(kUnix + 5, kUnix + 9)});
  ASSERT_TRUE(joined[0]);
  EXPECT_EQ(joined[0]->by, JoinedBy::kBegin);
  EXPECT_EQ(joined[0]->to, 1U);
  EXPECT_EQ(joined[0]->shift_ns, kUnix - (kNsPerS - kNsPerMs));
  EXPECT_FALSE(joined[0]->is_absolute);
}

// A kernel's log that reaches back for days, with a few messages.
FileClock messages(std::int64_t from_ns, std::int64_t to_ns) {
  return {.has_only_events = true, .extent = {from_ns, to_ns}, .step_ends_ns = {}, .collective_ends_ns = {}};
}

TEST(ClockJoin, MessagesAreNoMeasureForOtherFiles) {
  FileClock kernel = messages(kUnix - 300 * kHourNs, kUnix + kHourNs);
  kernel.is_absolute = true;
  kernel.uncertainty_ns = kNsPerS;
  FileClock relative{.extent = {0, kHourNs}, .step_ends_ns = {}, .collective_ends_ns = {}};
  const auto joined = join_clocks(std::vector{kernel, absolute(kUnix, kUnix + kHourNs), relative});
  EXPECT_FALSE(joined[0]);
  ASSERT_TRUE(joined[2]);
  EXPECT_EQ(joined[2]->shift_ns, kUnix) << "it begins with the other file, not with the oldest message";
}

TEST(ClockJoin, MessagesSinceTheMachineWasStartedStayWhereTheyAre) {
  EXPECT_FALSE(join_clocks(std::vector{absolute(kUnix, kUnix + kHourNs), messages(0, 300 * kHourNs)})[1]);
}

TEST(ClockJoin, MessagesWithoutAYearAreOfTheOneNextToTheOthers) {
  constexpr std::int64_t kYearsNs = 366 * 24 * kHourNs;  // from 2023 to the same day of 2024, behind February
  FileClock kernel = messages(kUnix - kYearsNs - 300 * kHourNs, kUnix - kYearsNs + kHourNs);
  kernel.has_year = false;
  const auto joined = join_clocks(std::vector{absolute(kUnix, kUnix + kHourNs), kernel});
  ASSERT_TRUE(joined[1]);
  EXPECT_EQ(joined[1]->by, JoinedBy::kYear);
  EXPECT_EQ(joined[1]->shift_ns, kYearsNs);
  EXPECT_TRUE(joined[1]->is_absolute);
}

TEST(ClockJoin, MessagesWithoutAZoneAreOfThatOfTheOtherFilesOfTheMachine) {
  FileClock log = absolute(kUnix + 2 * kHourNs, kUnix + 3 * kHourNs);  // local time, two hours ahead
  log.uncertainty_ns = 14 * kHourNs;
  FileClock kernel = messages(kUnix - 300 * kHourNs, kUnix + 3 * kHourNs);
  kernel.is_absolute = true;
  kernel.uncertainty_ns = 14 * kHourNs;
  const auto joined = join_clocks(std::vector{absolute(kUnix, kUnix + kHourNs), log, kernel});
  ASSERT_TRUE(joined[1]);
  ASSERT_TRUE(joined[2]);
  EXPECT_EQ(joined[2]->shift_ns, joined[1]->shift_ns);
}

}  // namespace
}  // namespace hotlap
