#include "collect/registry.h"

#include <gtest/gtest.h>

#include <set>

namespace hotlap {
namespace {

// A description that repeats or says nothing would drift into docs, exporters and dashboards.
TEST(CollectorTable, EverySpecIsCompleteAndUnique) {
  std::set<std::string_view> names;
  std::set<std::string_view> metrics;
  for (const CollectorSpec* spec : all_collectors()) {
    EXPECT_TRUE(names.insert(spec->name).second) << spec->name;
    EXPECT_FALSE(spec->summary.empty()) << spec->name;
    EXPECT_NE(spec->open, nullptr) << spec->name;
    EXPECT_FALSE(spec->metrics.empty()) << spec->name;
    for (const MetricDesc& metric : spec->metrics) {
      EXPECT_TRUE(metrics.insert(metric.name).second) << metric.name;
      EXPECT_FALSE(metric.help.empty()) << metric.name;
      EXPECT_FALSE(metric.unit.empty()) << metric.name;
      EXPECT_EQ(metric.name.find_first_of(" ABCDEFGHIJKLMNOPQRSTUVWXYZ"), std::string_view::npos) << metric.name;
    }
  }
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace hotlap
