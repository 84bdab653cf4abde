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

TEST(DumpClock, WithoutUptimeASleepLooksLikeAJump) {
  DumpClock clock;
  clock.take(at(1000), stat_after(10), {});
  const auto jump = clock.take(at(1000 + 6702), stat_after(11), {});
  EXPECT_EQ(jump.unsure_ns, at(6701));
  EXPECT_EQ(jump.step_ns, 0);
  EXPECT_EQ(jump.sleep_ns, 0);
  EXPECT_TRUE(jump.has_gap());
  EXPECT_EQ(clock.time_ns(), at(1000 + 6702));
}

TEST(DumpClock, TheTimeOfTheStartMovesWithTheWallClock) {
  DumpClock clock;
  clock.take(at(1000), stat_after(10) + "btime 500\n", {});
  EXPECT_EQ(clock.take(at(1000 + 3601), stat_after(11) + "btime 4100\n", {}).step_ns, at(3600));
  EXPECT_EQ(clock.time_ns(), at(1001));
  // It stays where it is while the machine sleeps; that is not sure enough to say so.
  EXPECT_EQ(clock.take(at(1000 + 3601 + 3601), stat_after(12) + "btime 4100\n", {}).unsure_ns, at(3600));
}

TEST(DumpClock, JumpsWhileItSleeps) {
  DumpClock clock;
  clock.take(at(1000), stat_after(10), "50.00 1.0");
  const auto jump = clock.take(at(1000 + 1001 + 60), stat_after(11), "1051.00 1.0");
  EXPECT_EQ(jump.sleep_ns, at(1000));
  EXPECT_EQ(jump.step_ns, at(60));
}

// Cores of the given numbers, idle, after `seconds`, of which `away_s` they were off line.
std::string stat_of(std::initializer_list<int> cores, int seconds, int away_s = 0) {
  std::string text;
  for (const int core : cores) {
    const int ticks = 100 * (seconds - (core >= 2 ? away_s : 0));
    text += format("cpu{} 0 0 0 {} 0 0 0 {} 0 0\n", core, ticks / 2, ticks - ticks / 2);  // half of it stolen
  }
  return text;
}

TEST(DumpClock, CoresThatComeAndGoAreNoJump) {
  for (const bool has_uptime : {false, true}) {
    DumpClock clock;
    for (int i = 0; i < 40; ++i) {
      const bool is_away = i >= 10 && i < 30;
      const std::string stat = is_away ? stat_of({0, 1}, 1000 + i) : stat_of({0, 1, 2, 3}, 1000 + i, i < 10 ? 0 : 20);
      const auto jump = clock.take(at(5000 + i), stat, has_uptime ? format("{}.00 1.0", 1000 + i) : std::string());
      EXPECT_EQ(jump.step_ns, 0) << i;
      EXPECT_FALSE(jump.has_gap()) << i;
      EXPECT_EQ(clock.time_ns(), at(5000 + i));
    }
  }
}

TEST(DumpClock, ACoreThatWasResetSaysNothing) {
  DumpClock clock;
  clock.take(at(1000), "cpu0 0 0 0 90000\ncpu1 0 0 0 90000\n", {});
  EXPECT_EQ(clock.take(at(1030), "cpu0 0 0 0 10\ncpu1 0 0 0 93000\n", {}).step_ns, 0);
  EXPECT_FALSE(clock.take(at(1060), "cpu0 0 0 0 5\ncpu1 0 0 0 20\n", {}).has_gap());
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
