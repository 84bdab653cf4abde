// Steps, parts and facts from spans as a profiler's trace has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/trace_tables.h"
#include "support/fake_trace.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// One step of 100 ms: loader 40, forward 20, backward 25 (on autograd's thread), optimizer 10.
void add_step(FakeTrace& trace, int number, bool is_marked, bool has_loader = true) {
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
  FakeTrace trace;
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
    FakeTrace trace;
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
  FakeTrace trace;
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
  FakeTrace trace;
  add_step(trace, 0, false);
  EXPECT_TRUE(trace.steps().empty());
}

TEST(TraceFacts, OperatorsHaveOwnTimeTotalTimeAndTheirKernels) {
  FakeTrace trace;
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
  FakeTrace trace;
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
  EXPECT_EQ(facts.find("copies.copy")->text("direction"), "host to device");
  EXPECT_DOUBLE_EQ(field(facts, "copies.copy", "bytes_per_s"), 1e8);
  EXPECT_EQ(facts.find("copies.copy")->text("name"), "Memcpy HtoD (Pageable -> Device)");
}

TEST(TraceFacts, KernelsAreAddedUpBySortAndMatrixWorkByItsUnits) {
  FakeTrace trace;
  trace.add(SpanKind::kKernel, "volta_sgemm_128x64_nn", 0, 300, 7);
  trace.add(SpanKind::kKernel, "sm80_xmma_gemm_bf16bf16_bf16f32_f32", 300, 100, 7);
  trace.add(SpanKind::kKernel, "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>", 400, 100, 7);
  const FactTable facts = trace.facts("kernels");
  EXPECT_DOUBLE_EQ(field(facts, "kernels.sort", "total_ms", "matrix product"), 0.4);
  EXPECT_DOUBLE_EQ(field(facts, "kernels.sort", "share_pct", "element-wise"), 20);
  EXPECT_DOUBLE_EQ(field(facts, "kernels.matrix", "fp32_off_units_ms"), 0.3);
  EXPECT_DOUBLE_EQ(field(facts, "kernels.matrix", "on_units_ms"), 0.1);
  EXPECT_EQ(facts.find("kernels.matrix")->text("types"), "fp32 0.3 ms, bf16 0.1 ms");
  EXPECT_EQ(facts.find("kernels.matrix")->text("generation"), "ampere");
}

TEST(TraceFacts, DeviceTimeIsSplitByWhatOverlapsAndIdleTimeByItsCause) {
  FakeTrace trace;
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
  launch(4, 500, 510, 90, "gemm");  // idle 130..510: data 295, dispatch 77, launch 502..510
  trace.add(SpanKind::kRuntime, "cudaStreamSynchronize", 590, 60).value_a = 50;
  launch(5, 700, 705, 5, "gemm");  // idle 600..705: sync 50 and the call's 2 behind it, host 50, launch 3
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
  EXPECT_DOUBLE_EQ(ms("idle_dispatch_ms"), 0.077);
  EXPECT_DOUBLE_EQ(ms("idle_sync_ms"), 0.052);
  EXPECT_DOUBLE_EQ(ms("idle_host_ms"), 0.05);
  EXPECT_DOUBLE_EQ(ms("idle_launch_ms"), 0.011);
  EXPECT_DOUBLE_EQ(ms("idle_unknown_ms"), 0);
  EXPECT_DOUBLE_EQ(field(facts, "launch.summary", "launches"), 5);
}

