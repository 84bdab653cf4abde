#include "model/wall_clock.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

TEST(WallClock, FollowsTheReadingBefore) {
  const WallClock clock(
      {{.mono_ns = 200, .wall_ns = 5'200, .boot_ns = 200}, {.mono_ns = 100, .wall_ns = 1'100, .boot_ns = 100}});
  EXPECT_EQ(clock.wall_ns(50), 1'050);  // before the first: by the first
  EXPECT_EQ(clock.wall_ns(100), 1'100);
  EXPECT_EQ(clock.wall_ns(199), 1'199);
  EXPECT_EQ(clock.wall_ns(200), 5'200);
  EXPECT_EQ(clock.wall_ns(300), 5'300);
}

TEST(WallClock, WithoutReadingsTheTimeIsNotKnown) { EXPECT_EQ(WallClock({}).wall_ns(5), std::nullopt); }

TEST(WallClock, NonsenseDoesNotOverflow) {
  EXPECT_TRUE(WallClock({{.mono_ns = INT64_MIN, .wall_ns = INT64_MAX, .boot_ns = 0}}).wall_ns(INT64_MAX).has_value());
}

}  // namespace
}  // namespace hotlap
