#include "ingest/registry.h"

#include <gtest/gtest.h>

#include <set>

namespace hotlap {
namespace {

TEST(ImporterTable, EverySpecIsCompleteAndPrioritiesDiffer) {
  std::set<int> priorities;
  for (const ImporterSpec* spec : all_importers()) {
    EXPECT_FALSE(spec->summary.empty()) << spec->name;
    EXPECT_NE(spec->sniff, nullptr) << spec->name;
    EXPECT_NE(spec->open_stream == nullptr, spec->open_path == nullptr) << spec->name;
    EXPECT_TRUE(priorities.insert(spec->priority).second) << spec->name;
  }
  EXPECT_FALSE(priorities.empty());
}

}  // namespace
}  // namespace hotlap
