#include "ingest/dump_clock.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

// Two cores, idle, after `seconds`.
std::string stat_after(int seconds) {
  const int ticks = 100 * seconds;
  return format("cpu  0 0 0 {} 0 0 0 0 0 0\ncpu0 0 0 0 {} 0 0 0 0 0 0\ncpu1 0 0 0 {} 0 0 0 0 0 0\nctxt 1\n", 2 * ticks,
                ticks, ticks);
}
std::int64_t at(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

TEST(DumpClock, GoesOnByItself) {
  DumpClock clock;
  for (int i = 0; i < 5; ++i) {
    const auto jump = clock.take(at(1000 + i), stat_after(i), format("{}.00 1.0", 50 + i));
    EXPECT_EQ(jump.step_ns, 0);
    EXPECT_EQ(jump.sleep_ns, 0);
    EXPECT_EQ(clock.time_ns(), at(1000 + i));
  }
}

TEST(DumpClock, WallClockJumpsAgainstUptime) {
  DumpClock clock;
  clock.take(at(1000), {}, "50.00 1.0");
  EXPECT_EQ(clock.take(at(1000 - 356), {}, "51.00 1.0").step_ns, at(-357));
  EXPECT_EQ(clock.time_ns(), at(1001));
  EXPECT_EQ(clock.take(at(1000 - 355), {}, "52.00 1.0").step_ns, 0);
  EXPECT_EQ(clock.time_ns(), at(1002));
}

TEST(DumpClock, WallClockJumpsAgainstTimesOfCores) {
  DumpClock clock;
  clock.take(at(1000), stat_after(10), {});
  EXPECT_EQ(clock.take(at(1000 - 61), stat_after(11), {}).step_ns, at(-62));
  EXPECT_EQ(clock.time_ns(), at(1001));
}

TEST(DumpClock, SleepIsNoJump) {
  DumpClock clock;
  clock.take(at(1000), stat_after(10), "50.00 1.0");
  const auto jump = clock.take(at(1000 + 6702), stat_after(11), "6752.00 1.0");
  EXPECT_EQ(jump.step_ns, 0);
  EXPECT_EQ(jump.sleep_ns, at(6701));
}

TEST(DumpClock, AGapIsNoJump) {
  DumpClock clock;
  clock.take(at(1000), stat_after(10), {});
  const auto jump = clock.take(at(1300), stat_after(310), {});
  EXPECT_EQ(jump.step_ns, 0);
  EXPECT_EQ(jump.sleep_ns, 0);
}

TEST(DumpClock, NothingToCompareWith) {
  DumpClock clock;
  clock.take(at(1000), {}, {});
  EXPECT_EQ(clock.take(at(1100), {}, {}).step_ns, 0);
  EXPECT_EQ(clock.take(at(500), {}, {}).step_ns, at(-600));
  EXPECT_EQ(clock.time_ns(), at(1100));
}

TEST(DumpClock, HostileTextsAreNoTimes) {
  DumpClock clock;
  clock.take(at(1), "cpu x y z", "-5");
  clock.take(at(2), "cpu  18446744073709551615 18446744073709551615\ncpu0 1", "1e300 2");
  EXPECT_EQ(clock.time_ns(), at(2));
}

}  // namespace
}  // namespace hotlap
