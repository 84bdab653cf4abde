#include "collect/scan.h"

#include <gtest/gtest.h>

#include <array>

#include "collect/instances.h"
#include "collect/pressure_file.h"
#include "collect/sample.h"

namespace hotlap {
namespace {

TEST(TextCursor, NumbersStopAtTheEndOfTheLine) {
  TextCursor cursor("  12 3x\n4");
  std::array<std::uint64_t, 4> found{};
  EXPECT_EQ(cursor.numbers(found), 2U);
  EXPECT_EQ(found[1], 3U);
  EXPECT_EQ(cursor.word(), "x");
  EXPECT_TRUE(cursor.at_line_end());
  EXPECT_TRUE(cursor.skip_line());
  EXPECT_EQ(cursor.rest(), "4");
  EXPECT_FALSE(cursor.skip_line());
}

TEST(TextCursor, NumbersThatDoNotFitAreRefused) {
  std::uint64_t number = 7;
  EXPECT_TRUE(TextCursor("18446744073709551615").number(number));
  EXPECT_EQ(number, UINT64_MAX);
  EXPECT_FALSE(TextCursor("18446744073709551616").number(number));
  EXPECT_FALSE(TextCursor("-1").number(number));
  EXPECT_FALSE(TextCursor("").number(number));
  EXPECT_EQ(number, UINT64_MAX);
}

TEST(TextCursor, UntilStaysOnItsLine) {
  TextCursor cursor("eth0: 5\nlo");
  EXPECT_EQ(cursor.until(':'), "eth0");
  EXPECT_EQ(cursor.until(':'), std::nullopt);
  EXPECT_EQ(cursor.rest(), " 5\nlo");
}

constexpr std::array<std::string_view, 3> kKeys{"Cached", "Dirty", "SwapCached"};

TEST(KeyedNumbers, FindsKeysWhereverTheyStandAndAfterTheyMoved) {
  KeyedNumbers numbers(kKeys);
  numbers.scan("MemTotal: 9 kB\nCached:   5 kB\nSwapCached: 6 kB\nDirty: 7 kB\n");
  EXPECT_EQ(numbers.value(0), 5U);
  EXPECT_EQ(numbers.value(1), 7U);
  EXPECT_EQ(numbers.value(2), 6U);
  numbers.scan("Cached:   8 kB\nDirty: 1 kB\n");
  EXPECT_EQ(numbers.value(0), 8U);
  EXPECT_EQ(numbers.value(1), 1U);
  EXPECT_EQ(numbers.value(2), std::nullopt);
}

TEST(KeyedNumbers, AKeyWithoutANumberIsAbsent) {
  KeyedNumbers numbers(kKeys);
  numbers.scan("Cached 5\nDirty\t\nSwapCachedX 6\n");
  EXPECT_EQ(numbers.value(0), 5U);
  EXPECT_EQ(numbers.value(1), std::nullopt);
  EXPECT_EQ(numbers.value(2), std::nullopt);
  numbers.scan("");
  EXPECT_EQ(numbers.value(0), std::nullopt);
}

TEST(Pressure, ReadsTotalsOnly) {
  const PressureTotals totals =
      read_pressure("some avg10=0.10 avg60=2.00 avg300=3.85 total=15\nfull avg10=0.0 total=x\n");
  EXPECT_EQ(totals.some_us, 15U);
  EXPECT_EQ(totals.full_us, std::nullopt);
}

class NullSink final : public SampleSink {
 public:
  SeriesHandle series(std::uint16_t, std::string_view) override { return {}; }
  void add(SeriesHandle, Value) override {}
  void event(EventKind, std::int64_t, std::string_view) override {}
  void count_loss(std::string_view, std::uint64_t count) override { lost += count; }
  std::uint64_t lost = 0;
};

TEST(InstanceTable, KeepsSlotsReportsLossesAndCountsTheExcessOnce) {
  NullSink sink;
  InstanceTable<int> table(2);
  std::string lost;
  const auto pass = [&](std::initializer_list<std::string_view> names) {
    table.begin();
    for (const std::string_view name : names) {
      if (auto* slot = table.find_or_add(name)) ++slot->entry;
    }
    table.end(sink, 3, [&](auto& slot) { lost += slot.name; });
  };
  pass({"a", "b", "c"});
  pass({"a", "b", "c"});
  EXPECT_EQ(sink.lost, 3U);
  pass({"b", "c"});
  EXPECT_EQ(lost, "a");
  // The place of "a" is free for "c"; "b" kept its own.
  pass({"b", "c"});
  EXPECT_EQ(table.slots()[0].name, "c");
  EXPECT_EQ(table.slots()[1].entry, 4);
  EXPECT_EQ(sink.lost, 3U);
}

TEST(SumMember, ADeviceThatAppearsOrIsResetMakesNoSpike) {
  std::uint64_t sum = 0;
  SumMember member;
  member.add_to(sum, 1'000'000);
  member.add_to(sum, 1'000'010);
  EXPECT_EQ(sum, 10U);
  member.add_to(sum, 5);
  member.add_to(sum, 7);
  EXPECT_EQ(sum, 12U);
  member.forget();
  member.add_to(sum, 1'000);
  EXPECT_EQ(sum, 12U);
}

TEST(Due, ForgivesJitterOfTheTick) {
  Due due(1'000);
  EXPECT_TRUE(due.at(50));
  EXPECT_FALSE(due.at(700));
  EXPECT_TRUE(due.at(1'049));
  EXPECT_FALSE(due.at(1'050));
}

}  // namespace
}  // namespace hotlap
