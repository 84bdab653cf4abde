#include "analysis/step_builder.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "wire/ring_layout.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Span span(SpanKind kind, std::int64_t start_ms, std::int64_t ms, std::int64_t step = 0, std::uint32_t process = 1) {
  return {.start_ns = start_ms * kMs,
          .duration_ns = ms < 0 ? -1 : ms * kMs,
          .kind = kind,
          .process = process,
          .step = step};
}

std::vector<Step> build(const std::vector<Span>& spans) {
  std::vector<Step> steps;
  StepBuilder builder([&](const Step& step) { steps.push_back(step); });
  for (const Span& one : spans) builder.add(one);
  builder.finish();
  return steps;
}

TEST(StepBuilder, PartsBecomeOneStep) {
  const auto steps =
      build({span(SpanKind::kDataWait, 0, 50), span(SpanKind::kForward, 50, 20), span(SpanKind::kBackward, 70, 25),
             span(SpanKind::kOptimizer, 95, 4), span(SpanKind::kStep, 0, 100)});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].data_wait_ns, 50 * kMs);
  EXPECT_EQ(steps[0].forward_ns, 20 * kMs);
  EXPECT_EQ(steps[0].backward_ns, 25 * kMs);
  EXPECT_EQ(steps[0].optimizer_ns, 4 * kMs);
  EXPECT_EQ(steps[0].batches, 1);
  EXPECT_FALSE(steps[0].communication_ns);  // nobody measured it: missing, not 0
  EXPECT_FALSE(steps[0].checkpoint_ns);
}

TEST(StepBuilder, AHookThatWatchesMakesAnAbsentPartZero) {
  auto hook = span(SpanKind::kHook, 0, 0);
  hook.value_b = 1;
  const auto steps = build({span(SpanKind::kDataWait, 0, 50), span(SpanKind::kStep, 0, 100), hook});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].checkpoint_ns, 0);
  EXPECT_EQ(steps[0].gc_ns, 0);
  EXPECT_FALSE(steps[0].forward_ns);
}

TEST(StepBuilder, ACheckpointIsSeenInAStepThatIsNotWatched) {
  auto hook = span(SpanKind::kHook, 0, 0);
  hook.value_b = 1;
  const auto steps = build({span(SpanKind::kForward, 0, 20, 0), span(SpanKind::kStep, 0, 100, 0), hook,
                            span(SpanKind::kCheckpoint, 110, 80, 1), span(SpanKind::kStep, 100, 100, 1),
                            span(SpanKind::kStep, 200, 100, 2)});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_TRUE(steps[0].is_hooked);
  EXPECT_FALSE(steps[2].is_hooked);
  EXPECT_EQ(steps[1].checkpoint_ns, 80 * kMs);
  EXPECT_EQ(steps[2].checkpoint_ns, 0);
  EXPECT_FALSE(steps[2].forward_ns);
}

TEST(StepBuilder, ACheckpointOfAnotherThreadIsNoPartOfTheStep) {
  auto hook = span(SpanKind::kHook, 0, 0);
  hook.value_b = 1;
  auto step = span(SpanKind::kStep, 0, 100, 0);
  auto beside = span(SpanKind::kCheckpoint, 10, 60, 0);
  auto own = span(SpanKind::kCheckpoint, 75, 20, 0);
  step.thread = own.thread = 7;
  beside.thread = 8;
  const auto steps = build({hook, span(SpanKind::kForward, 0, 70, 0), beside, own, step});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].checkpoint_ns, 20 * kMs);
  EXPECT_EQ(steps[0].forward_ns, 70 * kMs);
}

TEST(StepBuilder, APartThatTheHookHasShedIsMissing) {
  auto hook = span(SpanKind::kHook, 100, 0, 1);
  hook.value_a = static_cast<std::int64_t>(HookPart::kPhases) | static_cast<std::int64_t>(HookPart::kGarbage);
  hook.value_b = 1;
  const auto steps =
      build({span(SpanKind::kDataWait, 0, 50, 0), span(SpanKind::kForward, 50, 20, 0), span(SpanKind::kStep, 0, 100, 0),
             span(SpanKind::kDataWait, 100, 50, 1), span(SpanKind::kStep, 100, 100, 1), hook});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].forward_ns, 20 * kMs);
  EXPECT_EQ(steps[1].data_wait_ns, 50 * kMs);
  EXPECT_FALSE(steps[1].forward_ns);  // it was not watched: missing, not 0
  EXPECT_FALSE(steps[1].gc_ns);
  EXPECT_FALSE(steps[1].evaluation_ns);  // told from training by its forwards
  EXPECT_EQ(steps[1].checkpoint_ns, 0);
}

