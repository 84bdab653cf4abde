// How steps change in the course of a run, and what lies between them: made of single spans.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/clock.h"
#include "support/fake_recording.h"

namespace hotlap {
namespace {

FactTable analyze(FakeRecording& recording) {
  std::vector<RecordingReader*> readers{&recording};
  RunInfo run;
  RunAnalysis analysis(run, all_analyzers());
  EXPECT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  return analysis.facts();
}

struct OneStep {
  double wait_ms = 0;
  double compute_ms = 0;
  double evaluation_ms = 0;  // before it; without a loader
  bool is_watched = true;
};

// Steps one after the other, as the hook records them.
FakeRecording course_of(std::int64_t count, const std::function<OneStep(std::int64_t)>& step_at) {
  FakeRecording recording;
  const std::uint32_t slot = recording.add_process({.pid = 7, .role = ProcessRole::kMain});
  std::int64_t t_ns = 1000 * kNsPerS;
  for (std::int64_t i = 0; i < count; ++i) {
    const OneStep step = step_at(i);
    const auto ns = [](double ms) { return static_cast<std::int64_t>(ms * 1e6); };
    const auto add = [&](SpanKind kind, std::int64_t start_ns, double ms, std::int64_t value_a) {
      recording.add_span({.start_ns = start_ns,
                          .duration_ns = ns(ms),
                          .kind = kind,
                          .process = slot,
                          .step = kind == SpanKind::kEvaluation ? -1 : i,
                          .value_a = value_a,
                          .value_b = kind == SpanKind::kHook ? 1 : -1});
    };
    if (step.evaluation_ms > 0) add(SpanKind::kEvaluation, t_ns, step.evaluation_ms, 0);
    t_ns += ns(step.evaluation_ms);
    if (step.is_watched) {
      add(SpanKind::kDataWait, t_ns, step.wait_ms, 4);
      add(SpanKind::kForward, t_ns + ns(step.wait_ms), step.compute_ms / 2, 1);
      add(SpanKind::kBackward, t_ns + ns(step.wait_ms + step.compute_ms / 2), step.compute_ms / 2, -1);
    }
    add(SpanKind::kStep, t_ns, step.wait_ms + step.compute_ms, 4);
    add(SpanKind::kHook, t_ns, 0.01, 0);
    t_ns += ns(step.wait_ms + step.compute_ms);
    recording.add_sample("cpu.count", "", MetricKind::kGauge, 1, {t_ns, Value::of(4.0)});
  }
  return recording;
}

TEST(Course, TheWaitOfASlowFirstEpochIsToldBesideTheTypicalOne) {
  FakeRecording recording = course_of(500, [](std::int64_t i) { return OneStep{i < 100 ? 115.0 : 0.5, 20}; });
  const FactTable facts = analyze(recording);
  const Fact* steps = facts.find("steps.summary");
  ASSERT_NE(steps, nullptr);
  EXPECT_NEAR(*steps->number("warmup_count"), 100, 8);
  EXPECT_NEAR(*steps->number("warmup_data_wait_ms"), 115, 6);
  EXPECT_NEAR(*steps->number("data_wait_ms"), 0.5, 3);
}

TEST(Course, FirstStepsWithoutAMeasuredWaitHaveNone) {
  FakeRecording recording = course_of(500, [](std::int64_t i) {
    return OneStep{i < 100 ? 115.0 : 0.5, 20, 0, i >= 150};
  });
  const FactTable facts = analyze(recording);
  ASSERT_NE(facts.find("steps.summary"), nullptr);
  EXPECT_FALSE(facts.find("steps.summary")->number("warmup_data_wait_ms"));
}

// A job that gets slower has not warmed up until then; a few fast steps are batches that were prefetched.
TEST(Course, FasterFirstStepsAreAWarmupForAWhileOnly) {
  FakeRecording recording = course_of(240, [](std::int64_t i) { return OneStep{1, i < 80 ? 40.0 : 60.0}; });
  const FactTable facts = analyze(recording);
  ASSERT_NE(facts.find("steps.summary"), nullptr);
  EXPECT_LE(*facts.find("steps.summary")->number("warmup_count"), 40);
  FakeRecording prefetched = course_of(240, [](std::int64_t i) { return OneStep{i < 16 ? 0.0 : 40.0, 20}; });
  const FactTable after = analyze(prefetched);
  ASSERT_NE(after.find("steps.summary"), nullptr);
  EXPECT_GE(*after.find("steps.summary")->number("warmup_count"), 8);
}

TEST(Course, EvaluationsWithoutALoaderAreToldWithTheirPeriod) {
  FakeRecording recording = course_of(200, [](std::int64_t i) {
    return OneStep{0, 10, i % 4 == 0 && i > 0 ? 90.0 : 0.0};
  });
  const FactTable facts = analyze(recording);
  for (const Fact* pauses : facts.all("pauses.part")) {
    if (pauses->text("what") != "evaluation") continue;
    EXPECT_EQ(pauses->number("batches"), 0);
    EXPECT_EQ(pauses->number("every_steps"), 4);
    EXPECT_NEAR(*pauses->number("share_pct"), 100 * 49 * 90.0 / (49 * 90 + 2000), 1);
    return;
  }
  FAIL() << "no evaluation";
}

TEST(Course, WorkersOfAForkServerWorkForWhoStartedIt) {
  FakeRecording recording = course_of(60, [](std::int64_t) { return OneStep{40, 20}; });
  const std::uint32_t loader = recording.add_name("loader 1 (D)");
  recording.add_process({.role = ProcessRole::kOther,
                         .parent = 1,
                         .command = "python3 -B -c from multiprocessing.forkserver import main; main(9, 11)"});
  const std::uint32_t worker = recording.add_process({.role = ProcessRole::kLoader, .index = 0, .parent = 2});
  for (std::int64_t i = 0; i < 60; ++i) {
    const std::int64_t start_ns = 1000 * kNsPerS + i * 60 * kNsPerMs;
    recording.add_span({.start_ns = start_ns,
                        .duration_ns = 40 * kNsPerMs,
                        .kind = SpanKind::kDataWait,
                        .process = 1,
                        .name = loader,
                        .step = i,
                        .value_a = 4});
    recording.add_span({.start_ns = start_ns,
                        .duration_ns = 55 * kNsPerMs,
                        .kind = SpanKind::kWorkerBatch,
                        .process = worker,
                        .name = loader,
                        .value_a = 50 * kNsPerMs});
  }
  const FactTable facts = analyze(recording);
  const Fact* summary = facts.find("loader.summary");
  ASSERT_NE(summary, nullptr);
  EXPECT_EQ(summary->text("process"), "main");
  EXPECT_NEAR(summary->number("batch_wall_ms").value_or(0), 55, 1);
}

// Constant work beside programs that come and go: what disturbs a step disturbs the next ones.
TEST(Course, DisturbancesThatComeInStretchesAreNoChange) {
  std::mt19937 random(7);
  std::size_t points = 0;
  for (int run = 0; run < 20; ++run) {
    double level = 0;
    std::normal_distribution<double> push(0, 3);
    FakeRecording recording = course_of(250, [&](std::int64_t) {
      level = 0.7 * level + push(random);
      return OneStep{1, std::max(50 + level, 30.0)};
    });
    points += analyze(recording).all("changes.point").size();
  }
  EXPECT_LE(points, 2U);
}

TEST(Course, AChangeAmongNoiseIsFoundAndItsPartByMeasuredStepsOnly) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 2);
  FakeRecording recording = course_of(1000, [&](std::int64_t i) {
    return OneStep{i < 500 ? 2.0 : 22.0, 50 + noise(random), 0, i % 8 == 0};
  });
  const FactTable facts = analyze(recording);
  ASSERT_EQ(facts.all("changes.point").size(), 1U);
  const Fact* change = facts.find("changes.point");
  EXPECT_NEAR(*change->number("at_step"), 500, 8);
  EXPECT_EQ(change->text("part"), "data_wait");
  EXPECT_NEAR(*change->number("part_share_pct"), 100, 10);
  FakeRecording unwatched = course_of(1000, [&](std::int64_t i) {
    return OneStep{i < 500 ? 2.0 : 22.0, 50 + noise(random), 0, i < 300};
  });
  const FactTable unknown = analyze(unwatched);
  ASSERT_EQ(unknown.all("changes.point").size(), 1U);
  EXPECT_FALSE(unknown.find("changes.point")->text("part"));  // none after it was measured
}

}  // namespace
}  // namespace hotlap
