// Steps, parts and facts from spans as a profiler's trace has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "analysis/registry.h"
#include "analysis/step_builder.h"
#include "analysis/trace_phases.h"
#include "analysis/trace_tables.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kUs = 1'000;

// A trace in microseconds: names get their ids as they come.
class Trace {
 public:
  Span& add(SpanKind kind, std::string_view name, std::int64_t start_us, std::int64_t us, std::uint32_t thread = 1) {
    Span span{.start_ns = start_us * kUs,
              .duration_ns = us < 0 ? -1 : us * kUs,
              .kind = kind,
              .process = 1,
              .thread = thread};
    span.name = id_of(name);
    if (kind == SpanKind::kKernel || kind == SpanKind::kTransfer) span.process = 2;
    return spans_.emplace_back(span);
  }
  std::uint32_t id_of(std::string_view name) {
    for (std::uint32_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return i + 1;
    }
    names_.emplace_back(name);
    return static_cast<std::uint32_t>(names_.size());
  }
  std::vector<Span> sorted() const {
    std::vector<Span> out = spans_;
    std::ranges::stable_sort(out, [](const Span& a, const Span& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
    });
    return out;
  }
  std::function<std::string(std::uint32_t)> name_of() const {
    return [this](std::uint32_t id) { return id == 0 || id > names_.size() ? std::string() : names_[id - 1]; };
  }

  std::vector<Step> steps() const {
    std::vector<Step> steps;
    StepBuilder builder([&](const Step& step) { steps.push_back(step); });
    TracePhases phases(name_of(), {.span = [&](const Span& span) { builder.add(span); },
                                   .set_inferred = [&](std::uint32_t process) { builder.set_inferred(process); }});
    for (const Span& span : sorted()) phases.add(span);
    phases.finish();
    builder.finish();
    return steps;
  }

  FactTable facts(std::string_view analyzer, std::size_t chunk = SIZE_MAX) const {
    const RunInfo run;
    const RecordingInfo recording;
    const std::vector<ProcessInfo> processes{{.slot = 1, .role = ProcessRole::kMain}, {.slot = 2, .label = "gpu0"}};
    const RunDescription description{
        .run = &run, .recording = &recording, .processes = processes, .name_of = name_of()};
    FactTable out;
    for (const AnalyzerSpec* spec : all_analyzers()) {
      if (spec->id != analyzer) continue;
      const auto one = spec->open(description);
      const std::vector<Span> spans = sorted();
      for (std::size_t at = 0; at < spans.size();) {
        std::vector<Span> lot;
        for (; at < spans.size() && lot.size() < chunk; ++at) {
          if (std::ranges::find(spec->spans, spans[at].kind) != spec->spans.end()) lot.push_back(spans[at]);
        }
        one->on_spans(lot);
      }
      // What is merged into an empty one says the same.
      const auto merged = spec->open(description);
      merged->merge(*one);
      merged->snapshot(out);
    }
    return out;
  }

 private:
  std::vector<Span> spans_;
  std::vector<std::string> names_;
};

