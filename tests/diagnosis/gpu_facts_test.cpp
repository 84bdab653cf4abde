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

// The same averages twice: once core and GPU meet, once they do not.
TEST(GpuHost, SecondsAreJoinedNotAverages) {
  const auto idle_core = [](bool together) {
    FakeRecording recording;
    FakeJob light = job();
    light.batch_cpu_ms = 5;
    light.compute_cpu_ms = 5;
    light.record(recording);
    add_gauge(recording, "gpu.busy.percent", "gpu0", {.every_s = 0.1},
              [](double s) { return is_on(s, 3, 3) ? 100 : 0; });
    add_rate(recording, "cpu.core.busy.seconds", "core 9", {}, 0.01,
             [&](double s) { return is_on(s, 3, 3) == together ? 0.02 : 0.98; });
    const FactTable facts = analyze(recording);
    const Fact* host = facts.find("gpu.host");
    EXPECT_NE(host, nullptr);
    EXPECT_NEAR(host->number("idle_s").value_or(0), 50, 6);
    EXPECT_TRUE(host->text("core_joint"));
    return host->number("idle_core_pct").value_or(0) - host->number("busy_core_pct").value_or(0);
  };
  EXPECT_GT(idle_core(true), 20);
  EXPECT_LT(idle_core(false), -20);
}

TEST(GpuMemory, ALeakHasASlopeATimeAndAPriceInSteps) {
  FakeRecording recording;
  job().record(recording);
  add_gauge(recording, "gpu.memory.total.bytes", "gpu0", {}, [](double) { return 24 * kGiB; });
  add_gauge(recording, "gpu.memory.used.bytes", "gpu0", {}, [](double s) { return 4 * kGiB + 120e6 * (s - 1000); });
  add_gauge(recording, "gpu.process.memory.bytes", "gpu0/main", {.every_s = 1}, [](double) { return 3 * kGiB; });
  add_gauge(recording, "gpu.process.memory.bytes", "gpu0/other", {.every_s = 1}, [](double) { return kGiB; });
  const FactTable facts = analyze(recording);
  const Fact* memory = facts.find("gpu.memory");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->text("shape"), "leak");
  EXPECT_NEAR(*memory->number("growth_bytes_per_s"), 120e6, 2e6);
  EXPECT_NEAR(*memory->number("growth_bytes_per_step"), 12e6, 0.5e6);
  EXPECT_NEAR(*memory->number("to_limit_s"), (20 * kGiB - 12e9) / 120e6, 3);
  EXPECT_EQ(memory->number("job_processes"), 1);
  EXPECT_NEAR(*memory->number("other_bytes"), kGiB, 1);
}

TEST(GpuMemory, TheAllocatorTellsFragmentation) {
  FakeRecording recording;
  job().record(recording);
  add_gauge(recording, "allocator.allocated.bytes", "main/cuda:0", {}, [](double) { return 6e9; });
  add_gauge(recording, "allocator.reserved.bytes", "main/cuda:0", {}, [](double s) { return 7e9 + 40e6 * (s - 1000); });
  const FactTable facts = analyze(recording);
  const Fact* allocator = facts.find("gpu.allocator");
  ASSERT_NE(allocator, nullptr);
  EXPECT_EQ(allocator->text("process"), "main");
  EXPECT_EQ(allocator->text("device"), "cuda:0");
  EXPECT_EQ(allocator->text("allocated_shape"), "flat");
  EXPECT_EQ(allocator->text("gap_shape"), "leak");
  EXPECT_NEAR(*allocator->number("gap_bytes_per_s"), 40e6, 2e6);
}

TEST(GpuLimits, CountedTimeIsBelievedBeforeSamples) {
  FakeRecording recording;
  job().record(recording);
  add_rate(recording, "gpu.clock_event.power_cap.seconds", "gpu0", {.every_s = 1}, 1e-9, [](double) { return 0.6; });
  add_gauge(recording, "gpu.clock_event.power_cap", "gpu0", {}, [](double) { return 0; });
  add_gauge(recording, "gpu.clock_event.thermal_sw", "gpu0", {}, [](double s) { return is_on(s, 1, 3) ? 1 : 0; });
  add_gauge(recording, "gpu.clock.sm.mhz", "gpu0", {}, [](double s) { return s < 1050 ? 1700 : 1300; });
  add_gauge(recording, "gpu.clock.sm_max.mhz", "gpu0", {.every_s = 10}, [](double) { return 2000; });
  add_gauge(recording, "gpu.pcie.width", "gpu0", {}, [](double s) { return is_on(s, 9, 1) ? 4 : 8; });
  add_gauge(recording, "gpu.pcie.width_max", "gpu0", {.every_s = 10}, [](double) { return 16; });
  recording.add_event({1'050'000'000'000, EventKind::kGpuXid, 79, "gpu0"});
  recording.add_event({1'060'000'000'000, EventKind::kGpuLost, 0, "gpu0: GPU is lost"});
  const FactTable facts = analyze(recording);
  const Fact* limits = facts.find("gpu.limits");
  ASSERT_NE(limits, nullptr);
  EXPECT_NEAR(*limits->number("power_cap_pct"), 60, 1);
  EXPECT_NEAR(*limits->number("thermal_pct"), 25, 3);
  EXPECT_NEAR(*limits->number("clock_mhz"), 1500, 10);
  EXPECT_EQ(limits->number("pcie_width"), 8);
  EXPECT_NEAR(*limits->number("clock_last_mhz"), 1300, 20);
  const Fact* health = facts.find("gpu.health");
  ASSERT_NE(health, nullptr);
  EXPECT_EQ(health->number("xid"), 79);
  EXPECT_EQ(health->text("why"), "GPU is lost");
  EXPECT_NEAR(*health->number("lost_for_s"), 40, 1);
}

}  // namespace
}  // namespace hotlap
