#include "collect/registry.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace hotlap {
namespace {

// A description that repeats or says nothing would drift into docs, exporters and dashboards.
TEST(CollectorTable, EverySpecIsCompleteAndUnique) {
  std::set<std::string_view> names;
  std::map<std::string_view, const MetricDesc*> metrics;
  for (const CollectorSpec* spec : all_collectors()) {
    EXPECT_TRUE(names.insert(spec->name).second) << spec->name;
    EXPECT_FALSE(spec->summary.empty()) << spec->name;
    EXPECT_NE(spec->open, nullptr) << spec->name;
    EXPECT_FALSE(spec->metrics.empty()) << spec->name;
    for (const MetricDesc& metric : spec->metrics) {
      // Sources of the same kind of device (GPUs of two makers) may share a metric, not a name with two meanings.
      const auto [known, is_new] = metrics.emplace(metric.name, &metric);
      if (!is_new) {
        EXPECT_TRUE(metric.name.starts_with("gpu.")) << metric.name;
        EXPECT_EQ(known->second->unit, metric.unit) << metric.name;
        EXPECT_EQ(known->second->kind, metric.kind) << metric.name;
        EXPECT_EQ(known->second->scale, metric.scale) << metric.name;
        EXPECT_EQ(known->second->help, metric.help) << metric.name;
      }
      EXPECT_FALSE(metric.help.empty()) << metric.name;
      EXPECT_FALSE(metric.unit.empty()) << metric.name;
      EXPECT_EQ(metric.name.find_first_of(" ABCDEFGHIJKLMNOPQRSTUVWXYZ"), std::string_view::npos) << metric.name;
    }
  }
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace hotlap