// One step of 100 ms: loader 40, forward 20, backward 25 (on autograd's thread), optimizer 10.
void add_step(Trace& trace, int number, bool is_marked, bool has_loader = true) {
  const std::int64_t at = number * 100'000;
  if (is_marked) trace.add(SpanKind::kStep, "ProfilerStep#" + std::to_string(number), at, 100'000).step = number;
  if (has_loader) {
    trace.add(SpanKind::kDataWait, "enumerate(DataLoader)#next", at + 1000, 40'000);
    trace.add(SpanKind::kOperator, "aten::stack", at + 2000, 5000);  // inside the loader: no forward
  }
  trace.add(SpanKind::kOperator, "aten::conv2d", at + 42'000, 8000);
  trace.add(SpanKind::kOperator, "aten::convolution", at + 42'500, 7000);
  trace.add(SpanKind::kOperator, "aten::relu", at + 51'000, 11'000);
  trace.add(SpanKind::kOperator, "autograd::engine::evaluate_function: ReluBackward0", at + 63'000, 10'000, 9);
  trace.add(SpanKind::kOperator, "autograd::engine::evaluate_function: ConvolutionBackward0", at + 74'000, 14'000, 9);
  trace.add(SpanKind::kOperator, "aten::norm", at + 88'100, 500);  // clipping
  trace.add(SpanKind::kOptimizer, "Optimizer.step#SGD.step", at + 89'000, 10'000);
  trace.add(SpanKind::kOperator, "aten::add_", at + 89'500, 500);
}

void expect_parts(const Step& step) {
  EXPECT_EQ(step.data_wait_ns.value_or(-1), 40 * kMs);
  EXPECT_EQ(step.forward_ns.value_or(-1), 20 * kMs);
  EXPECT_EQ(step.backward_ns.value_or(-1), 25 * kMs);
  EXPECT_EQ(step.optimizer_ns.value_or(-1), 10 * kMs);
  EXPECT_FALSE(step.communication_ns.has_value());  // nobody measured it
}

TEST(TracePhases, MarkedStepsAreTakenWithTheirNumbersAndParts) {
  Trace trace;
  for (int i = 3; i < 8; ++i) add_step(trace, i, true);
  const auto steps = trace.steps();
  ASSERT_EQ(steps.size(), 5U);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].index, static_cast<std::int64_t>(i) + 3);
    EXPECT_EQ(steps[i].duration_ns, 100 * kMs);
    EXPECT_FALSE(steps[i].is_inferred);
    expect_parts(steps[i]);
  }
}

TEST(TracePhases, WithoutMarksStepsAreInferredWithinTwoPercent) {
  for (const bool has_loader : {true, false}) {
    Trace trace;
    for (int i = 0; i < 6; ++i) add_step(trace, i, false, has_loader);
    const auto steps = trace.steps();
    ASSERT_GE(steps.size(), 5U) << has_loader;
    for (std::size_t i = has_loader ? 0 : 1; i < 5; ++i) {
      EXPECT_TRUE(steps[i].is_inferred);
      EXPECT_NEAR(static_cast<double>(steps[i].duration_ns), 100.0 * kMs, 2.0 * kMs) << has_loader << i;
      if (has_loader) {
        expect_parts(steps[i]);
      } else {
        EXPECT_FALSE(steps[i].data_wait_ns.has_value());
      }
    }
  }
}

TEST(TracePhases, AccumulatedBatchesAreOneStep) {
  Trace trace;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t at = i * 10'000;
    trace.add(SpanKind::kDataWait, "enumerate(DataLoader)#next", at, 1000);
    trace.add(SpanKind::kOperator, "aten::linear", at + 1000, 4000);
    trace.add(SpanKind::kOperator, "autograd::engine::evaluate_function: AddmmBackward0", at + 5000, 3000);
    if (i % 2 == 1) trace.add(SpanKind::kOptimizer, "Optimizer.step#SGD.step", at + 8000, 1900);
  }
  const auto steps = trace.steps();
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[1].batches, 2);
  EXPECT_NEAR(static_cast<double>(steps[1].duration_ns), 20.0 * kMs, 0.4 * kMs);
  EXPECT_EQ(steps[1].forward_ns, 8 * kMs);  // both, although one stands behind a backward pass
}

TEST(TracePhases, NothingIsInferredFromTooLittle) {
  Trace trace;
  add_step(trace, 0, false);
  EXPECT_TRUE(trace.steps().empty());
}

double field(const FactTable& facts, std::string_view kind, std::string_view name, std::string_view of = {}) {
  for (const Fact* fact : facts.all(kind)) {
    if (of.empty() || fact->text("name") == std::string(of)) return fact->number(name).value_or(-1);
  }
  return -2;
}

TEST(TraceFacts, OperatorsHaveOwnTimeTotalTimeAndTheirKernels) {
  Trace trace;
  trace.add(SpanKind::kOperator, "aten::conv2d", 0, 100).value_a = 1;
  trace.add(SpanKind::kOperator, "aten::convolution", 10, 80).value_a = 2;
  trace.add(SpanKind::kOperator, "aten::convolution", 20, 30).value_a = 3;  // inside itself
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 25, 5).value_a = 77;
  Span& kernel = trace.add(SpanKind::kKernel, "gemm", 40, 500, 7);
  kernel.value_a = 77;
  kernel.value_b = 3;
  trace.add(SpanKind::kOperator, "crossing", 95, 10).value_a = 4;  // outlives what holds it by 5
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{100}}) {
    const FactTable facts = trace.facts("operators", chunk);
    EXPECT_DOUBLE_EQ(field(facts, "operators.operator", "self_ms", "aten::conv2d"), 0.015);
    EXPECT_DOUBLE_EQ(field(facts, "operators.operator", "total_ms", "aten::conv2d"), 0.1);
    EXPECT_DOUBLE_EQ(field(facts, "operators.operator", "total_ms", "aten::convolution"), 0.08);
    EXPECT_DOUBLE_EQ(field(facts, "operators.operator", "self_ms", "aten::convolution"), 0.08);
    EXPECT_DOUBLE_EQ(field(facts, "operators.operator", "device_ms", "aten::convolution"), 0.5);
    EXPECT_DOUBLE_EQ(field(facts, "operators.operator", "calls", "aten::convolution"), 2);
    EXPECT_DOUBLE_EQ(field(facts, "operators.summary", "calls"), 4);
  }
}

