// What the analyzers make of series of the machine and of slow steps.
#include <gtest/gtest.h>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/format.h"
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

const Fact* fact_of(const FactTable& facts, std::string_view kind, std::string_view field, std::string_view text) {
  for (const Fact* fact : facts.all(kind)) {
    if (fact->text(field) == text) return fact;
  }
  return nullptr;
}

// Shared pages that workers copy: RSS is flat, PSS grows.
TEST(HostMemory, WorkersThatCopySharedPagesGrowByPss) {
  FakeRecording recording;
  job().record(recording);
  for (int w = 0; w < 4; ++w) {
    const std::string worker = format("loader {}", w);
    add_gauge(recording, "process.memory.rss.bytes", worker, {}, [](double) { return 5 * kGiB; });
    add_gauge(recording, "process.memory.pss.bytes", worker, {.every_s = 5},
              [](double s) { return kGiB + 20e6 * (s - 1000); });
  }
  add_gauge(recording, "memory.total.bytes", "", {.every_s = 10}, [](double) { return 64 * kGiB; });
  add_gauge(recording, "memory.working_set.bytes", "", {}, [](double s) { return 20 * kGiB + 80e6 * (s - 1000); });
  const FactTable facts = analyze(recording);
  const Fact* workers = fact_of(facts, "host_memory.process", "process", "loader workers");
  ASSERT_NE(workers, nullptr);
  EXPECT_EQ(workers->text("measure"), "PSS");
  EXPECT_EQ(workers->text("shape"), "leak");
  EXPECT_NEAR(*workers->number("growth_bytes_per_s"), 80e6, 4e6);
  EXPECT_EQ(workers->number("processes"), 4);
  const Fact* machine = facts.find("host_memory.summary");
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(machine->text("limited_by"), "machine");
  EXPECT_EQ(machine->text("shape"), "leak");
  EXPECT_NEAR(*machine->number("to_limit_s"), (44 * kGiB - 8e9) / 80e6, 30);
}

// In a short run PSS is seen a few times only: RSS tells that the process grows, and which.
TEST(HostMemory, AShortRunIsJudgedByRss) {
  FakeRecording recording;
  job().record(recording);
  const auto leak = [](double s) { return s < 1105 ? kGiB + 40e6 * (s - 1000) : 0.01 * kGiB; };
  add_gauge(recording, "process.memory.rss.bytes", "main", {}, leak);
  add_gauge(recording, "process.memory.pss.bytes", "main", {.every_s = 45}, leak);
  add_gauge(recording, "memory.total.bytes", "", {.every_s = 10}, [](double) { return 16 * kGiB; });
  add_gauge(recording, "memory.working_set.bytes", "", {.to_s = 1110}, leak);  // the job ended at 1,100 s
  const FactTable facts = analyze(recording);
  const Fact* main = fact_of(facts, "host_memory.process", "process", "main");
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->text("measure"), "RSS");
  EXPECT_EQ(main->text("shape"), "leak");
  EXPECT_NEAR(main->number("growth_bytes_per_s").value_or(0), 40e6, 2e6);
  EXPECT_NEAR(facts.find("host_memory.summary")->number("used_bytes").value_or(0), kGiB + 4e9, 2e8);
}

TEST(HostMemory, TheGroupsLimitBinds) {
  FakeRecording recording;
  job().record(recording);
  add_gauge(recording, "memory.total.bytes", "", {.every_s = 10}, [](double) { return 1007 * kGiB; });
  add_gauge(recording, "memory.working_set.bytes", "", {}, [](double) { return 300 * kGiB; });
  add_gauge(recording, "cgroup.memory.limit.bytes", "", {.every_s = 5}, [](double) { return 90 * kGiB; });
  add_gauge(recording, "cgroup.memory.working_set.bytes", "", {.every_s = 2}, [](double) { return 26 * kGiB; });
  const FactTable facts = analyze(recording);
  const Fact* memory = facts.find("host_memory.summary");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->text("limited_by"), "group");
  EXPECT_NEAR(*memory->number("peak_pct"), 100 * 26.0 / 90, 0.5);
  EXPECT_EQ(memory->text("shape"), "flat");
}

