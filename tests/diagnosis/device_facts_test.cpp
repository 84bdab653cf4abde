// What the hook says of devices, models and communication, as facts.
#include <gtest/gtest.h>

#include "analysis/engine.h"
#include "analysis/gpu_peaks.h"
#include "analysis/registry.h"
#include "base/clock.h"
#include "base/format.h"
#include "support/fake_job.h"

namespace hotlap {
namespace {

constexpr std::int64_t kBegin = 1'000'000'000'000;
constexpr std::string_view kModel =
    R"({"classes": ["GPT"], "parameters": 124000000, "trainable": 124000000, "lookup_parameters": 1000000,)"
    R"( "bytes": 248000000, "dtypes": {"float32": 1000, "bfloat16": 123999000}, "devices": ["cuda:0"],)"
    R"( "attention": true, "experts": false, "channels_last": null, "reason": null})";
constexpr std::string_view kSettings =
    R"({"autocast": true, "autocast_dtype": "bfloat16", "tf32_matmul": false, "tf32_cudnn": true,)"
    R"( "cudnn_benchmark": false, "deterministic": false,)"
    R"( "compile": {"mode": "max-autotune", "backend": null, "fullgraph": null, "dynamic": null}})";
constexpr std::string_view kAccelerator =
    R"({"kind": "cuda", "initialised": true, "devices": 2, "current": 1,)"
    R"( "names": ["NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"], "memory_bytes": [42949672960, 85520809984]})";

FactTable analyze(std::vector<RecordingReader*> readers) {
  RunInfo run;
  RunAnalysis analysis(run, all_analyzers());
  EXPECT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  return analysis.facts();
}

void add_all(FakeRecording& recording, const std::string& metric, const std::string& instance,
             std::initializer_list<double> values, MetricKind kind = MetricKind::kGauge) {
  std::int64_t t_ns = kBegin;
  for (const double value : values) {
    recording.add_sample(metric, instance, kind, 1, {t_ns += kNsPerS / 2, Value::of(value)});
  }
}

TEST(DeviceFacts, MemoryTimesAndTransfersOfOneDevice) {
  FakeRecording recording;
  FakeJob{.steps = 100}.record(recording);
  add_all(recording, "allocator.allocated.bytes", "main/cuda:1", {5, 9, 7});
  add_all(recording, "allocator.allocated_max.bytes", "main/cuda:1", {5, 9, 3});  // the program reset it
  add_all(recording, "allocator.reserved.bytes", "main/cuda:1", {20, 20, 20});
  add_all(recording, "allocator.retries", "main/cuda:1", {0, 0, 4}, MetricKind::kCounter);
  add_all(recording, "gpu_time.forward.ms", "main/cuda:1", {90, 10, 12});  // the first is warm-up
  add_all(recording, "gpu_time.backward.ms", "main/cuda:1", {90, 20, 22});
  add_all(recording, "transfer.to_device.bytes", "main/cuda:1", {100, 300});
  add_all(recording, "transfer.to_device.pinned.bytes", "main/cuda:1", {100, 0});
  recording.add_attribute("process.main.accelerator", std::string(kAccelerator));
  const FactTable facts = analyze({&recording});

  const Fact* memory = facts.find("device.memory");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->where.device, "cuda:1");
  EXPECT_EQ(memory->where.process, "main");
  EXPECT_EQ(memory->number("allocated_bytes"), 7);
  EXPECT_EQ(memory->number("allocated_max_bytes"), 9);
  EXPECT_EQ(memory->number("retries"), 4);
  EXPECT_EQ(memory->number("total_bytes"), 85520809984.0);
  EXPECT_FALSE(memory->number("ooms")) << "nobody said: missing, not 0";
  const Fact* time = facts.find("device.parts");
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->number("forward_ms"), 11);
  EXPECT_EQ(time->number("backward_ms"), 21);
  EXPECT_FALSE(time->number("optimizer_ms"));
  const Fact* transfer = facts.find("device.transfer");
  ASSERT_NE(transfer, nullptr);
  EXPECT_EQ(transfer->number("bytes_per_batch"), 200);
  EXPECT_EQ(transfer->number("pinned_share"), 0.25);
}

