// What the analyzers make of series of GPUs.
#include <gtest/gtest.h>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "support/fake_job.h"
#include "support/fake_series.h"

namespace hotlap {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

FactTable analyze(FakeRecording& recording) {
  std::vector<RecordingReader*> readers{&recording};
  RunInfo run;
  RunAnalysis analysis(run, all_analyzers());
  EXPECT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  return analysis.facts();
}

// 1,000 steps of 100 ms, from 1,000 s to 1,100 s.
FakeJob job() { return {.steps = 1000, .workers = 4, .batch_ms = 60, .compute_ms = 99.8, .jitter = 0, .cores = 8}; }

// Bursts of three seconds and six of nothing: the mean of a third hides both.
TEST(GpuUse, IdleStretchesAreCountedAndTheirLengthIsTold) {
  FakeRecording recording;
  job().record(recording);
  recording.add_attribute("gpu0.name", "A10G");
  add_gauge(recording, "gpu.busy.percent", "gpu0", {.from_s = 990, .every_s = 0.1},
            [](double s) { return is_on(s, 3, 6) ? 90 : 0; });
  add_gauge(recording, "gpu.is_of_job", "gpu0", {.from_s = 990, .every_s = 1}, [](double) { return 1; });
  const FactTable facts = analyze(recording);
  const Fact* gpu = facts.find("gpu.use");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->where.device, "gpu0");
  EXPECT_EQ(gpu->text("name"), "A10G");
  EXPECT_EQ(gpu->number("is_of_job"), 1);
  EXPECT_EQ(gpu->number("steps_only"), 1);
  EXPECT_NEAR(*gpu->number("mean_pct"), 30, 2);
  EXPECT_EQ(gpu->number("p5_pct"), 0);
  EXPECT_EQ(gpu->number("p95_pct"), 90);
  EXPECT_NEAR(*gpu->number("idle_pct"), 66.7, 2);
  EXPECT_NEAR(*gpu->number("idle_count"), 11, 1);
  EXPECT_NEAR(*gpu->number("idle_mean_s"), 6, 0.3);
  EXPECT_NEAR(*gpu->number("idle_longest_s"), 6, 0.2);
}

// What a split GPU does not tell is missing: never 0, never idle.
TEST(GpuUse, MissingIsNotIdle) {
  FakeRecording recording;
  job().record(recording);
  add_gauge(recording, "gpu.busy.percent", "gpu0", {}, [](double) { return std::nullopt; });
  add_gauge(recording, "gpu.power.watts", "gpu0", {}, [](double) { return 180; });
  const FactTable facts = analyze(recording);
  const Fact* gpu = facts.find("gpu.use");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->number("mean_pct"), std::nullopt);
  EXPECT_EQ(gpu->number("idle_pct"), std::nullopt);
  EXPECT_NEAR(*gpu->number("missing_pct"), 100, 0.1);
  EXPECT_NEAR(*gpu->number("power_w"), 180, 0.1);
}

// Start-up and tail are no steady state: a GPU that waits for the first step is not "fluctuating".
TEST(GpuUse, OnlyTypicalStepsCount) {
  FakeRecording recording;
  job().record(recording);
  add_gauge(recording, "gpu.busy.percent", "gpu0", {.from_s = 800, .to_s = 1300},
            [](double s) { return s >= 1000 && s < 1100 ? 97 : 0; });
  const FactTable facts = analyze(recording);
  const Fact* gpu = facts.find("gpu.use");
  ASSERT_NE(gpu, nullptr);
  EXPECT_GE(*gpu->number("p5_pct"), 90);
  EXPECT_LT(*gpu->number("idle_pct"), 2);
}

}  // namespace
}  // namespace hotlap