// A serving engine's trace: what ran when the profiler began is not in it, and the next kernel, launched at once,
// waits.
TEST(TraceFacts, WorkThatWaitsForWhatIsNotInTheTraceIsNoLaunchThatTakesLong) {
  FakeTrace trace;
  trace.launch("hipLaunchKernel", "a", 0, 5, 10, 5);
  trace.launch("hipLaunchKernel", "b", 20, 5, 500'000, 5);
  trace.add(SpanKind::kRuntime, "hipMemcpyWithStream", 50, 499'990).value_a = 99;  // the host finds that out, too
  const FactTable facts = trace.facts("device_time");
  EXPECT_NEAR(field(facts, "device.time", "idle_queued_ms"), 499.965, 0.001);
  EXPECT_NEAR(field(facts, "device.time", "idle_launch_ms"), 0.01, 0.001);
  EXPECT_NEAR(field(facts, "device.time", "idle_sync_ms"), 0, 0.001);
}

// The first use of a library: one call takes seconds, which no CUDA graph would spare.
TEST(TraceFacts, OneCallThatTakesLongIsNoLaunchBoundLoop) {
  FakeTrace trace;
  trace.launch("cudaLaunchKernel", "a", 0, 5, 10, 5);
  trace.add(SpanKind::kOperator, "aten::empty", 20, 30'000);
  trace.add(SpanKind::kRuntime, "cudaMalloc", 30, 29'900).value_a = 98;
  trace.launch("cudaLaunchKernel", "b", 40'000, 8'000, 48'005, 5);  // loads code
  const FactTable facts = trace.facts("device_time");
  EXPECT_NEAR(field(facts, "device.time", "idle_setup_ms"), 29.9 + 8, 0.001);
  EXPECT_NEAR(field(facts, "device.time", "idle_dispatch_ms"), 0.1, 0.001);
}

TEST(TraceFacts, QueueDepthIsWhatWasLaunchedBehindWorkThatBegins) {
  FakeTrace trace;
  for (int i = 0; i < 8; ++i) trace.launch("cudaLaunchKernel", "a", 10 * i, 5, 100 + 50 * i, 50);
  const FactTable facts = trace.facts("device_time");
  EXPECT_NEAR(field(facts, "launch.summary", "queue_median"), 3.5, 0.5);      // of 0 to 7
  EXPECT_DOUBLE_EQ(field(facts, "launch.summary", "queue_empty_pct"), 12.5);  // the last one
}

// A job that is recorded live: devices are watched for some of the time, phases are the hook's.
TEST(TraceFacts, OutsideOfWindowsNothingIsKnownOfADevice) {
  FakeTrace trace;
  const auto window = [&](std::int64_t start_us, std::int64_t us) {
    trace.add(SpanKind::kDeviceWindow, "", start_us, us, 0).process = 2;
  };
  trace.add(SpanKind::kForward, "forward", 0, 240);
  trace.add(SpanKind::kDataWait, "loader", 300, 1000);
  window(100, 300);  // 100 to 400
  trace.launch("cudaLaunchKernel", "gemm", 95, 5, 100, 50);
  trace.launch("cudaLaunchKernel", "gemm", 195, 5, 200, 50);  // idle 150..200: forward
  window(5'000, 100);                                         // idle 250..400: 50 other code, 100 data
  trace.launch("cudaLaunchKernel", "gemm", 4'995, 5, 5'000, 100);
  const FactTable facts = trace.facts("device_time");
  const auto ms = [&](std::string_view name) { return field(facts, "device.time", name); };
  EXPECT_DOUBLE_EQ(ms("wall_ms"), 0.4);
  EXPECT_DOUBLE_EQ(ms("busy_ms"), 0.2);
  EXPECT_DOUBLE_EQ(ms("idle_ms"), 0.2);
  EXPECT_DOUBLE_EQ(ms("idle_dispatch_ms"), 0.05);
  EXPECT_DOUBLE_EQ(ms("idle_data_ms"), 0.1);
  EXPECT_DOUBLE_EQ(ms("idle_host_ms"), 0.05);
  const FactTable windows = trace.facts("device_windows");
  EXPECT_DOUBLE_EQ(field(windows, "device.windows", "windows"), 2);
  EXPECT_DOUBLE_EQ(field(windows, "device.windows", "seen_ms"), 0.4);
  EXPECT_TRUE(trace.facts("replay").facts().empty());
}

// Without a hook nobody tells what the host does beside launching.
TEST(TraceFacts, WhyADeviceIdlesIsNotKnownWhereTheHostIsNot) {
  FakeTrace trace;
  trace.add(SpanKind::kDeviceWindow, "", 100, 300, 0).process = 2;
  trace.launch("cudaLaunchKernel", "gemm", 95, 5, 100, 50);
  trace.launch("cudaLaunchKernel", "gemm", 195, 5, 200, 200);
  const FactTable facts = trace.facts("device_time");
  EXPECT_DOUBLE_EQ(field(facts, "device.time", "idle_host_ms"), 0);
  EXPECT_DOUBLE_EQ(field(facts, "device.time", "idle_dispatch_ms"), 0.005);
  EXPECT_DOUBLE_EQ(field(facts, "device.time", "idle_unknown_ms"), 0.045);
}

TEST(TraceFacts, AKernelBeforeItsLaunchIsNoLatency) {
  FakeTrace trace;
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 0, 2).value_a = 1;
  trace.add(SpanKind::kKernel, "a", 10, 5, 7).value_a = 1;
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 20, 2).value_a = 2;
  trace.add(SpanKind::kKernel, "a", 30, 5, 7).value_a = 3;
  const FactTable facts = trace.facts("device_time");
  EXPECT_DOUBLE_EQ(field(facts, "launch.summary", "launches"), 1);
  EXPECT_DOUBLE_EQ(field(facts, "device.time", "idle_unknown_ms"), 0.015);
}

TEST(TraceFacts, WaitsOfTheHostBelongToTheirOutermostOperator) {
  FakeTrace trace;
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
  const FakeTrace trace;
  for (const std::string_view analyzer : {"operators", "kernels", "device_time", "host_sync"}) {
    EXPECT_TRUE(trace.facts(analyzer).facts().empty()) << analyzer;
  }
}

TEST(RecentTimes, WhatIsToldLateCountsAsIfItHadComeInTime) {
  RecentTimes times;
  times.add(0, 10);
  times.add(100, 110);
  times.add(200, 210);
  times.add(50, 60);   // between
  times.add(55, 105);  // joins two
  times.add(20, 205);  // and all of them
  times.add(300, 310);
  times.add(-5, -1);  // before all
  EXPECT_EQ(times.within(-10, 400), 4 + 10 + 190 + 10);
  EXPECT_EQ(times.within(0, 30), 20);
  EXPECT_EQ(times.within(205, 305), 10);
}

// Two processes of a recording number their launches alike.
TEST(RecentById, KeepsProcessesApart) {
  RecentById<int> numbers;
  const auto id = [](std::int64_t process, std::int64_t number) { return (process << 32) | number; };
  for (std::int64_t process = 0; process < 8; ++process) {
    for (std::int64_t number = 0; number < 100; ++number) {
      numbers.put(id(process, number), static_cast<int>(process * 1000 + number));
    }
  }
  for (std::int64_t process = 0; process < 8; ++process) {
    const int* found = numbers.find(id(process, 42));
    ASSERT_NE(found, nullptr) << process;
    EXPECT_EQ(*found, process * 1000 + 42);
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
