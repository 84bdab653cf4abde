// Planted causes and their look-alikes, as recordings made of a few numbers: the cause is named and nothing else is.
// docs/diagnosis.md is the table of what was planted and found (HOTLAP_UPDATE_GOLDEN=1 rewrites it).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/format.h"
#include "rules/registry.h"
#include "support/fake_job.h"
#include "support/fake_series.h"
#include "support/fake_traced_job.h"
#include "support/golden.h"
#include "view/analyze.h"

namespace hotlap {
namespace {

constexpr double kGB = 1e9;

// 1,000 steps of 100 ms, from 1,000 s to 1,100 s, that wait for nothing.
FakeJob healthy() {
  return {.steps = 1000, .workers = 4, .batch_ms = 60, .compute_ms = 99.8, .compute_cpu_ms = 30, .cores = 8};
}

// Half a step is waiting for two workers.
FakeJob starved() {
  return {.steps = 800,
          .workers = 2,
          .batch_ms = 420,
          .batch_cpu_ms = 400,
          .compute_ms = 95,
          .compute_cpu_ms = 30,
          .cores = 8};
}

// The same wait, of workers that wait themselves.
FakeJob starved_by_storage() {
  FakeJob job = starved();
  job.workers = 8;
  job.batch_ms = 1700;
  job.batch_cpu_ms = 120;
  return job;
}

void add_gpu(FakeRecording& out, const std::string& name, double to_s,
             const std::function<std::optional<double>(double)>& busy) {
  add_gauge(out, "gpu.busy.percent", name, {.from_s = 995, .to_s = to_s, .every_s = 0.2}, busy);
  add_gauge(out, "gpu.is_of_job", name, {.to_s = to_s, .every_s = 5}, [](double) { return 1; });
}

void add_memory(FakeRecording& out, const std::string& name, const std::function<std::optional<double>(double)>& used) {
  add_gauge(out, "gpu.memory.total.bytes", name, {.every_s = 5}, [](double) { return 24 * kGB; });
  add_gauge(out, "gpu.memory.used.bytes", name, {}, used);
}

void add_limits(FakeRecording& out, double power_cap, double thermal, double limit_w) {
  const auto level = [&](const char* metric, double value) {
    add_gauge(out, metric, "gpu0", {.every_s = 1}, [value](double) { return value; });
  };
  level("gpu.clock_event.power_cap", power_cap);
  level("gpu.clock_event.thermal_sw", thermal);
  level("gpu.power.limit.watts", limit_w);
  level("gpu.power.limit_default.watts", 400);
  level("gpu.clock.sm.mhz", power_cap + thermal > 0 ? 1170 : 1650);
  level("gpu.clock.sm_max.mhz", 1980);
  level("gpu.temperature.celsius", thermal > 0 ? 87 : 61);
}

double always_busy(double) { return 97; }

struct Scenario {
  const char* name;
  const char* planted;  // rule; empty: nothing is wrong
  std::function<void(FakeRecording&)> make;
};

std::vector<Scenario> scenarios() {
  return {
      {"healthy", "", [](FakeRecording& out) { healthy().record(out); }},
      {"too few workers", "InputBound", [](FakeRecording& out) { starved().record(out); }},
      {"NFS link full", "NetworkMountBound",
       [](FakeRecording& out) {
         starved_by_storage().record(out);
         out.add_event({999'000'000'000, EventKind::kNote, 0, "mount /data: nfs4 server:/export"});
         add_gauge(out, "process.mount.open_files", "loader 0/mount /data", {.every_s = 10}, [](double) { return 8; });
         add_rate(out, "process.io.rchar.bytes", "loader 0", {.to_s = 1170, .every_s = 1}, 1,
                  [](double) { return 116e6; });
         add_rate(out, "network.receive.bytes", "eth0", {.to_s = 1170}, 1, [](double) { return 116.8e6; });
         add_rate(out, "network.transmit.bytes", "eth0", {.to_s = 1170}, 1, [](double) { return 1e6; });
         add_gauge(out, "network.link.speed", "eth0", {.every_s = 10}, [](double) { return 1e9; });
       }},
      {"bucket through FUSE, link full", "NetworkMountBound",
       [](FakeRecording& out) {
         starved_by_storage().record(out);
         out.add_event({999'000'000'000, EventKind::kNote, 0, "mount /data: fuse.juicefs JuiceFS:train"});
         add_gauge(out, "process.mount.open_files", "loader 0/mount /data", {.every_s = 10}, [](double) { return 8; });
         add_rate(out, "network.receive.bytes", "eth0", {.to_s = 1170}, 1, [](double) { return 116.8e6; });
         add_rate(out, "network.transmit.bytes", "eth0", {.to_s = 1170}, 1, [](double) { return 1e6; });
         add_gauge(out, "network.link.speed", "eth0", {.every_s = 10}, [](double) { return 1e9; });
       }},
      {"local disks together through FUSE, one full up", "StorageBound",
       [](FakeRecording& out) {
         starved_by_storage().record(out);
         out.add_event({999'000'000'000, EventKind::kNote, 0, "mount /data: fuse.mergerfs a:b"});
         add_gauge(out, "process.mount.open_files", "loader 0/mount /data", {.every_s = 10}, [](double) { return 8; });
         add_rate(out, "disk.busy.seconds", "sda", {.to_s = 1170}, 1e-3, [](double) { return 0.99; });
         add_rate(out, "disk.reads", "sda", {.to_s = 1170}, 1, [](double) { return 500; });
         add_rate(out, "disk.read.bytes", "sda", {.to_s = 1170}, 512, [](double) { return 60e6; });
         add_rate(out, "disk.read.seconds", "sda", {.to_s = 1170}, 1e-3, [](double) { return 12; });
       }},
      {"hard disk full up", "StorageBound",
       [](FakeRecording& out) {
         starved_by_storage().record(out);
         add_rate(out, "disk.busy.seconds", "sda", {.to_s = 1170}, 1e-3, [](double) { return 0.99; });
         add_rate(out, "disk.reads", "sda", {.to_s = 1170}, 1, [](double) { return 500; });
         add_rate(out, "disk.read.bytes", "sda", {.to_s = 1170}, 512, [](double) { return 60e6; });
         add_rate(out, "disk.read.seconds", "sda", {.to_s = 1170}, 1e-3, [](double) { return 12; });
       }},
      {"disk busy, nobody waits", "",
       [](FakeRecording& out) {
         healthy().record(out);
         add_rate(out, "disk.busy.seconds", "sda", {}, 1e-3, [](double) { return 0.99; });
         add_rate(out, "disk.reads", "sda", {}, 1, [](double) { return 500; });
         add_rate(out, "disk.read.bytes", "sda", {}, 512, [](double) { return 60e6; });
       }},
      {"checkpoints every 100 steps", "CheckpointStall",
       [](FakeRecording& out) {
         FakeJob job = healthy();
         job.checkpoint_every = 100;
         job.checkpoint_ms = 3000;
         job.record(out);
       }},
      {"steps that vary by a third", "",
       [](FakeRecording& out) {
         FakeJob job = healthy();
         job.jitter = 0.3;
         job.record(out);
       }},
      {"slower from step 500 on, GPU clock fell", "ThroughputChange",
       [](FakeRecording& out) {
         FakeJob job = healthy();
         job.slower_from = 500;
         job.slower_by = 1.5;
         job.record(out);
         add_gauge(out, "gpu.clock.sm.mhz", "gpu0", {.to_s = 1130}, [](double s) { return s < 1050 ? 1700 : 1100; });
       }},
      {"GPU memory leak", "GPUMemoryLeak",
       [](FakeRecording& out) {
         healthy().record(out);
         add_memory(out, "gpu0", [](double s) { return 4 * kGB + 120e6 * (s - 1000); });
       }},
      {"pool that fills up", "",
       [](FakeRecording& out) {
         healthy().record(out);
         add_memory(out, "gpu0", [](double s) { return std::min(4 * kGB + 240e6 * (s - 1000), 12 * kGB); });
       }},
      {"memory up in one step", "",  // told, as a matter of interest
       [](FakeRecording& out) {
         healthy().record(out);
         add_memory(out, "gpu0", [](double s) { return s < 1050 ? 4 * kGB : 12 * kGB; });
       }},
      {"fragmentation", "MemoryFragmentation",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gauge(out, "allocator.allocated.bytes", "main/cuda:0", {}, [](double) { return 6 * kGB; });
         add_gauge(out, "allocator.reserved.bytes", "main/cuda:0", {},
                   [](double s) { return 7 * kGB + 40e6 * (s - 1000); });
         add_gauge(out, "allocator.retries", "main/cuda:0", {}, [](double s) { return std::floor((s - 1000) / 20); });
         add_memory(out, "gpu0", [](double s) { return 8 * kGB + 40e6 * (s - 1000); });
       }},
      {"GPU held by a lowered power limit", "PowerCap",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gpu(out, "gpu0", 1100, always_busy);
         add_limits(out, 1, 0, 300);
       }},
      {"GPU too hot", "ThermalThrottle",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gpu(out, "gpu0", 1100, always_busy);
         add_limits(out, 0, 1, 400);
       }},
      {"GPU at its default limit", "",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gpu(out, "gpu0", 1100, always_busy);
         add_limits(out, 1, 0, 400);
       }},
      {"GPU idle for the loader", "InputBound",
       [](FakeRecording& out) {
         starved().record(out);
         add_gpu(out, "gpu0", 1170, [](double s) { return is_on(s, 0.8, 1.2) ? 95 : 0; });
       }},
      {"one GPU of two unused", "UnusedGPU",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gpu(out, "gpu0", 1100, always_busy);
         add_gpu(out, "gpu1", 1100, [](double) { return 0; });
       }},
      {"split GPU that tells no use", "",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gauge(out, "gpu.power.watts", "gpu0", {}, [](double) { return 180; });
         add_gauge(out, "gpu.busy.percent", "gpu0", {}, [](double) { return std::nullopt; });
       }},
      {"GPU lost", "GPULost",
       [](FakeRecording& out) {
         healthy().record(out);
         out.add_event({1'060'000'000'000, EventKind::kGpuLost, 0, "gpu0: GPU is lost"});
       }},
      {"workers copy shared pages", "HostMemoryGrowth",
       [](FakeRecording& out) {
         healthy().record(out);
         for (int w = 0; w < 4; ++w) {
           add_gauge(out, "process.memory.rss.bytes", format("loader {}", w), {}, [](double) { return 5 * kGB; });
           add_gauge(out, "process.memory.pss.bytes", format("loader {}", w), {.every_s = 5},
                     [](double s) { return kGB + 20e6 * (s - 1000); });
         }
         add_gauge(out, "memory.total.bytes", "", {.every_s = 10}, [](double) { return 64 * kGB; });
         add_gauge(out, "memory.working_set.bytes", "", {}, [](double s) { return 20 * kGB + 80e6 * (s - 1000); });
       }},
      {"a cache of the host fills up", "",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gauge(out, "memory.total.bytes", "", {.every_s = 10}, [](double) { return 64 * kGB; });
         add_gauge(out, "memory.working_set.bytes", "", {},
                   [](double s) { return std::min(20 * kGB + 400e6 * (s - 1000), 36 * kGB); });
       }},
      {"/dev/shm nearly full", "SharedMemoryFull",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gauge(out, "shm.total.bytes", "", {.every_s = 1}, [](double) { return kGB; });
         add_gauge(out, "shm.used.bytes", "", {.every_s = 1}, [](double) { return 0.97 * kGB; });
       }},
      {"/dev/shm half full, and no fuller", "",
       [](FakeRecording& out) {
         healthy().record(out);
         add_gauge(out, "shm.total.bytes", "", {.every_s = 1}, [](double) { return kGB; });
         add_gauge(out, "shm.used.bytes", "", {.every_s = 1},
                   [](double s) { return is_on(s, 5, 5) ? 0.5 * kGB : 0.4 * kGB; });
       }},
      {"compiles anew each tenth step", "Recompilation",
       [](FakeRecording& out) {
         FakeJob job = healthy();
         job.compile_ms = 400;
         job.compile_every = 10;
         job.record(out);
       }},
      {"compiles once", "",
       [](FakeRecording& out) {
         FakeJob job = healthy();
         job.compile_ms = 20'000;
         job.compile_every = 1'000'000;
         job.record(out);
       }},
      {"hypervisor gives cores away", "NoisyNeighbour",
       [](FakeRecording& out) {
         FakeJob job = healthy();
         job.has_steal = false;
         job.record(out);
         add_rate(out, "cpu.steal.seconds", "", {}, 0.01, [](double s) { return is_on(s, 20, 20) ? 2.4 : 0.0; });
       }},
      {"wall clock six minutes back", "ClockJump",
       [](FakeRecording& out) {
         healthy().record(out);
         out.add_event({1'040'000'000'000, EventKind::kClockStep, -357'000'000'000, ""});
       }},
      {"machine slept", "",
       [](FakeRecording& out) {
         healthy().record(out);
         out.add_event({1'040'000'000'000, EventKind::kSuspend, 6'701'000'000'000, ""});
       }},
      {"16 threads in each worker", "ThreadOversubscription",
       [](FakeRecording& out) {
         FakeJob job = starved();
         job.workers = 8;
         job.batch_ms = 1700;
         job.batch_cpu_ms = 1600;
         job.has_runnable = false;
         job.record(out);
         for (int w = 0; w < 8; ++w)
           add_gauge(out, "process.threads", format("loader {}", w), {.to_s = 1170}, [](double) { return 16; });
         add_gauge(out, "cpu.runnable", "", {.to_s = 1170}, [](double) { return 60; });
       }},
      {"trace: nothing is wrong", "", [](FakeRecording& out) { FakeTracedJob{}.record(out); }},
      {"trace: a value read after every tenth kernel", "HostSync",
       [](FakeRecording& out) { FakeTracedJob{.kernel_us = 60, .reads = 40}.record(out); }},
      {"trace: a value read once a step, while the GPU works", "",
       [](FakeRecording& out) { FakeTracedJob{.reads = 1}.record(out); }},
      {"trace: kernels shorter than their launches", "LaunchBound",
       [](FakeRecording& out) { FakeTracedJob{.kernel_us = 9}.record(out); }},
      {"trace: values read by a host that is the slower one", "LaunchBound",
       [](FakeRecording& out) { FakeTracedJob{.kernel_us = 9, .reads = 20}.record(out); }},
      {"trace: the program's first steps, which allocate", "",
       [](FakeRecording& out) { FakeTracedJob{.kernels = 40, .kernel_us = 100, .allocation_us = 30'000}.record(out); }},
      {"trace: batches from memory that is not pinned", "PageableCopy",
       [](FakeRecording& out) { FakeTracedJob{.copy_us = 8'000}.record(out); }},
      {"trace: the same batches from pinned memory", "",
       [](FakeRecording& out) {
         FakeTracedJob{.copy_us = 2'000, .copy = "Memcpy HtoD (Pinned -> Device)"}.record(out);
       }},
      {"trace: fp32 on a GPU with tensor cores", "MixedPrecisionUnused",
       [](FakeRecording& out) { FakeTracedJob{.kernel = "volta_sgemm_128x64_nn"}.record(out); }},
      {"trace: TF32", "",
       [](FakeRecording& out) {
         FakeTracedJob{.kernel = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>"}.record(
             out);
       }},
  };
}

struct Answer {
  std::string found;                // rule of the first finding that is a fault
  std::vector<std::string> others;  // faults besides, that nothing explains
};

Answer answer(const Scenario& scenario) {
  FakeRecording recording;
  scenario.make(recording);
  std::vector<RecordingReader*> readers{&recording};
  RunInfo run;
  RunAnalysis analysis(run, all_analyzers());
  EXPECT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  const FactTable facts = analysis.facts();
  const RulesOutcome outcome = run_rules(all_rules(), facts, {});
  for (const Error& error : outcome.errors) ADD_FAILURE() << error.message;
  Answer out;
  for (const Finding& finding : outcome.findings) {
    if (!finding.explained_by.empty() || finding.severity == Severity::kInfo) continue;
    if (out.found.empty()) {
      out.found = finding.rule;
    } else {
      out.others.push_back(finding.rule);
    }
  }
  return out;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

// The part of the document that real/prove.py writes stays as it is.
std::string real_jobs_of(const std::filesystem::path& document) {
  const std::string text = test::file_text(document);
  const std::size_t at = text.find("\n<!-- real jobs");
  return at == std::string::npos ? std::string() : text.substr(at);
}

TEST(Pairs, EveryCauseIsNamedAndNoLookAlikeIs) {
  std::string table =
      "# What it finds\n\nPlanted causes and their look-alikes, as recordings that a test makes "
      "(`tests/diagnosis/pairs_test.cpp`); made by that\ntest, do not edit. \"Nothing\" is the right answer where "
      "nothing "
      "is wrong. These are made of series and spans; real jobs: `make proof` (tests/diagnosis/real).\n\n"
      "| planted | cause | found | besides |\n|---|---|---|---|\n";
  std::size_t right = 0;
  std::size_t alarms = 0;
  const std::vector<Scenario> all = scenarios();
  for (const Scenario& scenario : all) {
    const Answer found = answer(scenario);
    EXPECT_EQ(found.found, scenario.planted) << scenario.name;
    EXPECT_EQ(joined(found.others), "") << scenario.name;
    if (found.found == scenario.planted) ++right;
    alarms += found.others.size() + (scenario.planted[0] == '\0' && !found.found.empty() ? 1 : 0);
    const auto words = [](std::string_view rule) { return rule.empty() ? std::string("nothing") : std::string(rule); };
    table += format("| {} | {} | {} | {} |\n", scenario.name, words(scenario.planted), words(found.found),
                    joined(found.others));
  }
  table += format("\n{} of {} right, {} false alarms.\n", right, all.size(), alarms);
  const std::filesystem::path document = std::filesystem::path(HOTLAP_SOURCE_DIR) / "docs/diagnosis.md";
  test::expect_golden(document, table + real_jobs_of(document));
}

}  // namespace
}  // namespace hotlap