// A capture without the page cache by age has no working set: what can still be had tells it.
TEST(HostMemory, WithoutAWorkingSetWhatIsAvailableTells) {
  FakeRecording recording;
  job().record(recording);
  add_gauge(recording, "memory.available.bytes", "", {}, [](double s) { return 40 * kGiB - 80e6 * (s - 1000); });
  add_gauge(recording, "memory.total.bytes", "", {.every_s = 10}, [](double) { return 64 * kGiB; });
  const FactTable facts = analyze(recording);
  const Fact* memory = facts.find("host_memory.summary");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->text("shape"), "leak");
  EXPECT_NEAR(memory->number("growth_bytes_per_s").value_or(0), 80e6, 4e6);
  EXPECT_NEAR(memory->number("used_bytes").value_or(0), 24 * kGiB + 8e9, 3e8);
}

TEST(Ceilings, AFlatLinkAndABusyDisk) {
  FakeRecording recording;
  job().record(recording);
  add_rate(recording, "network.receive.bytes", "eth0", {}, 1, [](double) { return 116.8e6; });
  add_rate(recording, "network.transmit.bytes", "eth0", {}, 1, [](double) { return 1e6; });
  add_gauge(recording, "network.link.speed", "eth0", {.every_s = 10}, [](double) { return 1e9; });
  add_rate(recording, "disk.busy.seconds", "sda", {}, 1e-3, [](double) { return 0.99; });
  add_rate(recording, "disk.reads", "sda", {}, 1, [](double) { return 180; });
  add_rate(recording, "disk.read.bytes", "sda", {}, 512, [](double) { return 12e6; });
  add_rate(recording, "disk.read.seconds", "sda", {}, 1e-3, [](double) { return 180 * 0.04; });
  const FactTable facts = analyze(recording);
  const Fact* network = facts.find("ceilings.network");
  ASSERT_NE(network, nullptr);
  EXPECT_EQ(network->where.device, "eth0");
  EXPECT_NEAR(*network->number("receive_link_pct"), 93.4, 1);
  EXPECT_GT(*network->number("receive_flat_pct"), 95);
  const Fact* disk = facts.find("ceilings.disk");
  ASSERT_NE(disk, nullptr);
  EXPECT_NEAR(*disk->number("busy_pct"), 99, 1);
  EXPECT_NEAR(*disk->number("reads_per_s"), 180, 3);
  EXPECT_NEAR(*disk->number("read_ms"), 40, 1);
  EXPECT_NEAR(*disk->number("read_bytes"), 12e6 / 180, 2000);
}

TEST(SlowSteps, CheckpointsComeAtAPeriodAndTheDiskMovesAlong) {
  FakeRecording recording;
  FakeJob saving = job();
  saving.checkpoint_every = 100;
  saving.checkpoint_ms = 3000;
  saving.record(recording);
  // A checkpoint lies at the end of each hundredth step: every 13 s, for 3 s.
  add_rate(recording, "disk.total.write.bytes", "", {.to_s = 1135}, 1,
           [](double s) { return std::fmod(s - 1000, 13.0) > 9.9 ? 300e6 : 1e4; });
  const FactTable facts = analyze(recording);
  const Fact* slow = facts.find("slow_steps.summary");
  ASSERT_NE(slow, nullptr);
  EXPECT_NEAR(*slow->number("slow"), 9, 1);
  EXPECT_EQ(slow->number("period_steps"), 100);
  EXPECT_EQ(slow->number("period_phase"), 99);
  EXPECT_EQ(slow->text("part"), "checkpoint");
  EXPECT_NEAR(*slow->number("part_slow_ms"), 3000, 50);
  EXPECT_EQ(slow->text("along"), "disk.total.write.bytes");
  EXPECT_GT(*slow->number("along_slow"), 10 * *slow->number("along_typical"));
  EXPECT_NEAR(*slow->number("lost_pct"), 100 * 3.0 / 13, 3);
}

TEST(SlowSteps, StepsThatVaryHaveNoPeriod) {
  FakeRecording recording;
  FakeJob varied = job();
  varied.jitter = 0.3;
  varied.record(recording);
  const FactTable facts = analyze(recording);
  const Fact* slow = facts.find("slow_steps.summary");
  ASSERT_NE(slow, nullptr);
  EXPECT_FALSE(slow->number("period_steps"));
  EXPECT_LT(slow->number("lost_pct").value_or(0), 3);
}

