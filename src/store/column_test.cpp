#include "store/column.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "store/stretch.h"

namespace hotlap {
namespace {

struct Added {
  std::uint32_t tick;
  Value value;
};

// Doubles by their bits: not a number is to come back as the same one.
bool same(const Value& a, const Value& b) {
  if (a.kind() != Value::Kind::kF64 || b.kind() != Value::Kind::kF64) return a == b;
  return std::bit_cast<std::uint64_t>(a.f64()) == std::bit_cast<std::uint64_t>(b.f64());
}

Value random_value(std::mt19937_64& random) {
  switch (random() % 10) {
    case 0: return Value::of(std::int64_t{INT64_MIN});
    case 1: return Value::of(std::uint64_t{UINT64_MAX});
    case 2: return Value::of(std::numeric_limits<double>::quiet_NaN());
    case 3: return Value::of(-std::numeric_limits<double>::infinity());
    case 4: return Value::missing(static_cast<MissingReason>(random() % 9));
    case 5: return Value::of(std::bit_cast<double>(random()));
    case 6: return Value::of(static_cast<double>(random() % 100) / 10);
    default: return Value::of(random() >> (random() % 64));
  }
}

// A series as it may be: runs of one kind, gaps, and now and then anything.
std::vector<Added> random_series(std::mt19937_64& random, std::uint32_t ticks) {
  std::vector<Added> series;
  Value value = random_value(random);
  const unsigned change = static_cast<unsigned>(random() % 20) + 1;
  const unsigned gap = static_cast<unsigned>(random() % 20) + 1;
  for (std::uint32_t tick = 0; tick < ticks; ++tick) {
    if (random() % change == 0) value = random_value(random);
    if (random() % gap != 0 || gap == 1) series.push_back({tick, value});
  }
  return series;
}

std::vector<Added> samples(const ColumnData& data) {
  std::vector<Added> found;
  for_each_sample(data, [&](std::uint32_t tick, Value value) { found.push_back({tick, value}); });
  return found;
}

void expect_same(const std::vector<Added>& a, const std::vector<Added>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].tick, b[i].tick);
    ASSERT_TRUE(same(a[i].value, b[i].value)) << "at " << i;
  }
}

TEST(OpenColumn, WholeAndPartsHoldWhatWasAdded) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    constexpr std::uint32_t kTicks = 200;
    OpenColumn column;
    const std::vector<Added> series = random_series(random, kTicks);
    const unsigned commit_each = static_cast<unsigned>(random() % 30) + 1;
    ColumnData parts;
    for (std::size_t i = 0; i < series.size(); ++i) {
      ASSERT_TRUE(column.add(series[i].tick, series[i].tick * 10, series[i].value));
      if (i % commit_each == 0) {
        column.end_run();
        ASSERT_TRUE(decode_stream(column.part(), kTicks, parts));
        column.part_written();
        EXPECT_FALSE(column.has_part());
      }
    }
    column.end_run();
    ASSERT_TRUE(decode_stream(column.part(), kTicks, parts));
    expect_same(samples(parts), series);
    ColumnData whole;
    ASSERT_TRUE(decode_stream(column.whole(), kTicks, whole));
    expect_same(samples(whole), series);
  }
}

TEST(OpenColumn, RefusesTheSameTickAndTimesThatDoNotGrow) {
  OpenColumn column;
  EXPECT_TRUE(column.add(0, 100, Value::of(1.0)));
  EXPECT_FALSE(column.add(0, 101, Value::of(2.0)));
  EXPECT_FALSE(column.add(1, 100, Value::of(2.0)));
  EXPECT_FALSE(column.add(1, 99, Value::of(2.0)));
  EXPECT_TRUE(column.add(1, 101, Value::of(2.0)));
  column.clear();
  EXPECT_FALSE(column.add(0, 101, Value::of(2.0)));
  EXPECT_EQ(column.samples(), 0U);
}

TEST(OpenColumn, StreamsThatLieAreRefused) {
  ColumnData out;
  const auto decode = [&](std::initializer_list<int> runs, std::initializer_list<int> ints) {
    Bytes run_bytes;
    Bytes int_bytes;
    for (const int b : runs) run_bytes.push_back(static_cast<std::byte>(b));
    for (const int b : ints) int_bytes.push_back(static_cast<std::byte>(b));
    out.clear();
    return decode_stream({.start = {}, .runs = run_bytes, .ints = int_bytes, .floats = {}}, 4, out);
  };
  EXPECT_TRUE(decode({0, 0x41}, {2, 2, 2, 2}));
  EXPECT_FALSE(decode({0, 0x51}, {2, 2, 2, 2, 2}));  // beyond the last tick
  EXPECT_FALSE(decode({5, 0x11}, {2}));
  EXPECT_FALSE(decode({0, 0x41}, {2, 2, 2}));  // too few values
  EXPECT_FALSE(decode({0, 0x11}, {2, 2}));     // too many
  EXPECT_FALSE(decode({0, 0x1F}, {}));         // no such state
  EXPECT_FALSE(decode({0, 0x01}, {}));         // a run of nothing
  EXPECT_FALSE(decode({0}, {}));               // cut short
}

TEST(Stretch, TicksChunkAndTailComeBack) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    const auto ticks = static_cast<std::uint32_t>(random() % 100) + 1;
    TicksBlock block;
    std::int64_t t = static_cast<std::int64_t>(random() >> 2) - (std::int64_t{1} << 60);
    for (std::uint32_t i = 0; i < ticks; ++i) {
      block.times_ns.push_back(t);
      t += static_cast<std::int64_t>(random() % 2'000'000'000) - 500'000'000;
    }
    std::vector<OpenColumn> columns(40);
    std::vector<std::vector<Added>> all;
    Tail tail{.stretch = round, .first_tick = 0, .times_ns = block.times_ns, .series = {}};
    for (std::uint32_t s = 0; s < columns.size(); ++s) {
      all.push_back(random_series(random, ticks));
      for (std::uint32_t i = 0; i < all[s].size(); ++i) ASSERT_TRUE(columns[s].add(all[s][i].tick, i, all[s][i].value));
      columns[s].end_run();
      if (columns[s].has_part()) tail.series.push_back({s * 3, columns[s].part()});
      ColumnData data;
      ASSERT_TRUE(decode_stream(columns[s].whole(), ticks, data));
      block.classes.push_back(data.runs);
    }
    Bytes encoded;
    encode_ticks(block, encoded);
    TicksBlock back;
    ASSERT_TRUE(decode_ticks(encoded, back));
    EXPECT_EQ(back.times_ns, block.times_ns);
    EXPECT_EQ(back.classes, block.classes);

    encoded.clear();
    encode_tail(tail, encoded);
    Tail tail_back;
    ASSERT_TRUE(decode_tail(encoded, tail_back));
    EXPECT_EQ(tail_back.times_ns, tail.times_ns);
    ASSERT_EQ(tail_back.series.size(), tail.series.size());
    for (std::size_t i = 0; i < tail.series.size(); ++i) {
      EXPECT_EQ(tail_back.series[i].series, tail.series[i].series);
      ColumnData data;
      ASSERT_TRUE(decode_stream(tail_back.series[i].part, ticks, data));
      expect_same(samples(data), all[tail.series[i].series / 3]);
    }
    for (std::size_t cut = 0; cut < encoded.size(); ++cut) {
      Tail ignored;
      EXPECT_FALSE(decode_tail(ByteView(encoded).first(cut), ignored));
    }
  }
}

}  // namespace
}  // namespace hotlap