TEST(StepBuilder, AStepThatWasNotWatchedHasNoParts) {
  const auto steps = build({span(SpanKind::kDataWait, 0, 50, 0), span(SpanKind::kForward, 50, 20, 0),
                            span(SpanKind::kStep, 0, 100, 0), span(SpanKind::kStep, 100, 100, 1)});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_TRUE(steps[0].is_hooked);
  EXPECT_FALSE(steps[1].is_hooked);
  EXPECT_FALSE(steps[1].data_wait_ns);
}

TEST(StepBuilder, PartsRecordedAfterTheStepStillCount) {
  const auto steps = build({span(SpanKind::kStep, 0, 100, 0), span(SpanKind::kDataWait, 0, 60, 0),
                            span(SpanKind::kDataWait, 100, 30, 1), span(SpanKind::kStep, 100, 100, 1)});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].data_wait_ns, 60 * kMs);
  EXPECT_EQ(steps[1].data_wait_ns, 30 * kMs);
}

TEST(StepBuilder, ProcessesAreKeptApart) {
  std::vector<Span> spans;
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::uint32_t p = 1; p <= 2; ++p) {
      spans.push_back(span(SpanKind::kDataWait, i * 100, 10 * p, i, p));
      spans.push_back(span(SpanKind::kStep, i * 100, 100, i, p));
    }
  }
  const auto steps = build(spans);
  ASSERT_EQ(steps.size(), 6U);
  for (const Step& step : steps) EXPECT_EQ(step.data_wait_ns, 10 * step.process * kMs);
}

TEST(StepBuilder, AccumulationIsOneStepOfSeveralBatches) {
  std::vector<Span> spans;
  for (std::int64_t i = 0; i < 4; ++i) {
    spans.push_back(span(SpanKind::kDataWait, i * 25, 5));
    spans.push_back(span(SpanKind::kForward, i * 25 + 5, 10));
    spans.push_back(span(SpanKind::kBackward, i * 25 + 15, 10));
  }
  spans.push_back(span(SpanKind::kStep, 0, 100));
  const auto steps = build(spans);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].batches, 4);
  EXPECT_EQ(steps[0].forward_ns, 40 * kMs);
  EXPECT_EQ(steps[0].data_wait_ns, 20 * kMs);
}

// A collection in the middle of backward is no backward; parts never add up to more than the step.
TEST(StepBuilder, WhatLiesInsideAnotherPartIsTakenFromIt) {
  const auto steps = build({span(SpanKind::kBackward, 40, 50), span(SpanKind::kGarbage, 50, 20),
                            span(SpanKind::kForward, 0, 40), span(SpanKind::kStep, 0, 100)});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].gc_ns, 20 * kMs);
  EXPECT_EQ(steps[0].backward_ns, 30 * kMs);
  EXPECT_EQ(steps[0].forward_ns, 40 * kMs);
}

// The hook has taken it off already (_core.py): an optimizer that calls a closure, 100 ms of which 25 are its own.
TEST(StepBuilder, WhatAnOptimizersClosureCalledIsTakenOffOnce) {
  const auto steps =
      build({span(SpanKind::kForward, 0, 30), span(SpanKind::kBackward, 30, 10), span(SpanKind::kForward, 50, 25),
             span(SpanKind::kBackward, 80, 10), span(SpanKind::kGarbage, 96, 2), span(SpanKind::kOptimizer, 75, 25),
             span(SpanKind::kStep, 0, 100)});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].forward_ns, 55 * kMs);
  EXPECT_EQ(steps[0].backward_ns, 20 * kMs);
  EXPECT_EQ(steps[0].optimizer_ns, 23 * kMs);  // a collection is inside it
}