TEST(DeviceFacts, AJobWithoutADeviceHasNone) {
  FakeRecording recording;
  FakeJob{.steps = 100}.record(recording);
  const FactTable facts = analyze({&recording});
  for (const char* kind :
       {"device.memory", "device.parts", "device.transfer", "job.model", "job.settings", "compute.efficiency"}) {
    EXPECT_EQ(facts.find(kind), nullptr) << kind;
  }
}

TEST(ComputeFacts, ATransformersOperationsAndItsShareOfThePeak) {
  FakeRecording recording;
  const FakeJob job{.steps = 200, .workers = 1, .batch_ms = 10, .compute_ms = 100, .jitter = 0, .tokens = 16'384};
  job.record(recording);
  recording.add_attribute("process.main.model", std::string(kModel));
  recording.add_attribute("process.main.settings", std::string(kSettings));
  recording.add_attribute("process.main.accelerator", std::string(kAccelerator));
  const FactTable facts = analyze({&recording});
  const Fact* efficiency = facts.find("compute.efficiency");
  ASSERT_NE(efficiency, nullptr);
  EXPECT_EQ(efficiency->number("flops_per_token"), 6 * 123e6);
  const double tflops = 6 * 123e6 * 16'384 / (job.step_ms() / 1000) * 1e-12;
  EXPECT_NEAR(*efficiency->number("tflops"), tflops, 0.01 * tflops);
  EXPECT_EQ(efficiency->text("precision"), "bf16");
  EXPECT_EQ(efficiency->number("peak_tflops"), 989);
  EXPECT_NEAR(*efficiency->number("mfu_pct"), 100 * tflops / 989, 0.1);
  EXPECT_TRUE(efficiency->text("basis")->starts_with("estimate"));
  EXPECT_FALSE(efficiency->text("reason"));
  const Fact* model = facts.find("job.model");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->text("dtype"), "bfloat16");
  EXPECT_FALSE(model->number("channels_last"));
  EXPECT_EQ(facts.find("job.settings")->text("compile_mode"), "max-autotune");
}

struct Doubt {
  std::string_view old_text;
  std::string_view new_text;
  std::string_view reason;
  bool has_tflops;
};

