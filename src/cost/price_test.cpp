#include "cost/price.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hotlap {
namespace {

TEST(Catalogue, IsSortedUniqueAndDated) {
  const auto all = instance_catalogue();
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &InstanceType::name));
  EXPECT_EQ(std::ranges::adjacent_find(all, {}, &InstanceType::name), all.end());
  for (const InstanceType& type : all) {
    EXPECT_GT(type.usd_per_hour, 0) << type.name;
    EXPECT_GE(type.as_of.size(), std::string_view("2026-07").size()) << type.name;
  }
}

TEST(Price, OfAnInstanceNamesItsSource) {
  const auto price = price_of_instance("g5.2xlarge");
  ASSERT_TRUE(price.ok());
  EXPECT_DOUBLE_EQ(price->per_hour, 1.212);
  EXPECT_EQ(price->source, "catalogue aws-ec2 g5.2xlarge us-east-1 2026-07-20");
}

TEST(Price, OfAnUnknownInstanceNamesTheNearest) {
  const auto price = price_of_instance("g5.3xlarge");
  ASSERT_FALSE(price.ok());
  EXPECT_NE(price.error().message.find("g5."), std::string::npos) << price.error().message;
}

TEST(Price, OutOfRangeIsRefused) {
  EXPECT_FALSE(price_per_hour(0).ok());
  EXPECT_FALSE(price_per_hour(-1).ok());
  EXPECT_FALSE(price_per_hour(1e9).ok());
  EXPECT_TRUE(price_per_hour(1.5).ok());
}

TEST(Money, IsTimeTimesRate) {
  EXPECT_DOUBLE_EQ(money_for(1'800, Price{.per_hour = 3}).amount, 1.5);
  EXPECT_EQ(format_money(2.138, "USD"), "$2.14");
  EXPECT_EQ(format_money(0.00421, "USD"), "$0.0042");
  EXPECT_EQ(format_money(1234.4, "USD"), "$1234");
  EXPECT_EQ(format_money(-3.1, "EUR"), "-3.10 EUR");
}

}  // namespace
}  // namespace hotlap
