#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "rules/registry.h"
#include "short_lines.h"
#include "support/fake_job.h"
#include "view/analyze.h"
#include "view/previous_run.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

AnalysisDocument answer(const FakeJob& job, const RunInfo& run = {}) {
  FakeRecording recording;
  job.record(recording);
  std::vector<RecordingReader*> readers{&recording};
  RunAnalysis analysis(run, all_analyzers());
  EXPECT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  const FactTable facts = analysis.facts();
  AnalysisDocument d = make_document(run, facts, run_rules(all_rules(), facts, {}));
  d.verdict_text = verdict_text(d);
  return d;
}

TEST(Verdict, NoWorkersOnTwoCores) {
  const AnalysisDocument d = answer({.steps = 300,
                                     .workers = 0,
                                     .batch_ms = 68,
                                     .batch_cpu_ms = 68,
                                     .compute_ms = 18,
                                     .compute_cpu_ms = 18,
                                     .cores = 2});
  EXPECT_EQ(d.verdict, VerdictKind::kFinding);
  ASSERT_EQ(d.findings.front().rule, "InputBound");
  const Advice& advice = d.findings.front().advice.front();
  EXPECT_EQ(advice.change, "DataLoader(num_workers=2)");
  EXPECT_LT(*advice.step_ms_low, 44);
  EXPECT_GT(*advice.step_ms_high, 44);
  EXPECT_LT(*advice.step_ms_high, 55);
  EXPECT_NEAR(*d.findings.front().lost_pct, 79, 2);
  expect_short_lines(d.verdict_text);
}

TEST(Verdict, TooFewWorkersAndTheAdviceHelps) {
  FakeJob job{.steps = 600,
              .workers = 2,
              .batch_ms = 420,
              .batch_cpu_ms = 400,
              .compute_ms = 95,
              .compute_cpu_ms = 40,
              .cores = 8};
  const AnalysisDocument before = answer(job);
  ASSERT_EQ(before.verdict, VerdictKind::kFinding);
  const StepsOfRun then = steps_of(before);
  ASSERT_TRUE(then.advised_workers);
  EXPECT_GE(*then.advised_workers, 5);
  EXPECT_LE(*then.advised_workers, 6);
  job.workers = static_cast<std::int32_t>(*then.advised_workers);
  const AnalysisDocument after = answer(job);
  EXPECT_EQ(after.verdict, VerdictKind::kHealthy) << after.verdict_text;
  const auto change = compare_runs(then, steps_of(after));
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->word, "faster");
  ASSERT_TRUE(change->predicted_ms_low);
  EXPECT_LE(*change->predicted_ms_low, job.step_ms());
  EXPECT_GE(*change->predicted_ms_high, job.step_ms());
}

// An evaluation over a slow loader of its own changes nothing of what is said about training.
TEST(Verdict, AnEvaluationsLoaderDoesNotCount) {
  FakeJob job{.steps = 600, .workers = 2, .batch_ms = 80, .batch_cpu_ms = 78, .compute_ms = 15, .cores = 8};
  const AnalysisDocument alone = answer(job);
  job.evaluation_every = 100;
  job.evaluation_batches = 100;
  job.evaluation_batch_ms = 500;
  const AnalysisDocument evaluated = answer(job);
  ASSERT_FALSE(alone.findings.empty());
  const auto about_loader = std::ranges::find(evaluated.findings, "InputBound", &Finding::rule);
  ASSERT_NE(about_loader, evaluated.findings.end());
  const Advice& expected = alone.findings.front().advice.front();
  const Advice& advice = about_loader->advice.front();
  EXPECT_EQ(advice.change, expected.change);
  EXPECT_NEAR(*advice.step_ms_low, *expected.step_ms_low, 0.02 * *expected.step_ms_low);
  EXPECT_NEAR(*advice.step_ms_high, *expected.step_ms_high, 0.02 * *expected.step_ms_high);
  EXPECT_EQ(evaluated.steps.loader_workers, alone.steps.loader_workers);
}

// Neighbours on a large machine are not the job's business while they leave it what it may use.
TEST(Verdict, InAContainerOnlyItsOwnCoresCount) {
  const FakeJob alone{.steps = 600,
                      .workers = 2,
                      .batch_ms = 420,
                      .batch_cpu_ms = 400,
                      .compute_ms = 95,
                      .compute_cpu_ms = 40,
                      .cores = 8};
  FakeJob shared = alone;
  shared.host_cores = 96;
  shared.neighbour_cores = 60;
  const AnalysisDocument expected = answer(alone);
  const AnalysisDocument d = answer(shared);
  ASSERT_EQ(d.findings.size(), expected.findings.size());
  EXPECT_EQ(d.findings.front().cause, expected.findings.front().cause);
  EXPECT_EQ(d.findings.front().advice.front().change, expected.findings.front().advice.front().change);
  EXPECT_EQ(d.verdict_text.find("Other programs"), std::string::npos) << d.verdict_text;

  shared.neighbour_cores = 94;  // 2 of the 8 are left
  const AnalysisDocument crowded = answer(shared);
  ASSERT_FALSE(crowded.findings.empty());
  EXPECT_NE(crowded.verdict_text, d.verdict_text);
  EXPECT_NE(crowded.verdict_text.find("6 of 8 cores"), std::string::npos) << crowded.verdict_text;
}

