#include "observe/open_ranges.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "observe/span_budget.h"
#include "observe/utf8_text.h"

namespace hotlap {
namespace {

OpenRange range(std::uint32_t name, std::uint32_t domain = 0) {
  OpenRange made{};
  made.name = name;
  made.domain = domain;
  return made;
}

TEST(RangeStack, DomainsHaveOrdersOfTheirOwn) {
  RangeStack stack{};
  EXPECT_EQ(stack.push(range(1)), 0);
  EXPECT_EQ(stack.push(range(2, 7)), 0);
  EXPECT_EQ(stack.push(range(3)), 1);
  OpenRange ended{};
  ASSERT_TRUE(stack.pop(7, ended));
  EXPECT_EQ(ended.name, 2U);
  ASSERT_TRUE(stack.pop(0, ended));
  EXPECT_EQ(ended.name, 3U);
  ASSERT_TRUE(stack.pop(0, ended));
  EXPECT_EQ(ended.name, 1U);
  EXPECT_FALSE(stack.pop(0, ended));
}

TEST(RangeStack, WhatIsBeyondItsDepthIsLeftOutAndTheRestStaysInOrder) {
  RangeStack stack{};
  for (std::uint32_t name = 1; name <= RangeStack::kDepthMax; ++name) ASSERT_GE(stack.push(range(name)), 0);
  EXPECT_EQ(stack.push(range(1000)), -1);
  EXPECT_EQ(stack.push(range(1001)), -1);
  OpenRange ended{};
  EXPECT_FALSE(stack.pop(0, ended));
  EXPECT_FALSE(stack.pop(0, ended));
  ASSERT_TRUE(stack.pop(0, ended));
  EXPECT_EQ(ended.name, RangeStack::kDepthMax);
}

TEST(RangeTable, ARangeEndsOnceByItsOwnNumber) {
  const auto table = std::make_unique<RangeTable>();
  const std::uint64_t first = table->start(range(1));
  const std::uint64_t second = table->start(range(2));
  ASSERT_NE(first, second);
  OpenRange ended{};
  ASSERT_TRUE(table->end(second, ended));
  EXPECT_EQ(ended.name, 2U);
  EXPECT_FALSE(table->end(second, ended));
  ASSERT_TRUE(table->end(first, ended));
  EXPECT_EQ(ended.name, 1U);
  EXPECT_FALSE(table->end(0, ended));
  EXPECT_FALSE(table->end(UINT64_MAX, ended));
}

TEST(RangeTable, IsFullAfterItsBoundAndTakesMoreOnceOneHasEnded) {
  const auto table = std::make_unique<RangeTable>();
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < RangeTable::kRangesMax; ++i) ASSERT_NE(last = table->start(range(i)), 0U);
  EXPECT_EQ(table->start(range(1)), 0U);
  OpenRange ended{};
  ASSERT_TRUE(table->end(last, ended));
  // Its place is looked for near the next one in turn: it comes round.
  bool is_found = false;
  for (std::uint32_t i = 0; i < RangeTable::kRangesMax && !is_found; ++i) is_found = table->start(range(2)) != 0;
  EXPECT_TRUE(is_found);
  EXPECT_FALSE(table->end(last, ended));
}

TEST(Utf8Text, WideTextBecomesUtf8) {
  Utf8Text text;
  text.add("a:").add(L"\u00e9\u20ac\U0001F600").add(std::uint64_t{120});
  EXPECT_EQ(text.view(),
            "a:\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"
            "120");
  const wchar_t wrong[] = {static_cast<wchar_t>(0xD800), static_cast<wchar_t>(0x110000), L'x', L'\0'};
  Utf8Text mended;
  EXPECT_EQ(mended.add(wrong).view(), "\xEF\xBF\xBD\xEF\xBF\xBDx");
  Utf8Text long_text;
  const std::wstring euros(10'000, L'\u20ac');
  long_text.add(euros.c_str());
  EXPECT_LE(long_text.view().size(), kObserverNameBytesMax + 3);
  EXPECT_EQ(long_text.view().size() % 3, 0U);
  EXPECT_EQ(cut_utf8("a\xE2\x82\xAC", 3), "a");
}

TEST(NameTable, EqualTextsHaveOneNumber) {
  const auto names = std::make_unique<NameTable>();
  const std::uint32_t first = names->number_of("forward");
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(names->number_of("backward"), 2U);
  EXPECT_EQ(names->number_of(std::string("forward")), first);
  EXPECT_EQ(names->number_of(""), 3U);
  EXPECT_EQ(names->text(names->at(first)), "forward");
  const std::string long_name(2 * kObserverNameBytesMax, 'x');
  const std::uint32_t cut = names->number_of(long_name);
  EXPECT_EQ(names->text(names->at(cut)).size(), kObserverNameBytesMax);
  EXPECT_EQ(names->refused(), 0U);
}

TEST(NameTable, NamesBeyondTheBoundAreRefusedAndCounted) {
  const auto names = std::make_unique<NameTable>();
  for (std::uint32_t i = 0; i < NameTable::kNamesMax; ++i) ASSERT_NE(names->number_of(std::to_string(i)), 0U);
  EXPECT_EQ(names->number_of("one more"), 0U);
  EXPECT_EQ(names->number_of("one more"), 0U);
  EXPECT_EQ(names->refused(), 2U);
  EXPECT_EQ(names->number_of("7"), 8U);
  EXPECT_EQ(names->count(), NameTable::kNamesMax);
}

TEST(SpanBudget, KeepsAllOfFewAndTheLongOfMany) {
  constexpr std::int64_t kMs = 1'000'000;
  constexpr std::int64_t kMuchRoom = 1'000'000;
  SpanBudget budget{};
  std::int64_t now_ns = 5'000 * kMs;
  for (int i = 0; i < 1'000; ++i, now_ns += kMs) {
    budget.advance(now_ns, kMuchRoom);
    ASSERT_TRUE(budget.keeps(0)) << i;
  }
  std::int64_t short_kept = 0;
  std::int64_t long_kept = 0;
  constexpr int kLong = 20'000 / 10;
  for (int ms = 0; ms < 20'000; ++ms, now_ns += kMs) {
    budget.advance(now_ns, kMuchRoom);
    for (int i = 0; i < 100; ++i) short_kept += budget.keeps(5'000) ? 1 : 0;
    if (ms % 10 == 0) long_kept += budget.keeps(8 * kMs) ? 1 : 0;
  }
  EXPECT_EQ(long_kept, kLong);
  EXPECT_LE(short_kept, SpanBudget::kBurst + 20 * SpanBudget::kSpansPerS);
  EXPECT_GT(short_kept, SpanBudget::kBurst / 2);
}

TEST(SpanBudget, TheShortMakeRoomWhereTheReaderIsSlow) {
  constexpr std::int64_t kMs = 1'000'000;
  SpanBudget budget{};
  std::int64_t room = 8'000;
  std::int64_t kept = 0;
  std::int64_t long_kept = 0;
  for (int ms = 1; ms <= 10'000; ++ms) {  // nobody reads for ten seconds
    budget.advance(ms * kMs, room - kept);
    for (int i = 0; i < 2; ++i) kept += budget.keeps(5'000) ? 1 : 0;
    if (ms % 100 == 0) long_kept += budget.keeps(50 * kMs) ? 1 : 0;
  }
  EXPECT_EQ(long_kept, 100);
  EXPECT_LT(kept, room);
  EXPECT_GT(kept, room / 2);
}

}  // namespace
}  // namespace hotlap
