#include "ingest/civil_time.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMoment = 1'712'297'839 * kNsPerS;  // 2024-04-05 06:17:19 UTC

TEST(CivilTime, FormsOfLogs) {
  const auto at = [](std::string_view text) { return read_civil_time(text).value_or(CivilTime{}); };
  EXPECT_EQ(at("2024/04/05 06:17:19.635, 58 W").unix_ns, kMoment + 635 * kNsPerMs);
  EXPECT_EQ(at("2024/04/05 06:17:19.635, 58 W").length, 23U);
  EXPECT_EQ(at("2024-04-05 06:17:19,635 - INFO").unix_ns, kMoment + 635 * kNsPerMs);
  EXPECT_EQ(at("2024-04-05T06:17:19Z").unix_ns, kMoment);
  EXPECT_TRUE(at("2024-04-05T06:17:19Z").has_zone);
  EXPECT_FALSE(at("2024-04-05T06:17:19").has_zone);
  EXPECT_EQ(at("2024-04-05T08:17:19.123456789+02:00").unix_ns, kMoment + 123'456'789);
  EXPECT_EQ(at("2024-04-05T00:47:19-0530").unix_ns, kMoment);
  EXPECT_EQ(at("2024-04-05 06:17:19 UTC").unix_ns, kMoment);
  EXPECT_EQ(at("2024-04-05 06:17:19-INFO").length, 19U);
  EXPECT_EQ(at("2024-04-05_06:17:19.").length, 19U);
  EXPECT_EQ(at("2024-02-29 00:00:00").unix_ns, 1'709'164'800 * kNsPerS);
}

TEST(CivilTime, WhatIsNoTime) {
  for (const std::string_view text : {"", "2024", "2024/04/05", "2024-04-05 6:17:19", "2024-13-05 06:17:19",
                                      "2023-02-29 00:00:00", "2024-04-05 24:00:00", "2024-04-05 06:60:00",
                                      "1969-01-01 00:00:00", "9999-01-01 00:00:00", "x024-04-05 06:17:19"}) {
    EXPECT_FALSE(read_civil_time(text)) << text;
  }
}

}  // namespace
}  // namespace hotlap