// The names' texts are "name 1" and so on.
std::vector<Step> build_named(const std::vector<Span>& spans) {
  std::vector<Step> steps;
  StepBuilder builder([&](const Step& step) { steps.push_back(step); });
  builder.set_names([](std::uint32_t id) { return "name " + std::to_string(id); });
  for (const Span& one : spans) builder.add(one);
  builder.finish();
  return steps;
}

Span named(std::int64_t start_ms, std::int64_t ms, std::uint32_t name, std::int64_t step = 0) {
  Span out = span(SpanKind::kUser, start_ms, ms, step);
  out.name = name;
  return out;
}

using NamedMs = std::vector<std::pair<std::string, std::int64_t>>;
NamedMs named_ms(const Step& step) {
  NamedMs out;
  for (const NamedTime& one : step.named) out.emplace_back(one.name, one.ns / kMs);
  return out;
}

TEST(StepBuilder, NamedStretchesCountWhereNothingElseWasMeasured) {
  const auto steps = build_named({span(SpanKind::kDataWait, 0, 10), named(5, 15, 1), span(SpanKind::kForward, 30, 20),
                                  named(35, 5, 2), named(60, 5, 1), named(58, 10, 3), span(SpanKind::kGarbage, 70, 5),
                                  named(68, 12, 1), span(SpanKind::kStep, 0, 100)});
  ASSERT_EQ(steps.size(), 1U);
  // 10..20, 60..65 inside of another one, 68..80 without the collection; "name 2" is a part of the forward pass.
  EXPECT_EQ(named_ms(steps[0]), (NamedMs{{"name 1", 10 + 5 + 7}, {"name 3", 5}}));
  EXPECT_EQ(steps[0].forward_ns, 20 * kMs);
  EXPECT_EQ(steps[0].data_wait_ns, 10 * kMs);
}

TEST(StepBuilder, ANamedStretchOverTheEndOfAStepIsOfBoth) {
  const auto steps =
      build_named({span(SpanKind::kForward, 0, 50, 0), span(SpanKind::kOptimizer, 90, 10, 0),
                   span(SpanKind::kStep, 0, 100, 0), named(80, 40, 1, 1), span(SpanKind::kForward, 150, 50, 1),
                   span(SpanKind::kStep, 100, 100, 1), named(0, 250, 2, 1), span(SpanKind::kStep, 200, 100, 2)});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(named_ms(steps[0]), (NamedMs{{"name 1", 10}}));
  EXPECT_EQ(named_ms(steps[1]), (NamedMs{{"name 1", 20}}));
  EXPECT_TRUE(steps[2].named.empty());  // one around many steps says nothing about any
}

TEST(StepBuilder, NamedStretchesOfOthersAreNotOfTheStep) {
  auto of_observer = named(10, 20, 1, -1);
  auto of_other_thread = named(40, 20, 2);
  auto step = span(SpanKind::kStep, 0, 100);
  of_other_thread.thread = 8;
  step.thread = 7;
  const auto steps = build_named({of_observer, of_other_thread, span(SpanKind::kForward, 60, 40), step});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_TRUE(steps[0].named.empty());
}

TEST(StepBuilder, PartsNeverAddUpToMoreThanTheStep) {
  const auto steps =
      build({span(SpanKind::kForward, 0, 70), span(SpanKind::kBackward, 40, 50), span(SpanKind::kStep, 0, 100)});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_LE(*steps[0].forward_ns + *steps[0].backward_ns, 100 * kMs);
}

TEST(StepBuilder, AMissingEndIsMissingAndNotZero) {
  const auto steps = build({span(SpanKind::kDataWait, 0, 10), span(SpanKind::kForward, 10, -1),
                            span(SpanKind::kStep, 0, 100), span(SpanKind::kStep, 100, -1, 1)});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_FALSE(steps[0].forward_ns);
  EXPECT_EQ(steps[0].data_wait_ns, 10 * kMs);
}

TEST(StepBuilder, EvaluationBetweenStepsBelongsToNone) {
  const auto steps = build({span(SpanKind::kDataWait, 0, 10), span(SpanKind::kStep, 0, 100, 0),
                            span(SpanKind::kDataWait, 100, 400, -1), span(SpanKind::kForward, 500, 400, -1),
                            span(SpanKind::kEvaluation, 100, 900, -1), span(SpanKind::kDataWait, 1000, 20, 1),
                            span(SpanKind::kStep, 1000, 100, 1)});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[1].data_wait_ns, 20 * kMs);
  EXPECT_EQ(steps[1].duration_ns, 100 * kMs);
  EXPECT_EQ(steps[1].batches, 1);
}

