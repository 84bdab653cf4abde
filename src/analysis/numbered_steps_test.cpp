// Steps of timelines whose spans tell the number of theirs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/fake_trace.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A data-parallel rank with two pipeline stages as threads, the parameters' gathering on a third one: step `number`
// begins with it at `at` and ends with the optimizer 100 ms later.
void add_pipeline_step(FakeTrace& trace, std::int64_t number, std::int64_t at) {
  const auto add = [&](std::string_view name, std::int64_t start_ms, std::int64_t ms, std::uint32_t thread) {
    trace.add(SpanKind::kOperator, name, at + start_ms * 1000, ms * 1000, thread).step = number;
  };
  add("params-all-gather", 0, 5, 3);
  add("forward-compute", 5, 10, 1);
  add("forward-send", 15, 1, 4);
  add("forward-compute", 15, 20, 2);
  add("backward-compute", 35, 30, 2);
  add("backward-compute", 65, 15, 1);
  add("grads-reduce-scatter", 80, 12, 3);
  add("optimizer", 92, 7, 1);
  add("optimizer", 92, 8, 2);
}

TEST(NumberedSteps, AStepIsFromTheFirstBeginToTheLastEndOfItsNumber) {
  FakeTrace trace;
  const std::vector<std::int64_t> numbers{23, 25, 33, 34, 259};  // a profile of chosen steps
  std::int64_t at = 44;
  for (const std::int64_t number : numbers) {
    add_pipeline_step(trace, number, at);
    at += 110'000;  // what lies between them is in none
  }
  const std::vector<Step> steps = trace.steps();
  ASSERT_EQ(steps.size(), numbers.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].index, numbers[i]);
    EXPECT_EQ(steps[i].duration_ns, 100 * kMs);
    EXPECT_TRUE(steps[i].is_inferred);
    // Of the stage that works most; the other one runs beside it.
    EXPECT_EQ(steps[i].forward_ns, 20 * kMs);
    EXPECT_EQ(steps[i].backward_ns, 30 * kMs);
    EXPECT_EQ(steps[i].optimizer_ns, 8 * kMs);
    EXPECT_FALSE(steps[i].data_wait_ns.has_value());
  }
}

TEST(NumberedSteps, ASpanThatReachesOverTheNextStepDoesNotStretchIts) {
  FakeTrace trace;
  for (std::int64_t number = 0; number < 40; ++number) add_pipeline_step(trace, number, number * 100'000);
  trace.add(SpanKind::kUser, "write-checkpoint", 450'000, 130'000, 9).step = 4;
  const std::vector<Step> steps = trace.steps();
  ASSERT_EQ(steps.size(), 40U);
  EXPECT_EQ(steps[4].duration_ns, 100 * kMs);
}

TEST(NumberedSteps, NeighboursThatOverlapByAMicrosecondBothCount) {
  FakeTrace trace;
  for (std::int64_t number = 0; number < 4; ++number) {
    trace.add(SpanKind::kOperator, "forward-compute", number * 100'000, 40'001).step = number;
    trace.add(SpanKind::kOperator, "backward-compute", number * 100'000 + 40'000, 50'000).step = number;
    trace.add(SpanKind::kOperator, "forward-compute", number * 100'000 + 41'000, 10'000).step = number;  // inside it
    trace.add(SpanKind::kOperator, "optimizer", number * 100'000 + 90'000, 10'000).step = number;
  }
  const std::vector<Step> steps = trace.steps();
  ASSERT_EQ(steps.size(), 4U);
  for (const Step& step : steps) {
    EXPECT_EQ(step.forward_ns, 40 * kMs + 1000);
    EXPECT_EQ(step.backward_ns, 50 * kMs - 1000);
    EXPECT_EQ(step.optimizer_ns, 10 * kMs);
  }
}

TEST(NumberedSteps, NumbersThatComeAgainAreNoneOfSteps) {
  FakeTrace trace;
  for (int image = 0; image < 4; ++image) {
    for (int step = 0; step < 10; ++step) {  // of denoising
      trace.add(SpanKind::kOperator, "unet", image * 100'000 + step * 10'000, 9000).step = step;
    }
  }
  EXPECT_TRUE(trace.steps().empty());
}

TEST(NumberedSteps, MarkedStepsGoBeforeNumbers) {
  FakeTrace trace;
  for (std::int64_t number = 0; number < 4; ++number) {
    trace.add(SpanKind::kStep, "ProfilerStep#", number * 120'000, 120'000).step = number;
    add_pipeline_step(trace, number, number * 120'000);
  }
  const std::vector<Step> steps = trace.steps();
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[1].duration_ns, 120 * kMs);
  EXPECT_FALSE(steps[1].is_inferred);
}

TEST(NumberedSteps, WithoutNumbersTheSameTimelineIsCutByTheOptimizer) {
  FakeTrace trace;
  for (std::int64_t number = 0; number < 6; ++number) add_pipeline_step(trace, number, number * 100'000);
  FakeTrace bare;
  for (const Span& span : trace.sorted()) {
    bare.add(span.kind, trace.name_of()(span.name), span.start_ns / 1000, span.duration_ns / 1000, span.thread);
  }
  const std::vector<Step> steps = bare.steps();
  ASSERT_EQ(steps.size(), 6U);
  for (std::size_t i = 1; i < steps.size(); ++i) EXPECT_EQ(steps[i].duration_ns, 100 * kMs);
}

}  // namespace
}  // namespace hotlap
