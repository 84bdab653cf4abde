#include "cost/machine_price.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

TEST(MachinePrice, WhatWasGivenComesBeforeWhatAFileSays) {
  RunInfo run;
  run.price = Price{.per_hour = 3, .source = "--price"};
  EXPECT_EQ(machine_price(run, {{"price.per_hour", "9"}})->per_hour, 3);
}

TEST(MachinePrice, OfAnImportedMetaJson) {
  const auto price = machine_price({}, {{"price.per_hour", "1.25"}, {"price.currency", "EUR"}});
  ASSERT_TRUE(price);
  EXPECT_EQ(price->per_hour, 1.25);
  EXPECT_EQ(price->currency, "EUR");
  EXPECT_EQ(price->source, "meta.json");
  EXPECT_TRUE(machine_price({}, {{"instance", "g5.xlarge"}})->source.starts_with("catalogue aws-ec2 g5.xlarge"));
}

TEST(MachinePrice, WhatCannotBeOneIsNone) {
  for (const char* text : {"", "free", "-1", "0", "1e300", "nan"}) {
    EXPECT_FALSE(machine_price({}, {{"price.per_hour", text}})) << text;
  }
  EXPECT_FALSE(machine_price({}, {{"instance", "my desk"}}));
  EXPECT_FALSE(machine_price({}, {}));
}

TEST(PriceOfNodes, EachIsPaid) {
  const Price two = price_of_nodes(Price{.per_hour = 1.5, .source = "--price"}, 2);
  EXPECT_EQ(two.per_hour, 3);
  EXPECT_EQ(two.source, "--price, 2 nodes");
  EXPECT_EQ(price_of_nodes(Price{.per_hour = 1.5, .source = "--price"}, 1).source, "--price");
  EXPECT_FALSE(price_of_nodes(std::optional<Price>(), 2));
}

}  // namespace
}  // namespace hotlap
