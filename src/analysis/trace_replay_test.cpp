// What a trace would take if something were free, on traces whose answer is known by hand.
#include "analysis/trace_replay.h"

#include <gtest/gtest.h>

#include <numeric>

#include "analysis/launch_links.h"
#include "support/fake_trace.h"

namespace hotlap {
namespace {

// A result is asked for after each span, as a run that is live does, and changes nothing.
TraceReplay::Result replayed(const FakeTrace& trace) {
  TraceReplay replay(trace.name_of());
  TraceReplay asked_often(trace.name_of());
  TraceReplay::Result last;
  for (const Span& span : trace.sorted()) {
    replay.add(span);
    asked_often.add(span);
    last = asked_often.result();
  }
  const TraceReplay::Result once = replay.result();
  EXPECT_EQ(last.replayed_ns, once.replayed_ns);
  EXPECT_EQ(last.path, once.path);
  return once;
}
double ms(const TraceReplay::Result& result, Freed freed) {
  return static_cast<double>(result.replayed_ns[static_cast<std::size_t>(freed)]) / 1e6;
}
double path_ms(const TraceReplay::Result& result, PathPart part) {
  return static_cast<double>(result.path[static_cast<std::size_t>(part)]) / 1e6;
}
double path_ms(const TraceReplay::Result& result, KernelSort sort) {
  return static_cast<double>(result.path[static_cast<std::size_t>(sort)]) / 1e6;
}
double wall_ms(const TraceReplay::Result& result) { return static_cast<double>(result.wall_ns) / 1e6; }

// What holds of every trace: with nothing taken away it takes what it took, with something free never longer, and the
// critical path is as long as the whole.
void expect_sound(const TraceReplay::Result& result, double error_ms = 0.02) {
  EXPECT_NEAR(ms(result, Freed::kNothing), wall_ms(result), error_ms);
  for (std::size_t i = 0; i < kFreedCount; ++i) {
    EXPECT_LE(ms(result, static_cast<Freed>(i)), wall_ms(result) + error_ms) << i;
  }
  const auto sum = std::accumulate(result.path.begin(), result.path.end(), std::int64_t{0});
  EXPECT_NEAR(static_cast<double>(sum) / 1e6, wall_ms(result), error_ms);
}

// Ten operators of 100 us that launch kernels of 20 us each: the host is what takes the time.
TEST(TraceReplay, ALaunchBoundLoopIsAsLongAsItsKernelsWhenDispatchIsFree) {
  FakeTrace trace;
  for (int i = 0; i < 10; ++i) {
    trace.add(SpanKind::kOperator, "aten::add", 100 * i, 100);
    trace.launch("cudaLaunchKernel", "volta_sgemm_32x32", 100 * i + 80, 10, 100 * i + 95, 20);
  }
  const TraceReplay::Result result = replayed(trace);
  expect_sound(result);
  EXPECT_NEAR(wall_ms(result), 1.015, 0.001);
  EXPECT_NEAR(ms(result, Freed::kDispatch), 10 * 0.02, 0.06);  // and the way to the device
  EXPECT_NEAR(ms(result, Freed::kWaits), 1.015, 0.001);
  EXPECT_NEAR(path_ms(result, PathPart::kDispatch), 0.99, 0.01);
  EXPECT_NEAR(path_ms(result, KernelSort::kMatrix), 0.02, 0.001);
}

// Kernels of 1 ms, launched in 100 us: only they count.
TEST(TraceReplay, ABusyDeviceGainsNothingFromAFasterHost) {
  FakeTrace trace;
  for (int i = 0; i < 10; ++i) {
    trace.add(SpanKind::kOperator, "aten::mm", 100 * i, 100);
    trace.launch("cudaLaunchKernel", "volta_sgemm_32x32", 100 * i + 80, 10, i == 0 ? 95 : 95 + 1000 * i, 1000);
  }
  const TraceReplay::Result result = replayed(trace);
  expect_sound(result);
  EXPECT_NEAR(ms(result, Freed::kDispatch), 10.0, 0.1);
  EXPECT_NEAR(ms(result, Freed::kMatrixType), 10.0 / 3, 0.2);
  EXPECT_NEAR(path_ms(result, KernelSort::kMatrix), 10, 0.001);
}

// Each step: 200 us of launches, a kernel of 1 ms, a wait for it, 300 us of Python: without the wait the launches and
// the Python of one step hide behind the kernel of the one before.
TEST(TraceReplay, AWaitInEachStepCostsWhatTheHostDoesAfterIt) {
  FakeTrace trace;
  std::int64_t at = 0;
  for (int step = 0; step < 10; ++step) {
    trace.add(SpanKind::kOperator, "aten::mm", at, 200);
    trace.launch("cudaLaunchKernel", "volta_sgemm_32x32", at + 180, 10, at + 195, 1000);
    trace.add(SpanKind::kOperator, "aten::item", at + 200, 1005);
    trace.add(SpanKind::kRuntime, "cudaStreamSynchronize", at + 205, 995);  // until 5 us behind the kernel
    at += 1205 + 300;
  }
  const TraceReplay::Result result = replayed(trace);
  expect_sound(result);
  EXPECT_NEAR(wall_ms(result), 9 * 1.505 + 1.205, 0.01);
  EXPECT_NEAR(ms(result, Freed::kWaits), 10 * 1.0 + 0.2, 0.2);
  EXPECT_NEAR(ms(result, Freed::kHostCode), wall_ms(result) - 9 * 0.3, 0.1);
  EXPECT_NEAR(path_ms(result, PathPart::kHostCode), 9 * 0.3, 0.05);
}

// With workers the batch comes when it is ready: a host that is faster before waits longer.
TEST(TraceReplay, ALoaderThatIsTooSlowStaysSoHoweverFastTheRestIs) {
  for (const bool has_workers : {true, false}) {
    FakeTrace trace;
    for (int step = 0; step < 10; ++step) {
      const std::int64_t at = 5000 * step;
      trace.add(SpanKind::kDataWait, has_workers ? "_MultiProcessingDataLoaderIter" : "_SingleProcessDataLoaderIter",
                at, 4000);
      trace.add(SpanKind::kOperator, "aten::mm", at + 4000, 1000);
      trace.launch("cudaLaunchKernel", "volta_sgemm_32x32", at + 4900, 10, at + 4915, 50);
    }
    const TraceReplay::Result result = replayed(trace);
    expect_sound(result);
    EXPECT_NEAR(ms(result, Freed::kDispatch), has_workers ? 49.1 : 40.1, 0.2) << has_workers;
    EXPECT_NEAR(ms(result, Freed::kData), 10.0, 0.1) << has_workers;
  }
}

TEST(TraceReplay, CopiesAndCommunicationThatNothingHides) {
  FakeTrace trace;
  trace.launch("cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)", 0, 10, 20, 1000);
  trace.launch("cudaLaunchKernel", "volta_sgemm_32x32", 20, 10, 1020, 500);
  trace.launch("cudaLaunchKernel", "ncclDevKernel_AllReduce", 40, 10, 1520, 2000, 9);  // waits for it on another stream
  trace.launch("cudaLaunchKernel", "volta_sgemm_32x32", 60, 10, 3520, 500);            // and that one for this
  const TraceReplay::Result result = replayed(trace);
  expect_sound(result);
  EXPECT_NEAR(wall_ms(result), 4.02, 0.001);
  EXPECT_NEAR(ms(result, Freed::kCopies), 3.02, 0.02);
  EXPECT_NEAR(ms(result, Freed::kCommunication), 2.02, 0.02);
  EXPECT_NEAR(path_ms(result, PathPart::kCopies), 1, 0.001);
  EXPECT_NEAR(path_ms(result, KernelSort::kCommunication), 2, 0.001);
  EXPECT_NEAR(path_ms(result, KernelSort::kMatrix), 1, 0.001);
}

TEST(TraceReplay, NothingOfNothing) {
  const FakeTrace empty;
  EXPECT_FALSE(replayed(empty).has_device);
  EXPECT_TRUE(empty.facts("replay").facts().empty());
  FakeTrace host_only;
  host_only.add(SpanKind::kOperator, "aten::add", 0, 100);
  EXPECT_TRUE(host_only.facts("replay").facts().empty());
}

TEST(LaunchLinks, ByTheOperatorsIdElseByWhatRanAroundTheCall) {
  FakeTrace trace;
  trace.add(SpanKind::kOperator, "aten::linear", 0, 100).value_a = 1;
  trace.add(SpanKind::kOperator, "aten::addmm", 10, 80).value_a = 2;
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 20, 5).value_a = 50;
  Span& with_id = trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 30, 5);
  with_id.value_a = 51;
  with_id.value_b = 1;
  trace.add(SpanKind::kRuntime, "cudaLaunchKernel", 120, 5).value_a = 52;  // inside no operator
  LaunchLinks links;
  for (const Span& span : trace.sorted()) links.add(span);
  Span kernel{.duration_ns = 10, .kind = SpanKind::kKernel, .value_a = 50};
  ASSERT_NE(links.operator_of(kernel), nullptr);
  EXPECT_EQ(links.operator_of(kernel)->id, 2);
  kernel.value_a = 51;
  EXPECT_EQ(links.operator_of(kernel)->id, 1);
  kernel.value_b = 2;  // what the kernel says itself goes first
  EXPECT_EQ(links.operator_of(kernel)->id, 2);
  kernel = {.duration_ns = 10, .kind = SpanKind::kKernel, .value_a = 52};
  EXPECT_EQ(links.operator_of(kernel), nullptr);
  ASSERT_NE(links.call_of(kernel), nullptr);
  EXPECT_EQ(links.call_of(kernel)->start_ns, 120'000);
  kernel.value_a = 53;
  EXPECT_EQ(links.call_of(kernel), nullptr);
}

}  // namespace
}  // namespace hotlap