TEST(StepBuilder, StepsWithTheHookOffAreMarked) {
  std::vector<Span> spans;
  for (std::int64_t i = 0; i < 6; ++i) {
    if (i < 3) spans.push_back(span(SpanKind::kDataWait, i * 100, 40, i));
    spans.push_back(span(SpanKind::kStep, i * 100, 100, i));
  }
  const auto steps = build(spans);
  ASSERT_EQ(steps.size(), 6U);
  EXPECT_TRUE(steps[2].is_hooked);
  EXPECT_FALSE(steps[4].is_hooked);
  EXPECT_FALSE(steps[4].data_wait_ns);
}

TEST(StepBuilder, WithoutAnyStepTheLoadersCadenceIsTaken) {
  std::vector<Span> spans;
  for (std::int64_t i = 0; i < 300; ++i) {
    spans.push_back(span(SpanKind::kDataWait, i * 100, 40));
    spans.push_back(span(SpanKind::kForward, i * 100 + 40, 50));
  }
  const auto steps = build(spans);
  ASSERT_EQ(steps.size(), 299U);
  EXPECT_TRUE(steps[0].is_inferred);
  EXPECT_EQ(steps[7].duration_ns, 100 * kMs);
  EXPECT_EQ(steps[7].data_wait_ns, 40 * kMs);
  EXPECT_EQ(steps[7].forward_ns, 50 * kMs);
}

// Long accumulation: many batches before the first step are not steps.
TEST(StepBuilder, AStepThatComesLateStopsTheGuessing) {
  std::vector<Span> spans;
  for (std::int64_t i = 0; i < 100; ++i) spans.push_back(span(SpanKind::kDataWait, i * 10, 4));
  spans.push_back(span(SpanKind::kStep, 0, 1000));
  const auto steps = build(spans);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_FALSE(steps[0].is_inferred);
  EXPECT_EQ(steps[0].batches, 100);
}

TEST(StepBuilder, ABoundedBacklogCountsWhatItDrops) {
  StepBuilder builder([](const Step&) {});
  for (std::int64_t i = 0; i < 20'000; ++i) builder.add(span(SpanKind::kBackward, i, 1));
  EXPECT_GT(builder.counts().spans_refused, 0U);
}

// The hook starts the next step after the pause, where nothing of it has happened yet.
TEST(StepBuilder, StepsUnderOurProfilerAreMarkedAndNoOthers) {
  auto on = span(SpanKind::kProfilePause, 200, 5, 2);
  on.value_a = 1;
  auto off = span(SpanKind::kProfilePause, 405, 30, 4);
  off.value_a = 0;
  const auto steps = build({span(SpanKind::kStep, 0, 100, 0), span(SpanKind::kStep, 100, 100, 1), on,
                            span(SpanKind::kStep, 205, 100, 2), span(SpanKind::kStep, 305, 100, 3), off,
                            span(SpanKind::kStep, 435, 100, 4), span(SpanKind::kStep, 535, 100, 5)});
  ASSERT_EQ(steps.size(), 6U);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].is_profiled, i == 2 || i == 3) << i;
}

TEST(StepBuilder, APauseThatReachesIntoAStepMarksItAlsoThatOfAnotherRank) {
  auto off = span(SpanKind::kProfilePause, 150, 30, 1, 1);
  off.value_a = 0;
  const auto steps = build({span(SpanKind::kStep, 0, 100, 0, 1), span(SpanKind::kStep, 0, 101, 0, 2), off,
                            span(SpanKind::kStep, 100, 130, 1, 1), span(SpanKind::kStep, 101, 129, 1, 2),
                            span(SpanKind::kStep, 230, 100, 2, 1), span(SpanKind::kStep, 230, 100, 2, 2)});
  ASSERT_EQ(steps.size(), 6U);
  for (const Step& step : steps) EXPECT_EQ(step.is_profiled, step.index == 1) << step.index << " " << step.process;
}

}  // namespace
}  // namespace hotlap
