// Steps and parts of traces in which the program labelled ranges itself (NVTX, record_function), and of XLA, whose
// host only hands programs to the device.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/fake_trace.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A step of 100 ms: its label, and on the same thread the loader 60, forward 15, backward 15, optimizer 5.
void add_labelled_step(FakeTrace& trace, const std::string& label, std::int64_t at, std::uint32_t thread = 1) {
  trace.add(SpanKind::kUser, label, at, 100'000, thread);
  trace.add(SpanKind::kDataWait, "dataloader", at + 1000, 60'000, thread);
  trace.add(SpanKind::kForward, "forward", at + 62'000, 15'000, thread);
  trace.add(SpanKind::kOperator, "aten::linear", at + 63'000, 5000, thread);
  trace.add(SpanKind::kBackward, "backward", at + 78'000, 15'000, thread);
  trace.add(SpanKind::kOptimizer, "optimizer.step", at + 94'000, 5000, thread);
}

void expect_steps(const std::vector<Step>& steps, std::size_t count, std::int64_t first) {
  ASSERT_EQ(steps.size(), count);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].index, first + static_cast<std::int64_t>(i));
    EXPECT_EQ(steps[i].duration_ns, 100 * kMs);
    EXPECT_TRUE(steps[i].is_inferred);
    EXPECT_EQ(steps[i].data_wait_ns, 60 * kMs);
    EXPECT_EQ(steps[i].forward_ns, 15 * kMs);
    EXPECT_EQ(steps[i].backward_ns, 15 * kMs);
    EXPECT_EQ(steps[i].optimizer_ns, 5 * kMs);
  }
}

TEST(LabelledSteps, AreTheRangesThatTheProgramPushed) {
  for (const char* label : {"step ", "iteration ", "Step_", "global_step="}) {
    FakeTrace trace;
    for (int i = 7; i < 12; ++i) add_labelled_step(trace, label + std::to_string(i), i * 110'000);
    expect_steps(trace.steps(), 5, 7);
  }
}

TEST(LabelledSteps, WithoutNumbersAreCounted) {
  FakeTrace trace;
  for (int i = 0; i < 5; ++i) add_labelled_step(trace, "train_step", i * 110'000);
  expect_steps(trace.steps(), 5, 0);
}

TEST(LabelledSteps, OfSeveralLabelsTheOutermostCounts) {
  FakeTrace trace;
  for (int i = 0; i < 5; ++i) {
    add_labelled_step(trace, "step " + std::to_string(i), i * 110'000);
    for (int batch = 0; batch < 2; ++batch) {
      trace.add(SpanKind::kUser, "batch " + std::to_string(2 * i + batch), i * 110'000 + 62'000 + batch * 15'000,
                15'000);
    }
  }
  expect_steps(trace.steps(), 5, 0);
}

TEST(LabelledSteps, AreThoseOfTheTrainingThread) {
  FakeTrace trace;
  for (int i = 0; i < 5; ++i) {
    add_labelled_step(trace, "step " + std::to_string(i), i * 110'000);
    trace.add(SpanKind::kUser, "batch " + std::to_string(i), i * 110'000, 110'000, 9);  // a loader's thread
  }
  expect_steps(trace.steps(), 5, 0);
}

TEST(LabelledSteps, ThatCoverLittleOfTheTimeAreNone) {
  FakeTrace trace;
  for (int i = 0; i < 5; ++i) trace.add(SpanKind::kUser, "step " + std::to_string(i), i * 100'000, 20'000);
  EXPECT_TRUE(trace.steps().empty());
}

TEST(LabelledSteps, ThatOverlapAreNone) {
  FakeTrace trace;
  for (int i = 0; i < 5; ++i) trace.add(SpanKind::kUser, "step " + std::to_string(i), i * 100'000, 150'000);
  EXPECT_TRUE(trace.steps().empty());
}

TEST(LabelledSteps, WhoseNumbersBeginAgainWithEachEpochAreCounted) {
  FakeTrace trace;
  for (int i = 0; i < 6; ++i) add_labelled_step(trace, "step " + std::to_string(i % 3), i * 110'000);
  expect_steps(trace.steps(), 6, 0);
}

TEST(LabelledSteps, MarkedStepsGoBeforeLabels) {
  FakeTrace trace;
  for (int i = 0; i < 4; ++i) {
    trace.add(SpanKind::kStep, "ProfilerStep#" + std::to_string(i), i * 120'000, 120'000).step = i;
    add_labelled_step(trace, "step " + std::to_string(i), i * 120'000 + 5000);
  }
  const std::vector<Step> steps = trace.steps();
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[1].duration_ns, 120 * kMs);
  EXPECT_FALSE(steps[1].is_inferred);
}

// A step of 100 ms as XLA's host shows it: the wait on a thread of TensorFlow's, then the program is handed over.
void add_xla_step(FakeTrace& trace, std::int64_t at) {
  trace.add(SpanKind::kDataWait, "IteratorGetNext", at, 60'000, 78);
  trace.add(SpanKind::kOperator, "train", at, 100'000, 77);
  trace.add(SpanKind::kOperator, "PjitFunction(train_step)", at + 60'000, 300, 77);
}

TEST(StepsOfXla, WaitForDataOnAnyThreadAndHaveNoForwardPass) {
  FakeTrace trace;
  for (int i = 0; i < 5; ++i) {
    trace.add(SpanKind::kStep, std::to_string(i), i * 100'000, 100'000, 0).step = i;
    add_xla_step(trace, i * 100'000);
  }
  const std::vector<Step> steps = trace.steps(TracePhases::Host::kHandsOverPrograms);
  ASSERT_EQ(steps.size(), 5U);
  for (const Step& step : steps) {
    EXPECT_EQ(step.data_wait_ns, 60 * kMs);
    EXPECT_FALSE(step.forward_ns.has_value());
  }
}

TEST(StepsOfXla, AreNumberedByWhatTheirEventsTell) {
  FakeTrace trace;
  for (int i = 0; i < 5; ++i) {
    trace.add(SpanKind::kDataWait, "IteratorGetNext", i * 100'000, 60'000, 78);
    trace.add(SpanKind::kOperator, "train", i * 100'000, 99'000, 77).step = 30 + i;
  }
  const std::vector<Step> steps = trace.steps(TracePhases::Host::kHandsOverPrograms);
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[2].index, 32);
  EXPECT_EQ(steps[2].duration_ns, 99 * kMs);
  EXPECT_EQ(steps[2].data_wait_ns, 60 * kMs);
}

TEST(DeviceTime, IdleWhileTheHostWaitsForDataIsThatAlsoWithoutLaunches) {
  FakeTrace trace;
  for (int i = 0; i < 4; ++i) {
    trace.add(SpanKind::kKernel, "fusion.1", i * 100'000, 20'000);
    trace.add(SpanKind::kDataWait, "IteratorGetNext", i * 100'000 + 30'000, 60'000);
  }
  const FactTable facts = trace.facts("device_time");
  EXPECT_DOUBLE_EQ(field(facts, "device.time", "idle_data_ms"), 3 * 60);
  EXPECT_DOUBLE_EQ(field(facts, "device.time", "idle_unknown_ms"), 3 * 20);
}

// The host computes for 15 ms between what it launches: in compute_iou, called by main, which calls two short ones.
TEST(DeviceTime, IdleTimeOfTheHostIsNamedByTheInnermostFunctionThatCoversIt) {
  FakeTrace trace;
  trace.add(SpanKind::kFunction, "train.py(1): main", 0, 200'000);
  for (int i = 0; i < 6; ++i) {
    const std::int64_t at = i * 20'000;
    trace.launch("cudaLaunchKernel", "gemm", at, 10, at + 20, 4000);
    trace.add(SpanKind::kFunction, "train.py(88): compute_iou", at + 4500, 15'300);
    trace.add(SpanKind::kFunction, "box.py(3): area", at + 4500, 7000);
    trace.add(SpanKind::kFunction, "box.py(9): clip", at + 12'000, 7000);
  }
  const FactTable facts = trace.facts("device_time");
  EXPECT_EQ(facts.find("device.idle_function")->text("name"), "train.py(88): compute_iou");
  EXPECT_DOUBLE_EQ(field(facts, "device.idle_function", "calls"), 5);
  EXPECT_NEAR(field(facts, "device.idle_function", "total_ms"), 5 * 15.98, 0.01);
}

}  // namespace
}  // namespace hotlap