// Evaluations lie between the steps, as in every training loop; the one after the last step is no pause.
TEST(Verdict, AnEvaluationThatTakesHalfOfTheRunIsNamed) {
  const FakeJob job{.steps = 600,
                    .workers = 4,
                    .batch_ms = 60,
                    .batch_cpu_ms = 58,
                    .compute_ms = 60,
                    .cores = 8,
                    .evaluation_every = 100,
                    .evaluation_batches = 30,
                    .evaluation_batch_ms = 200};
  const AnalysisDocument d = answer(job);
  ASSERT_FALSE(d.findings.empty()) << d.verdict_text;
  EXPECT_EQ(std::ranges::count_if(d.findings, [](const Finding& one) { return !one.is_note(); }), 1) << d.verdict_text;
  const Finding& finding = d.findings.front();
  EXPECT_EQ(finding.rule, "EvaluationShare");
  const double evaluated_s = *finding.lost_s;
  EXPECT_NEAR(evaluated_s, 5 * 30 * 0.2, 2) << d.verdict_text;
  EXPECT_NEAR(*finding.lost_pct, 100 * evaluated_s / (evaluated_s + 600 * 0.06), 2);
  EXPECT_TRUE(finding.why.front().starts_with("every 100 steps")) << finding.why.front();
}

// A healthy training stays healthy however long its evaluation waits, while that is a small part of the run.
TEST(Verdict, AHealthyTrainingWithASlowEvaluationIsHealthy) {
  FakeJob job{.steps = 600, .workers = 4, .batch_ms = 60, .batch_cpu_ms = 58, .compute_ms = 60, .cores = 8};
  EXPECT_EQ(answer(job).verdict, VerdictKind::kHealthy);
  job.evaluation_every = 100;
  job.evaluation_batches = 1;
  job.evaluation_batch_ms = 900;
  EXPECT_EQ(answer(job).verdict, VerdictKind::kHealthy) << answer(job).verdict_text;
}

TEST(Verdict, HealthyTooShortAndUnseen) {
  const FakeJob healthy{.steps = 500, .workers = 4, .batch_ms = 60, .compute_ms = 40, .cores = 4};
  EXPECT_EQ(answer(healthy).verdict, VerdictKind::kHealthy);
  FakeJob brief = healthy;
  brief.steps = 12;
  EXPECT_EQ(answer(brief).verdict, VerdictKind::kTooShort);
  FakeJob unhooked = healthy;
  unhooked.has_hook = false;
  const AnalysisDocument d = answer(unhooked);
  EXPECT_EQ(d.verdict, VerdictKind::kCannotTell);
  EXPECT_EQ(d.grade, "B");
  EXPECT_FALSE(d.seen.empty());
  EXPECT_FALSE(d.steps.mean_ms);
}

TEST(Verdict, MoneyIsTheTimeLostAtThePrice) {
  RunInfo run;
  run.price = Price{.per_hour = 3.6, .source = "--price"};
  const AnalysisDocument d = answer({.steps = 300, .workers = 0}, run);
  ASSERT_FALSE(d.findings.empty());
  ASSERT_TRUE(d.findings[0].money && d.findings[0].lost_s);
  EXPECT_NEAR(d.findings[0].money->amount, *d.findings[0].lost_s / 1000, 1e-9);
}

TEST(Compare, AStoredAnswerComparesLikeTheDocumentItself) {
  const AnalysisDocument d = answer({.steps = 300, .workers = 0});
  const StepsOfRun direct = steps_of(d);
  const auto stored = steps_from_json(to_json(d));
  ASSERT_TRUE(stored.ok());
  EXPECT_NEAR(stored->mean_ms, direct.mean_ms, 1e-6);
  EXPECT_NEAR(stored->half_width_ms, direct.half_width_ms, 1e-6);
  EXPECT_EQ(stored->advised_workers, direct.advised_workers);
  EXPECT_EQ(stored->advised_change, direct.advised_change);
  EXPECT_EQ(stored->workers, 0);
}

TEST(Compare, RefusesWhatIsNotTheSame) {
  StepsOfRun a{.id = "A", .count = 100, .mean_ms = 100, .samples_per_step = 32};
  StepsOfRun b = a;
  b.samples_per_step = 64;
  EXPECT_FALSE(compare_runs(a, b).ok());
  b = a;
  b.count = 5;
  EXPECT_FALSE(compare_runs(a, b).ok());
}

// A difference below the floor, or inside the intervals, is none.
TEST(Compare, NoDifferenceIsAnAnswer) {
  const StepsOfRun a{.id = "A", .count = 100, .mean_ms = 100, .half_width_ms = 0.1};
  StepsOfRun b{.id = "B", .count = 100, .mean_ms = 101.5, .half_width_ms = 0.1};
  EXPECT_EQ(compare_runs(a, b)->word, "no difference");
  b.mean_ms = 110;
  EXPECT_EQ(compare_runs(a, b)->word, "slower");
  b.half_width_ms = 15;
  EXPECT_EQ(compare_runs(a, b)->word, "no difference");
}

}  // namespace
}  // namespace hotlap