TEST(TraceFacts, KernelTimeIsNeverAboveTheWall) {
  Trace trace;
  trace.add(SpanKind::kKernel, "a", 0, 100, 7);
  trace.add(SpanKind::kKernel, "a", 50, 100, 7);  // overlaps on its own stream
  trace.add(SpanKind::kKernel, "b", 0, 5, 8);
  trace.add(SpanKind::kKernel, "b", 20, -1, 8);
  trace.add(SpanKind::kTransfer, "Memcpy HtoD (Pageable -> Device)", 200, 10, 7).value_b = 1000;
  const FactTable facts = trace.facts("kernels");
  EXPECT_DOUBLE_EQ(field(facts, "kernels.kernel", "total_ms", "a"), 0.15);
  EXPECT_DOUBLE_EQ(field(facts, "kernels.kernel", "mean_us", "a"), 100);
  EXPECT_DOUBLE_EQ(field(facts, "kernels.summary", "total_ms"), 0.155);
  EXPECT_DOUBLE_EQ(field(facts, "copies.copy", "pageable"), 1);
  EXPECT_DOUBLE_EQ(field(facts, "copies.copy", "bytes_per_s"), 1e8);
  EXPECT_EQ(facts.find("copies.copy")->text("name"), "Memcpy HtoD (Pageable -> Device)");
}