TEST(ComputeFacts, WhatIsNotKnownIsMissingWithAReason) {
  const Doubt doubts[] = {
      {R"("parameters": 124000000)", R"("parameters": null)", "the size of the model is not known", false},
      {R"("attention": true)", R"("attention": false)",
       "no attention layers: 6 operations per parameter and token may not hold", false},
      {R"("experts": false)", R"("experts": true)", "a mixture of experts: which parameters work is not known", false},
      {"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
       "what this GPU can do in that precision is not known", true},
      {R"("autocast_dtype": "bfloat16")", R"("autocast_dtype": "float8")", "the precision of its products is not known",
       true},
      {R"("current": 1)", R"("current": 9)", "the job uses no GPU that is known by name", true},
  };
  for (const Doubt& doubt : doubts) {
    FakeRecording recording;
    FakeJob{.steps = 60, .tokens = 16'384}.record(recording);
    for (const auto& [key, text] :
         {std::pair("model", kModel), std::pair("settings", kSettings), std::pair("accelerator", kAccelerator)}) {
      std::string said(text);
      if (const auto at = said.find(doubt.old_text); at != std::string::npos) {
        said.replace(at, doubt.old_text.size(), doubt.new_text);
      }
      recording.add_attribute(format("process.main.{}", key), said);
    }
    const FactTable facts = analyze({&recording});
    const Fact* efficiency = facts.find("compute.efficiency");
    ASSERT_NE(efficiency, nullptr) << doubt.reason;
    EXPECT_EQ(efficiency->text("reason"), doubt.reason);
    EXPECT_EQ(efficiency->number("tflops").has_value(), doubt.has_tflops) << doubt.reason;
    EXPECT_FALSE(efficiency->number("mfu_pct")) << doubt.reason;
  }
}

TEST(ComputeFacts, WithoutTokensNothingIsEstimated) {
  FakeRecording recording;
  FakeJob{.steps = 60}.record(recording);
  recording.add_attribute("process.main.model", std::string(kModel));
  EXPECT_EQ(analyze({&recording}).find("compute.efficiency"), nullptr);
}

TEST(ComputeFacts, WhatAHostileHookSaysIsNotBelieved) {
  FakeRecording recording;
  FakeJob{.steps = 60, .tokens = 5}.record(recording);
  recording.add_attribute("process.main.model", R"({"parameters": -1, "classes": {"a": 1}, "dtypes": [1]})");
  recording.add_attribute("process.main.settings", "[1, 2");
  recording.add_attribute("process.main.accelerator", R"({"names": [], "current": -5})");
  const Fact* efficiency = analyze({&recording}).find("compute.efficiency");
  EXPECT_EQ(efficiency, nullptr);
}

TEST(GpuPeaks, ByTheNamesThatDriversGive) {
  EXPECT_EQ(gpu_peaks("NVIDIA A100-SXM4-80GB")->bf16, 312);
  EXPECT_EQ(gpu_peaks("NVIDIA A100 80GB PCIe")->tf32, 156);
  EXPECT_EQ(gpu_peaks("Tesla V100-SXM2-16GB")->fp16, 125);
  EXPECT_EQ(gpu_peaks("Tesla T4")->fp16, 65);
  EXPECT_EQ(gpu_peaks("NVIDIA H100 PCIe")->bf16, 756);
  EXPECT_EQ(gpu_peaks("NVIDIA H100 NVL")->bf16, 835.5);
  EXPECT_EQ(gpu_peaks("NVIDIA L40S")->bf16, 362);
  EXPECT_EQ(gpu_peaks("NVIDIA GeForce RTX 4090")->fp32, 82.6);
  EXPECT_EQ(gpu_peaks("AMD Instinct MI300X")->bf16, 1307);
  EXPECT_FALSE(peak_tflops(*gpu_peaks("Tesla T4"), Precision::kBf16)) << "it has none";
  for (const char* name :
       {"", "NVIDIA", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H200 NVL", "NVIDIA A10G", "NVIDIA T400",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 3090 Ti", "GRID A100-10C"}) {
    EXPECT_FALSE(gpu_peaks(name)) << name;
  }
}

TEST(CommunicationFacts, ExplicitCallsPerStep) {
  FakeRecording recording;
  FakeJob{.steps = 100, .other_ms = 8, .role = ProcessRole::kRank, .rank = 3, .collective_ms = 5}.record(recording);
  const FactTable facts = analyze({&recording});
  const Fact* found = facts.find("communication.summary");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->where.rank, 3);
  EXPECT_EQ(found->number("calls_per_step"), 1);
  EXPECT_EQ(found->number("host_ms_per_step"), 5);
  EXPECT_EQ(found->number("bytes_per_step"), 400);
  EXPECT_EQ(found->text("call"), "all_reduce (gloo, group 0)");
  EXPECT_FALSE(found->number("reducer_ms"));
  EXPECT_FALSE(found->text("unseen"));
}

TEST(CommunicationFacts, WhatBackwardWaitsForIsCommunicationAndNotBackward) {
  FakeRecording recording;
  const FakeJob job{.steps = 300,
                    .workers = 1,
                    .batch_ms = 10,
                    .compute_ms = 100,
                    .jitter = 0,
                    .role = ProcessRole::kRank,
                    .rank = 0};
  job.record(recording);
  const Fact* plain = nullptr;
  const FactTable before = analyze({&recording});
  plain = before.find("breakdown.parts");
  ASSERT_NE(plain, nullptr);
  EXPECT_FALSE(plain->number("communication"));

  add_all(recording, "ddp.communication.ms", "rank 0", {900, 30, 30});
  add_all(recording, "ddp.overlap.ms", "rank 0", {0, 20, 20});
  recording.add_attribute("process.rank 0.communication_unseen", R"("DistributedDataParallel")");
  const FactTable facts = analyze({&recording});
  const Fact* parts = facts.find("breakdown.parts");
  ASSERT_NE(parts, nullptr);
  const double expected = 100 * 10 / job.step_ms();
  EXPECT_NEAR(*parts->number("communication"), expected, 0.5);
  EXPECT_NEAR(*plain->number("backward") - *parts->number("backward"), expected, 0.5);
  EXPECT_NEAR(*plain->number("forward"), *parts->number("forward"), 0.01);
  const Fact* found = facts.find("communication.summary");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->number("reducer_exposed_ms"), 10);
  EXPECT_FALSE(found->text("unseen")) << "the timers show it";
}

