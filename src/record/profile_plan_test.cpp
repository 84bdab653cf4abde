#include "record/profile_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace hotlap {
namespace {

TEST(ProfilePlan, WhatTheFlagSaysReachesTheHookAsText) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kPlans{
      {{"steps=10:3", "steps=10,count=3"},
       {"steps=4", "steps=10,count=4"},
       {"every=10min, steps=2", "count=2,every_s=600"},
       {"on-outlier", "on_outlier=1"},
       {"functions", "functions_hz=20"},
       {"functions=5hz,on-outlier", "on_outlier=1,functions_hz=5"},
       {"steps=0:1,ranks=0+8,shapes,budget=0.5%,memory=1GB,disk=64MB",
        "steps=0,count=1,ranks=0+8,shapes=1,budget_pct=0.5,memory_mb=1024,disk_mb=64"},
       {"steps=7:1,ranks=all", "steps=7,count=1,ranks=all"},
       {"off", ""}}};
  for (const auto& [flag, text] : kPlans) {
    const Result<ProfilePlan> plan = parse_profile_plan(flag, false);
    ASSERT_TRUE(plan.ok()) << flag << ": " << plan.error().message;
    EXPECT_EQ(profile_text(*plan), text) << flag;
  }
}

TEST(ProfilePlan, WrongWordsAreRefusedWithWhatWasMeant) {
  for (const char* text : {"",
                           "steps",
                           "steps=",
                           "steps=10:0",
                           "steps=-1:3",
                           "steps=1:2000",
                           "steps=10:3:4",
                           "every=1s",
                           "every=60",
                           "every=99d",
                           "functions=0hz",
                           "functions=1000hz",
                           "functions=nan",
                           "on-outlier=3",
                           "budget=1%",
                           "budget=200%,now",
                           "ranks=0,1",
                           "ranks=,steps=3",
                           "memory=-1,steps=3",
                           "off,steps=3",
                           "now",
                           "step=10:3",
                           "\x1b[31m"}) {
    const Result<ProfilePlan> plan = parse_profile_plan(text, false);
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidInput) << text;
  }
  EXPECT_NE(parse_profile_plan("step=10:3", false).error().message.find("did you mean steps?"), std::string::npos);
}

TEST(ProfilePlan, ALiveRunIsToldOneThingAtATime) {
  const auto argument = [](std::string_view text) { return profile_argument(*parse_profile_plan(text, true)); };
  EXPECT_EQ(argument("now"), 0U);
  EXPECT_EQ(argument("now,steps=5"), 5U);
  EXPECT_EQ(argument("off"), 1U << 16);
  EXPECT_EQ(argument("on-outlier"), 2U << 16);
  EXPECT_EQ(argument("every=1h,steps=2"), (std::uint64_t{3600} << 20 | 3U << 16 | 2U));
  EXPECT_EQ(argument("functions=20hz"), (std::uint64_t{20} << 52 | 4U << 16));
  EXPECT_EQ(profile_mode(argument("every=1h,steps=2")), ProfileMode::kEvery);
  for (const char* text : {"steps=10:3", "steps=3", "now,on-outlier", "now,shapes", "now,budget=1%", "ranks=all"}) {
    EXPECT_FALSE(parse_profile_plan(text, true).ok()) << text;
  }
}

}  // namespace
}  // namespace hotlap