TEST(TraceFacts, DeviceTimeIsSplitByWhatOverlapsAndIdleTimeByItsCause) {
  Trace trace;
  const auto launch = [&](std::int64_t id, std::int64_t call_us, std::int64_t start_us, std::int64_t us,
                          std::string_view name, std::uint32_t stream = 7) {
    trace.add(SpanKind::kRuntime, "cudaLaunchKernel", call_us, 2).value_a = id;
    trace.add(name.starts_with("Memcpy") ? SpanKind::kTransfer : SpanKind::kKernel, name, start_us, us, stream)
        .value_a = id;
  };
  launch(1, 0, 5, 95, "gemm");                         // 5..100
  launch(2, 1, 80, 40, "ncclDevKernel_AllReduce", 8);  // 80..120: 20 exposed
  launch(3, 2, 110, 20, "Memcpy DtoH", 9);             // 110..130: 10 exposed
  trace.add(SpanKind::kDataWait, "next", 125, 300);    // 130..425 waits for data
  trace.add(SpanKind::kOperator, "aten::add", 425, 100);
  launch(4, 500, 510, 90, "gemm");  // idle 130..500: data 295, dispatch 75; launch 500..510
  trace.add(SpanKind::kRuntime, "cudaStreamSynchronize", 590, 60).value_a = 50;
  launch(5, 700, 705, 5, "gemm");  // idle 600..700: sync 50, host 50; launch 5
  const FactTable facts = trace.facts("device_time");
  const auto ms = [&](std::string_view name) { return field(facts, "device.time", name); };
  EXPECT_EQ(facts.find("device.time")->where.device, "gpu0");
  EXPECT_DOUBLE_EQ(ms("wall_ms"), 0.705);
  EXPECT_DOUBLE_EQ(ms("compute_ms"), 0.19);
  EXPECT_DOUBLE_EQ(ms("communication_ms"), 0.04);
  EXPECT_DOUBLE_EQ(ms("exposed_communication_ms"), 0.02);
  EXPECT_DOUBLE_EQ(ms("copy_ms"), 0.02);
  EXPECT_DOUBLE_EQ(ms("exposed_copy_ms"), 0.01);
  EXPECT_DOUBLE_EQ(ms("idle_ms"), 0.485);
  EXPECT_DOUBLE_EQ(ms("idle_data_ms"), 0.295);
  EXPECT_DOUBLE_EQ(ms("idle_dispatch_ms"), 0.075);
  EXPECT_DOUBLE_EQ(ms("idle_sync_ms"), 0.05);
  EXPECT_DOUBLE_EQ(ms("idle_host_ms"), 0.05);
  EXPECT_DOUBLE_EQ(ms("idle_launch_ms"), 0.015);
  EXPECT_DOUBLE_EQ(ms("idle_unknown_ms"), 0);
  EXPECT_DOUBLE_EQ(field(facts, "launch.summary", "launches"), 5);
}

TEST(TraceFacts, AKernelBeforeItsLaunchIsNoLatency) {
  Trace trace;
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 0, 2).value_a = 1;
  trace.add(SpanKind::kKernel, "a", 10, 5, 7).value_a = 1;
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 20, 2).value_a = 2;
  trace.add(SpanKind::kKernel, "a", 30, 5, 7).value_a = 3;
  const FactTable facts = trace.facts("device_time");
  EXPECT_DOUBLE_EQ(field(facts, "launch.summary", "launches"), 1);
  EXPECT_DOUBLE_EQ(field(facts, "device.time", "idle_unknown_ms"), 0.015);
}

TEST(TraceFacts, WaitsOfTheHostBelongToTheirOutermostOperator) {
  Trace trace;
  trace.add(SpanKind::kOperator, "aten::item", 0, 100);
  trace.add(SpanKind::kOperator, "aten::_local_scalar_dense", 1, 98);
  trace.add(SpanKind::kRuntime, "cudaStreamSynchronize", 10, 80);
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 110, 5);
  trace.add(SpanKind::kRuntime, "cudaDeviceSynchronize", 120, 30);
  const FactTable facts = trace.facts("host_sync");
  EXPECT_DOUBLE_EQ(field(facts, "sync.caller", "total_ms", "aten::item"), 0.08);
  EXPECT_DOUBLE_EQ(field(facts, "sync.caller", "total_ms", ""), 0.08);  // the first: most of it
  EXPECT_DOUBLE_EQ(field(facts, "sync.summary", "calls"), 2);
  EXPECT_DOUBLE_EQ(field(facts, "sync.summary", "in_operators_ms"), 0.08);
}

TEST(TraceFacts, NoTraceNoFacts) {
  const Trace trace;
  for (const std::string_view analyzer : {"operators", "kernels", "device_time", "host_sync"}) {
    EXPECT_TRUE(trace.facts(analyzer).facts().empty()) << analyzer;
  }
}

TEST(RecentTimes, CountsWhatCoversAStretchOnce) {
  RecentTimes times;
  times.add(0, 10);
  times.add(5, 20);
  times.add(30, 40);
  EXPECT_EQ(times.within(0, 50), 30);
  EXPECT_EQ(times.within(15, 35), 10);
  EXPECT_EQ(times.within(41, 50), 0);
}

}  // namespace
}  // namespace hotlap