TEST(CommunicationFacts, UnseenCommunicationIsMissingWhateverCallsAreSeen) {
  FakeRecording recording;
  FakeJob{.steps = 300, .other_ms = 8, .role = ProcessRole::kRank, .rank = 0, .collective_ms = 5}.record(recording);
  const FactTable seen = analyze({&recording});
  EXPECT_TRUE(seen.find("breakdown.parts")->number("communication"));
  recording.add_attribute("process.rank 0.communication_unseen", R"x("on the device (nccl)")x");
  const FactTable facts = analyze({&recording});
  EXPECT_FALSE(facts.find("breakdown.parts")->number("communication"));
  EXPECT_EQ(facts.find("communication.summary")->text("unseen"), "on the device (nccl)");
  recording.add_attribute("process.rank 0.communication_unseen", "null");  // later it was told otherwise
  EXPECT_TRUE(analyze({&recording}).find("breakdown.parts")->number("communication"));
}

// A recorder that was started again is told no devices, and numbers the processes anew.
TEST(DeviceFacts, EachRecordingSpeaksByItsOwnAttributes) {
  FakeRecording first;
  FakeJob{.steps = 100}.record(first);
  first.add_attribute("process.main.accelerator", std::string(kAccelerator));
  add_all(first, "allocator.allocated.bytes", "main/cuda:1", {5, 9, 7});
  FakeRecording second;
  second.add_process({.pid = 7, .role = ProcessRole::kOther, .label = "bash"});
  add_all(second, "allocator.allocated.bytes", "main/cuda:1", {8, 8});
  for (const auto& readers : {std::vector<RecordingReader*>{&first, &second}, {&second, &first}}) {
    const FactTable facts = analyze(readers);
    const Fact* memory = facts.find("device.memory");
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(memory->number("total_bytes"), 85520809984.0);
  }
}

// Checkpoints of one process that two recorders saw, under different numbers.
TEST(Engine, PausesOfAProcessAddUpOverItsRecordings) {
  const auto record = [](FakeRecording& recording, std::int64_t from, bool is_later) {
    if (is_later) recording.add_process({.pid = 7, .role = ProcessRole::kOther, .label = "bash"});
    const std::uint32_t main = recording.add_process({.pid = 100, .role = ProcessRole::kMain, .has_hook = true});
    for (std::int64_t i = from; i < from + 100; ++i) {
      const std::int64_t start_ns = kBegin + i * kNsPerS;
      recording.add_span({.start_ns = start_ns,
                          .duration_ns = kNsPerS / 10,
                          .kind = SpanKind::kCheckpoint,
                          .process = main,
                          .step = i,
                          .value_a = 1'000'000});
      recording.add_span(
          {.start_ns = start_ns, .duration_ns = kNsPerS, .kind = SpanKind::kStep, .process = main, .step = i});
      recording.add_sample("cpu.count", "", MetricKind::kGauge, 1, {start_ns, Value::of(4.0)});
    }
  };
  FakeRecording first;
  record(first, 0, false);
  FakeRecording second;
  record(second, 100, true);
  const FactTable facts = analyze({&first, &second});
  const Fact* pauses = facts.find("pauses.part");
  ASSERT_NE(pauses, nullptr);
  EXPECT_EQ(pauses->text("what"), "checkpoint");
  EXPECT_EQ(pauses->number("bytes"), 1'000'000);
  EXPECT_NEAR(*pauses->number("bytes_per_s"), 1e7, 1);
  EXPECT_EQ(pauses->number("count"), 200);
}

}  // namespace
}  // namespace hotlap
