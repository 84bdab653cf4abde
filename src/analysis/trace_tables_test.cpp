#include "analysis/trace_tables.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

TEST(RecentById, KeepsTheLastOfEachPlaceAndForgetsWhatIsOlder) {
  RecentById<int> recent;
  const auto far = static_cast<std::int64_t>(RecentById<int>::kEntries);
  EXPECT_EQ(recent.find(7), nullptr);
  for (std::int64_t id = 0; id < 1000; ++id) recent.put(id, static_cast<int>(id));
  recent.put(far - 1, -1);
  for (std::int64_t id = 0; id < 1000; ++id) {
    ASSERT_NE(recent.find(id), nullptr) << id;
    EXPECT_EQ(*recent.find(id), id);
  }
  EXPECT_EQ(*recent.find(far - 1), -1);
  EXPECT_EQ(recent.find(1000), nullptr);
  recent.put(7, 70);
  EXPECT_EQ(*recent.find(7), 70);
  recent.put(far + 7, 700);
  EXPECT_EQ(recent.find(7), nullptr);
  EXPECT_EQ(*recent.find(far + 7), 700);
}

TEST(RecentById, AnIdBelowZeroIsNone) {
  RecentById<int> recent;
  recent.put(-1, 5);
  EXPECT_EQ(recent.find(-1), nullptr);
}

}  // namespace
}  // namespace hotlap
