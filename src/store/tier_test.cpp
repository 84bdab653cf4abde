#include "store/tier.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "store/format.h"

namespace hotlap {
namespace {

constexpr std::int64_t kWidth = kMinuteNs;

TEST(Tier, BucketsLieOnMultiplesOfTheirWidth) {
  EXPECT_EQ(bucket_start(0, 60), 0);
  EXPECT_EQ(bucket_start(59, 60), 0);
  EXPECT_EQ(bucket_start(60, 60), 60);
  EXPECT_EQ(bucket_start(-1, 60), -60);
  EXPECT_EQ(bucket_start(-60, 60), -60);
  EXPECT_LE(bucket_start(INT64_MIN, kHourNs), INT64_MIN + kHourNs);
}

TEST(Tier, PartsOfABucketMergeToTheWhole) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    TierSeries whole(kWidth);
    TierSeries parts(kWidth);
    TierSeries one(kWidth);
    for (std::int64_t i = 0; i < 300; ++i) {
      const std::int64_t t = i * 700'000'000;
      const Value value = random() % 5 == 0   ? Value::missing(MissingReason::kTimedOut)
                          : random() % 9 == 0 ? Value::of(std::numeric_limits<double>::quiet_NaN())
                                              : Value::of(static_cast<double>(random() % 1'000) - 500);
      whole.add(t, value);
      one.add(t, value);
      if (random() % 20 == 0 || i == 299) {
        for (const TierPoint& point : one.points()) parts.add(point);
        one.clear();
      }
    }
    ASSERT_EQ(whole.points().size(), parts.points().size());
    for (std::size_t i = 0; i < whole.points().size(); ++i) {
      TierPoint got = parts.points()[i];
      EXPECT_NEAR(got.mean, whole.points()[i].mean, 1e-9);
      got.mean = whole.points()[i].mean;
      EXPECT_EQ(got, whole.points()[i]);
    }
  }
}

TEST(Tier, ALatePartFindsItsBucket) {
  TierSeries series(kWidth);
  series.add(0, Value::of(1.0));
  series.add(2 * kWidth, Value::of(3.0));
  series.add(kWidth, Value::of(2.0));
  ASSERT_EQ(series.points().size(), 3U);
  EXPECT_EQ(series.points()[1].first, 2.0);
}

TierPoint random_point(std::mt19937_64& random, std::int64_t bucket, unsigned kind) {
  TierPoint point{.from_ns = bucket * kWidth, .to_ns = (bucket + 1) * kWidth};
  point.count = random() % 4 == 0 ? random() % 3 : 120;
  point.missing = random() % 4 == 0 ? random() % 5 : 0;
  if (point.count + point.missing == 0) point.missing = 1;
  if (point.count == 0) return point;
  const auto one = [&]() -> double {
    switch (kind) {
      case 0: return 7;
      case 1: return static_cast<double>(random() % 1'000'000) * 4'096;
      case 2: return static_cast<double>(random() % 1'000) / 100;
      case 3: return -1.0 / (static_cast<double>(random() % 1'000) + 1);
      case 4: return (random() % 2 == 0 ? 1 : -1) * std::numeric_limits<double>::max();
      default: return static_cast<double>(random());  // counters beyond 2^53
    }
  };
  double values[4] = {one(), one(), one(), one()};
  std::sort(values, values + 4);
  point.min = values[0];
  point.max = values[3];
  const bool is_monotone = random() % 2 == 0;
  point.first = is_monotone ? values[0] : values[2];
  point.last = is_monotone ? values[3] : values[1];
  point.mean = point.min / 2 + point.max / 2;
  return point;
}

TEST(Tier, BlocksComeBack) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<TierEntry> entries;
    std::uint32_t series = 0;
    const std::size_t count = random() % kSeriesPerChunk;
    for (std::size_t e = 0; e < count; ++e) {
      series += static_cast<std::uint32_t>(random() % 3) + 1;
      TierEntry& entry = entries.emplace_back();
      entry.series = series;
      std::int64_t bucket = static_cast<std::int64_t>(random() % 1'000'000) - 500;
      const auto kind = static_cast<unsigned>(random() % 6);
      for (std::size_t i = random() % 12 + 1; i-- > 0; bucket += random() % 5 == 0 ? 3 : 1) {
        entry.points.push_back(random_point(random, bucket, kind));
      }
    }
    Bytes encoded;
    encode_tier(entries, kWidth, encoded);
    std::size_t next = 0;
    ASSERT_TRUE(decode_tier(encoded, kWidth, [&](std::uint32_t of, std::span<const TierPoint> points) {
      ASSERT_LT(next, entries.size());
      EXPECT_EQ(of, entries[next].series);
      ASSERT_EQ(points.size(), entries[next].points.size());
      for (std::size_t i = 0; i < points.size(); ++i) {
        const TierPoint& want = entries[next].points[i];
        TierPoint got = points[i];
        if (want.count > 0) {
          EXPECT_LE(std::abs(got.mean / 2 - want.mean / 2), (want.max / 2 - want.min / 2) / 2'000);
          got.mean = want.mean;
        }
        EXPECT_EQ(got, want);
      }
      ++next;
    }));
    EXPECT_EQ(next, entries.size());
  }
}

TEST(Tier, HostileBytesNeverHurt) {
  std::mt19937_64 random(3);
  std::size_t points = 0;
  for (int round = 0; round < 2'000; ++round) {
    Bytes bytes(random() % 60);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    (void)decode_tier(bytes, kWidth, [&](std::uint32_t of, std::span<const TierPoint> some) {
      EXPECT_LT(of, kSeriesMax);
      points += some.size();
    });
  }
  EXPECT_LT(points, 2'000U * kSeriesPerChunk * 4'096);
}

}  // namespace
}  // namespace hotlap