// A step of half the batch in half the time is no change; a slower one is.
TEST(Changes, ALastingSlowDownIsFoundWithWhatMovedAlong) {
  FakeRecording recording;
  FakeJob before = job();
  before.jitter = 0.05;
  before.record(recording);
  FactTable facts = analyze(recording);
  EXPECT_EQ(facts.find("changes.point"), nullptr);

  FakeRecording slowed;
  FakeJob changing = before;
  changing.slower_from = 500;
  changing.slower_by = 1.5;
  changing.record(slowed);
  add_gauge(slowed, "gpu.clock.sm.mhz", "gpu0", {.to_s = 1130}, [](double s) { return s < 1050 ? 1700 : 1100; });
  facts = analyze(slowed);
  ASSERT_EQ(facts.all("changes.point").size(), 1U);
  const Fact* change = facts.find("changes.point");
  EXPECT_NEAR(*change->number("change_pct"), 50, 2);
  EXPECT_NEAR(*change->number("at_step"), 500, 8);
  EXPECT_NEAR(*change->number("lost_s"), 25, 2);
  EXPECT_EQ(change->text("along"), "gpu.clock.sm.mhz gpu0");
}

TEST(Neighbours, StealAndTheStepsMeanwhile) {
  FakeRecording recording;
  FakeJob varied = job();
  varied.record(recording);
  FakeRecording stolen;
  varied.slower_from = 500;
  varied.slower_by = 2;
  varied.has_steal = false;
  varied.record(stolen);
  add_rate(stolen, "cpu.steal.seconds", "", {.to_s = 1160}, 0.01, [](double s) { return s < 1050 ? 0.0 : 2.4; });
  const FactTable facts = analyze(stolen);
  const Fact* around = facts.find("neighbours.summary");
  ASSERT_NE(around, nullptr);
  EXPECT_NEAR(*around->number("steal_high_pct"), 66, 4);
  EXPECT_NEAR(*around->number("steal_slowdown_pct"), 100, 10);
  EXPECT_EQ(analyze(recording).find("neighbours.summary")->number("steal_high_pct"), 0);
}

TEST(StartUp, TheNetworkBeforeTheFirstStep) {
  FakeRecording recording;
  job().record(recording);
  add_rate(recording, "network.total.receive.bytes", "", {.from_s = 700, .to_s = 1100}, 1,
           [](double s) { return s < 940 ? 40e6 : 1e3; });
  const FactTable facts = analyze(recording);
  const Fact* start = facts.find("start_up.summary");
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->number("has_step"), 1);
  EXPECT_NEAR(*start->number("before_step_s"), 1, 0.1);  // the job itself began a second before
}

// A trace is of steps in mid-training, whatever other files begin before it.
TEST(StartUp, ATraceIsNone) {
  FakeRecording recording;
  job().record(recording);
  recording.info_to_fill().attributes["source.file"] = "trace.json";
  recording.info_to_fill().attributes["source.format"] = "joined";
  EXPECT_NE(analyze(recording).find("start_up.summary"), nullptr);
  recording.info_to_fill().attributes["source.format"] = "chrome_trace";
  EXPECT_EQ(analyze(recording).find("start_up.summary"), nullptr);
}

TEST(ThreadCounts, OfWorkersAgainstCores) {
  FakeRecording recording;
  job().record(recording);
  for (int w = 0; w < 4; ++w)
    add_gauge(recording, "process.threads", format("loader {}", w), {}, [](double) { return 16; });
  add_gauge(recording, "process.threads", "main", {}, [](double) { return 40; });
  const FactTable facts = analyze(recording);
  const Fact* threads = facts.find("threads.summary");
  ASSERT_NE(threads, nullptr);
  EXPECT_NEAR(*threads->number("job_threads"), 104, 1e-6);
  EXPECT_NEAR(*threads->number("loader_threads"), 16, 1e-6);
  EXPECT_EQ(threads->number("loaders"), 4);
  EXPECT_NEAR(*threads->number("usable_cores"), 8, 1e-6);
}

TEST(WallClock, JumpsAreAddedUp) {
  FakeRecording recording;
  job().record(recording);
  recording.add_event({1'020'000'000'000, EventKind::kClockStep, -357'000'000'000, ""});
  recording.add_event({1'040'000'000'000, EventKind::kClockStep, 1'000'000'000, ""});
  const FactTable facts = analyze(recording);
  const Fact* clock = facts.find("clock.jumps");
  ASSERT_NE(clock, nullptr);
  EXPECT_EQ(clock->number("count"), 2);
  EXPECT_EQ(clock->number("largest_s"), -357);
  EXPECT_EQ(clock->number("backward"), 1);
}

}  // namespace
}  // namespace hotlap
