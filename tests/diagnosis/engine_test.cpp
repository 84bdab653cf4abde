// The same facts whatever way a recording is read: at once, in many small pieces, in two recordings.
#include "analysis/engine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/registry.h"
#include "base/clock.h"
#include "base/format.h"
#include "support/fake_job.h"

namespace hotlap {
namespace {

std::string text_of(const FactTable& table) {
  std::string out;
  for (const Fact& fact : table.facts()) {
    out += format("{} node={} rank={}\n", fact.kind, fact.where.node, fact.where.rank.value_or(-1));
    for (const auto& [name, value] : fact.fields) {
      const double* number = std::get_if<double>(&value);
      out += number != nullptr ? format("  {} {:.6g}\n", name, *number) : format("  {} {}\n", name, std::get<1>(value));
    }
  }
  return out;
}

FactTable analyze(std::vector<RecordingReader*> readers) {
  RunInfo run;
  RunAnalysis analysis(run, all_analyzers());
  EXPECT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  return analysis.facts();
}

TEST(Engine, ManySmallPiecesGiveTheSameFacts) {
  FakeRecording recording;
  FakeJob{
      .steps = 1500, .workers = 2, .batch_ms = 90, .ragged_every = 70, .checkpoint_ms = 300, .checkpoint_every = 100}
      .record(recording);
  const std::string at_once = text_of(analyze({&recording}));

  RunInfo run;
  RunAnalysis analysis(run, all_analyzers());
  std::vector<RecordingReader*> readers{&recording};
  std::size_t spans = 0;
  std::int64_t t_ns = 990'000'000'000;
  while (spans < recording.span_count() || t_ns < 1'200'000'000'000) {
    spans += 1 + spans % 7;
    t_ns += 1'300'000'000;
    recording.reach(spans, t_ns);
    ASSERT_TRUE(analysis.advance(readers).ok());
    if (spans % 5 == 0) (void)analysis.facts();  // looking changes nothing
  }
  recording.reach(SIZE_MAX, INT64_MAX);
  ASSERT_TRUE(analysis.advance(readers).ok());
  analysis.finish();
  EXPECT_EQ(text_of(analysis.facts()), at_once);
}

TEST(Engine, TypicalStepsAndBreakdownAddUp) {
  FakeRecording recording;
  const FakeJob job{.steps = 600, .workers = 2, .batch_ms = 100, .compute_ms = 20, .other_ms = 5};
  job.record(recording);
  const FactTable facts = analyze({&recording});
  const Fact* steps = facts.find("steps.summary");
  ASSERT_NE(steps, nullptr);
  EXPECT_EQ(steps->number("count"), 600);
  EXPECT_NEAR(*steps->number("mean_ms"), job.step_ms(), 0.02 * job.step_ms());
  EXPECT_NEAR(*steps->number("median_ms"), job.step_ms(), 0.02 * job.step_ms());
  EXPECT_NEAR(*steps->number("data_wait_ms"), 25, 0.5);
  EXPECT_EQ(steps->number("inferred"), 0);
  EXPECT_NEAR(*steps->number("batches_per_step"), 1, 1e-9);

  const Fact* parts = facts.find("breakdown.parts");
  ASSERT_NE(parts, nullptr);
  EXPECT_FALSE(parts->number("communication"));
  double sum = 0;
  for (const auto* name :
       {"data_wait", "forward", "backward", "optimizer", "checkpoint", "gc", "evaluation", "hook", "other"}) {
    sum += parts->number(name).value_or(0);
  }
  EXPECT_NEAR(sum, 100, 0.01);
  EXPECT_NEAR(*parts->number("other"), 10, 0.5);
}

TEST(Engine, LoaderAndCores) {
  FakeRecording recording;
  FakeJob{.steps = 600,
          .workers = 2,
          .batch_ms = 100,
          .batch_cpu_ms = 90,
          .compute_ms = 20,
          .compute_cpu_ms = 20,
          .cores = 8,
          .outside_cores = 1}
      .record(recording);
  const FactTable facts = analyze({&recording});
  const Fact* loader = facts.find("loader.summary");
  ASSERT_NE(loader, nullptr);
  EXPECT_EQ(loader->number("workers"), 2);
  EXPECT_EQ(loader->number("workers_seen"), 2);
  EXPECT_EQ(loader->number("in_process"), 0);
  EXPECT_NEAR(*loader->number("batch_wall_ms"), 100, 1);
  EXPECT_NEAR(*loader->number("batch_cpu_ms"), 90, 1);
  const Fact* cores = facts.find("core_use.summary");
  ASSERT_NE(cores, nullptr);
  EXPECT_EQ(cores->number("usable_cores"), 8);
  EXPECT_NEAR(*cores->number("main_cores"), 0.4, 0.02);
  EXPECT_NEAR(*cores->number("loader_cores"), 1.8, 0.05);
  EXPECT_NEAR(*cores->number("outside_cores"), 1, 0.05);
  EXPECT_NEAR(*cores->number("busy_pct"), 40, 1);
}

TEST(Engine, WhatTheProgramHasNamedIsToldOfWhatNothingElseIs) {
  FakeRecording recording;
  FakeJob{.steps = 300, .batch_ms = 10, .compute_ms = 20, .other_ms = 20, .named_ms = 15}.record(recording);
  const FactTable facts = analyze({&recording});
  EXPECT_NEAR(*facts.find("breakdown.parts")->number("other"), 40, 1);
  ASSERT_EQ(facts.all("breakdown.named").size(), 1U);
  const Fact* named = facts.find("breakdown.named");
  EXPECT_EQ(named->text("name"), "metrics");
  EXPECT_NEAR(*named->number("share_pct"), 30, 1);
  EXPECT_NEAR(*named->number("step_ms"), 15, 0.5);
}

TEST(Engine, BatchesOfForkedWorkersAreTheLoadersWhoeverForks) {
  FakeRecording recording;
  FakeJob{.steps = 300, .workers = 2, .batch_ms = 100, .compute_ms = 20, .has_fork_server = true}.record(recording);
  const FactTable facts = analyze({&recording});
  ASSERT_EQ(facts.all("loader.summary").size(), 1U);
  const Fact* loader = facts.find("loader.summary");
  EXPECT_EQ(loader->text("process"), "main");
  EXPECT_EQ(loader->text("loader"), "loader 1 (Images)");
  EXPECT_EQ(loader->number("workers_seen"), 2);
  EXPECT_EQ(loader->number("in_process"), 0);
  EXPECT_NEAR(*loader->number("batch_wall_ms"), 100, 1);
}

// Steps go on while another thread saves.
TEST(Engine, WhatAnotherThreadSavesStopsNoStep) {
  FakeRecording recording;
  FakeJob{.steps = 300, .batch_ms = 10, .beside_save_ms = 70, .beside_save_every = 25}.record(recording);
  const FactTable facts = analyze({&recording});
  EXPECT_EQ(facts.find("breakdown.parts")->number("checkpoint"), 0);
  const std::vector<const Fact*> pauses = facts.all("pauses.part");
  const auto checkpoints =
      std::ranges::find_if(pauses, [](const Fact* one) { return one->text("what") == "checkpoint"; });
  ASSERT_NE(checkpoints, pauses.end());
  EXPECT_EQ((*checkpoints)->number("count"), 0);
  EXPECT_EQ((*checkpoints)->number("share_pct"), 0);
  EXPECT_FALSE((*checkpoints)->number("bytes"));
}

// The first batch of a worker imports and allocates; its parts say nothing about the others.
TEST(Engine, PartsOfABatchAreNeverMoreThanTheBatch) {
  constexpr std::uint32_t kMain = 1;  // the first process that is added
  FakeRecording recording;
  for (const SpanKind kind : {SpanKind::kWorkerBatch, SpanKind::kWorkerCollate}) {
    recording.add_span({.start_ns = 1'000'000'000,
                        .duration_ns = 400'000'000,
                        .kind = kind,
                        .process = kMain,
                        .value_a = 400'000'000});
  }
  FakeJob{.steps = 60, .batch_ms = 1, .batch_cpu_ms = 1, .compute_ms = 5, .jitter = 0, .has_loader_names = false}
      .record(recording);
  const FactTable facts = analyze({&recording});
  const Fact* loader = facts.find("loader.summary");
  ASSERT_NE(loader, nullptr);
  EXPECT_NEAR(*loader->number("batch_wall_ms"), 1, 0.15);
  ASSERT_TRUE(loader->number("collate_ms"));
  EXPECT_LE(*loader->number("collate_ms"), *loader->number("batch_wall_ms"));
}

TEST(Engine, CoresOfAContainerAreItsOwn) {
  FakeJob job{.steps = 600,
              .workers = 2,
              .batch_ms = 100,
              .batch_cpu_ms = 90,
              .compute_ms = 20,
              .cores = 4,
              .outside_cores = 1,
              .host_cores = 96,
              .neighbour_cores = 40};
  FakeRecording recording;
  job.record(recording);
  const FactTable facts = analyze({&recording});
  const Fact* cores = facts.find("core_use.summary");
  ASSERT_NE(cores, nullptr);
  EXPECT_NEAR(*cores->number("host_cores"), 96, 0.01);
  EXPECT_NEAR(*cores->number("usable_cores"), 4, 0.01);
  EXPECT_NEAR(*cores->number("host_busy_cores"), 43.2, 0.5);
  EXPECT_NEAR(*cores->number("busy_cores"), 3.2, 0.1);
  EXPECT_NEAR(*cores->number("outside_cores"), 1, 0.1);  // those of its own group
  EXPECT_NEAR(*cores->number("busy_pct"), 80, 2);
  EXPECT_EQ(*cores->number("full_share_pct"), 0);
  EXPECT_FALSE(cores->text("hottest_core"));  // may be a neighbour's

  job.neighbour_cores = 94;  // two are left
  FakeRecording crowded;
  job.record(crowded);
  const FactTable then = analyze({&crowded});
  EXPECT_NEAR(*then.find("core_use.summary")->number("outside_cores"), 3, 0.2);
}

// What an evaluation's loader costs says nothing about training.
TEST(Engine, TheLoaderIsTheOneThatFeedsTheSteps) {
  const FakeJob job{.steps = 600, .workers = 2, .batch_ms = 100, .compute_ms = 20};
  FakeJob evaluated = job;
  evaluated.evaluation_every = 10;
  evaluated.evaluation_batches = 30;  // more batches than training has
  evaluated.evaluation_batch_ms = 400;
  FakeRecording recording;
  evaluated.record(recording);
  recording.add_sample("hook.user.value", "main loader.queue_depth loader 1 (Images)", MetricKind::kGauge, 1,
                       {1'000'000'000'000, Value::of(3.0)});
  recording.add_sample("hook.user.value", "main loader.queue_depth loader 2 (Proofs)", MetricKind::kGauge, 1,
                       {1'000'000'000'000, Value::of(9.0)});
  const FactTable facts = analyze({&recording});
  ASSERT_EQ(facts.all("loader.summary").size(), 1U);
  const Fact* loader = facts.find("loader.summary");
  EXPECT_EQ(loader->text("loader"), "loader 1 (Images)");
  EXPECT_EQ(loader->text("dataset"), "Images");
  EXPECT_EQ(loader->number("loaders"), 2);
  EXPECT_EQ(loader->number("workers"), 2);
  EXPECT_NEAR(*loader->number("batch_wall_ms"), 100, 1);
  EXPECT_NEAR(*loader->number("fetch_ms"), 90, 1);
  EXPECT_NEAR(*loader->number("batches"), 600 - 2 * 2, 1);
  EXPECT_EQ(loader->number("queue_depth"), 3);
}

// Recordings of hooks that did not say whose a batch is.
TEST(Engine, NamelessBatchesAreTheLoaders) {
  FakeRecording recording;
  FakeJob{.steps = 600, .workers = 2, .batch_ms = 100, .compute_ms = 20, .has_loader_names = false}.record(recording);
  recording.add_sample("hook.user.value", "main loader.queue_depth", MetricKind::kGauge, 1,
                       {1'000'000'000'000, Value::of(3.0)});
  const FactTable facts = analyze({&recording});
  ASSERT_EQ(facts.all("loader.summary").size(), 1U);
  const Fact* loader = facts.find("loader.summary");
  EXPECT_EQ(loader->text("dataset"), "Images");
  EXPECT_NEAR(*loader->number("batch_wall_ms"), 100, 1);
  EXPECT_EQ(loader->number("queue_depth"), 3);
}

// The recorder was killed and started again in the middle: the parts of the process add up.
TEST(Engine, ARecorderStartedAgainTellsTheRestOfTheSameSteps) {
  const FakeJob job{.steps = 1500, .workers = 2, .batch_ms = 90, .checkpoint_ms = 300, .checkpoint_every = 100};
  const auto record = [&](FakeRecording& recording, std::uint32_t main) {
    job.record(recording);
    for (const std::int64_t t_s : {1'002, 1'060}) {  // what is saved, in bytes
      recording.add_span({.start_ns = t_s * kNsPerS,
                          .duration_ns = kNsPerMs,
                          .kind = SpanKind::kCheckpoint,
                          .process = main,
                          .value_a = t_s});
    }
  };
  FakeRecording whole;
  record(whole, 1);
  const FactTable expected = analyze({&whole});
  for (const std::int64_t after_s : {3, 30, 50}) {
    const std::int64_t cut_ns = (1'000 + after_s) * kNsPerS;
    FakeRecording first;
    FakeRecording second;
    record(first, 1);
    second.add_process({.pid = 99, .role = ProcessRole::kOther, .index = 1, .label = "other 1"});
    record(second, 2);  // it numbers processes anew
    first.keep(0, cut_ns);
    second.keep(cut_ns, INT64_MAX);
    second.add_event({cut_ns, EventKind::kRecorderGap, 1, {}});
    second.add_event({cut_ns, EventKind::kPhase, 0, "training"});
    const FactTable facts = analyze({&first, &second});
    ASSERT_EQ(facts.all("steps.summary").size(), 1U);
    const auto near = [&](std::string_view kind, std::string_view field, double share) {
      const double wanted = *expected.find(kind)->number(field);
      EXPECT_NEAR(*facts.find(kind)->number(field), wanted, share * wanted) << field << " cut after " << after_s;
    };
    near("steps.summary", "count", 0.002);  // the step that was cut
    near("steps.summary", "steady_count", 0.02);
    near("steps.summary", "mean_ms", 0.02);
    near("steps.summary", "total_s", 0.01);
    near("pauses.part", "count", 0);
    near("pauses.part", "every_steps", 0.01);
    near("pauses.part", "bytes", 0);
    near("phases.summary", "training_s", 0.02);
    near("phases.summary", "initialisation_s", 0.001);
    EXPECT_EQ(facts.find("steps.summary")->number("restarts"), 0);
  }
}

// Two processes of one label at one time are not one that goes on.
TEST(Engine, RecordingsThatOverlapDoNotAddUp) {
  FakeRecording first;
  FakeRecording second;
  FakeJob{.steps = 300}.record(first);
  FakeJob{.steps = 400}.record(second);
  const FactTable facts = analyze({&first, &second});
  ASSERT_EQ(facts.all("steps.summary").size(), 1U);
  EXPECT_EQ(facts.find("steps.summary")->number("count"), 400);
}

TEST(Engine, NodesOfOneRunAreToldApart) {
  FakeRecording first("n1");
  FakeRecording second("n2");
  FakeJob{.steps = 300, .workers = 1, .role = ProcessRole::kRank, .rank = 0}.record(first);
  FakeJob{.steps = 300, .workers = 1, .compute_ms = 30, .role = ProcessRole::kRank, .rank = 1}.record(second);
  const FactTable facts = analyze({&first, &second});
  const auto steps = facts.all("steps.summary");
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0]->where.rank, 0);
  EXPECT_EQ(steps[0]->where.node, "n1");
  EXPECT_EQ(steps[1]->where.rank, 1);
  EXPECT_EQ(facts.all("core_use.summary").size(), 2U);
  EXPECT_EQ(facts.all("loader.summary").size(), 2U);
}

// Every fact and field that an analyzer makes is described by its spec.
TEST(Engine, FactsAreWhatTheSpecsPromise) {
  FakeRecording recording;
  FakeJob{.steps = 300, .workers = 2}.record(recording);
  std::map<std::string, std::set<std::string>, std::less<>> promised;
  for (const AnalyzerSpec* spec : all_analyzers()) {
    for (const FactSchema& schema : spec->produces) {
      for (const FactField& field : schema.fields) promised[std::string(schema.kind)].insert(std::string(field.name));
    }
  }
  const FactTable facts = analyze({&recording});
  EXPECT_GT(facts.facts().size(), 6U);
  for (const Fact& fact : facts.facts()) {
    ASSERT_TRUE(promised.contains(fact.kind)) << fact.kind;
    for (const auto& [name, value] : fact.fields) {
      EXPECT_TRUE(promised.find(fact.kind)->second.contains(name)) << fact.kind << "." << name;
    }
  }
}

TEST(Engine, WhoUsesAGpuIsWhatTheProcessesSay) {
  FakeRecording recording;
  FakeJob{.steps = 100, .workers = 1}.record(recording);
  recording.info_to_fill().attributes = {};
  recording.add_attribute("gpu.count", "2");
  recording.add_attribute("process.main.torch", R"({"version": "2.3.0", "cuda": "12.1", "hip": null, "threads": 8})");
  EXPECT_EQ(analyze({&recording}).find("job.software")->number("gpu"), 1);  // the machine has some, use unknown
  recording.add_attribute("process.loader 0.accelerator", R"({"kind": "cuda", "initialised": false})");
  EXPECT_EQ(analyze({&recording}).find("job.software")->number("gpu"), 0);
  recording.add_attribute("process.main.accelerator", R"({"kind": "cuda", "initialised": true})");
  EXPECT_EQ(analyze({&recording}).find("job.software")->number("gpu"), 1);
}

// A time of nonsense costs neither hours nor an overflow.
TEST(Engine, ADamagedTimeIsNoWalkOfMillions) {
  FakeRecording recording;
  FakeJob{.steps = 100}.record(recording);
  recording.add_sample("cpu.runnable", "", MetricKind::kGauge, 1, {INT64_MAX, Value::of(1.0)});
  recording.add_sample("cpu.runnable", "", MetricKind::kGauge, 1, {INT64_MIN + 1, Value::of(1.0)});
  const FactTable facts = analyze({&recording});
  ASSERT_NE(facts.find("steps.summary"), nullptr);
  EXPECT_EQ(facts.find("steps.summary")->number("count"), 100);
}

TEST(Engine, ARunWithoutAHookHasCoreFactsOnly) {
  FakeRecording recording;
  FakeJob{.steps = 300, .workers = 2, .has_hook = false}.record(recording);
  const FactTable facts = analyze({&recording});
  EXPECT_EQ(facts.find("steps.summary"), nullptr);
  ASSERT_NE(facts.find("core_use.summary"), nullptr);
  EXPECT_EQ(facts.find("core_use.summary")->number("steps_only"), 0);
}

}  // namespace
}  // namespace hotlap
