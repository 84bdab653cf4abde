#include "view/trace_comparison.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

void add(TraceSide& side, std::string_view kind, std::string_view name,
         std::initializer_list<std::pair<std::string_view, double>> fields) {
  Fact fact{.kind = kind};
  if (!name.empty()) fact.set_text("name", std::string(name));
  for (const auto& [field, value] : fields) fact.set(field, value);
  side.facts.add(std::move(fact));
}

// `steps` of them; everything in the table grows with their number.
TraceSide side(double steps, double kernel_ms, std::string_view other_kernel) {
  TraceSide out{.name = "t", .facts = {}};
  if (steps > 0) {
    add(out, "steps.summary", "", {{"count", steps}, {"mean_ms", 100}});
    add(out, "breakdown.parts", "", {{"data_wait", 10}});
  }
  const double n = std::max(steps, 1.0);
  add(out, "device.time", "", {{"wall_ms", 100 * n}, {"compute_ms", 60 * n}, {"idle_data_ms", 10 * n}});
  add(out, "kernels.summary", "", {{"kernels", 3}});
  add(out, "kernels.kernel", "gemm", {{"total_ms", kernel_ms * n}, {"calls", 4 * n}});
  add(out, "kernels.kernel", "same", {{"total_ms", 5 * n}, {"calls", n}});
  add(out, "kernels.kernel", other_kernel, {{"total_ms", 3 * n}, {"calls", n}});
  return out;
}

const ComparedRow* find(const TraceComparison& c, std::string_view kind, std::string_view name) {
  for (const ComparedTable& table : c.tables) {
    if (table.kind != kind) continue;
    for (const ComparedRow& row : table.rows) {
      if (row.name == name) return &row;
    }
  }
  return nullptr;
}

TEST(TraceComparison, WhatIsSlowerAddedAndGonePerStep) {
  const TraceComparison c = compare_traces(side(4, 20, "old"), side(8, 30, "new"));
  EXPECT_TRUE(c.is_per_step);
  const ComparedRow* gemm = find(c, "kernels.kernel", "gemm");
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->change, RowChange::kSlower);
  EXPECT_DOUBLE_EQ(gemm->difference_ms(), 10);
  EXPECT_DOUBLE_EQ(gemm->before_calls, 4);
  ASSERT_NE(find(c, "kernels.kernel", "old"), nullptr);
  EXPECT_EQ(find(c, "kernels.kernel", "old")->change, RowChange::kGone);
  EXPECT_EQ(find(c, "kernels.kernel", "new")->change, RowChange::kAdded);
  EXPECT_EQ(find(c, "kernels.kernel", "same"), nullptr);
  EXPECT_EQ(c.tables.front().unchanged, 1U);
  EXPECT_FALSE(c.tables.front().is_cut);
  EXPECT_EQ(c.times.front().name, "step");
}

TEST(TraceComparison, WithoutStepsOnOneSideTheWholeTracesAreCompared) {
  const TraceComparison c = compare_traces(side(0, 20, "old"), side(8, 30, "old"));
  EXPECT_FALSE(c.is_per_step);
  ASSERT_NE(find(c, "kernels.kernel", "gemm"), nullptr);
  EXPECT_DOUBLE_EQ(find(c, "kernels.kernel", "gemm")->after_ms, 240);
}

TEST(TraceComparison, ATableThatWasCutIsSaidToBe) {
  TraceSide after = side(4, 20, "old");
  after.facts = {};
  add(after, "kernels.summary", "", {{"kernels", 5000}});
  add(after, "kernels.kernel", "gemm", {{"total_ms", 20}});
  const TraceComparison c = compare_traces(side(0, 20, "old"), after);
  EXPECT_TRUE(c.tables.front().is_cut);
}

TEST(TraceComparison, AnUnmeasuredPartIsMissingAndNotZero) {
  TraceSide after = side(4, 20, "old");
  TraceSide before{.name = "b", .facts = {}};
  add(before, "steps.summary", "", {{"count", 4}, {"mean_ms", 100}});
  add(before, "operators.summary", "", {{"self_ms", 300}});
  const TraceComparison c = compare_traces(before, after);
  for (const ComparedTime& time : c.times) {
    if (time.name == "  data wait") {
      EXPECT_FALSE(time.before_ms.has_value());
    }
  }
  EXPECT_NE(trace_comparison_text(c).find("missing ->"), std::string::npos);
  EXPECT_NE(trace_comparison_json(c).find("\"before_ms\": null"), std::string::npos);
}

}  // namespace
}  // namespace hotlap
