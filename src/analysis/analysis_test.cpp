#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/block_means.h"
#include "analysis/growth.h"
#include "analysis/level_profile.h"
#include "analysis/log_histogram.h"
#include "analysis/registry.h"
#include "analysis/second_join.h"
#include "analysis/step_statistics.h"
#include "analysis/thinning.h"
#include "analysis/time_profile.h"
#include "base/clock.h"

#include <set>

namespace hotlap {
namespace {

TEST(LogHistogram, QuantilesAreWithinHalfAPercent) {
  LogHistogram histogram;
  for (int i = 1; i <= 100'000; ++i) histogram.add(i * 1000.0);
  EXPECT_NEAR(*histogram.quantile(0.5), 50e6, 0.005 * 50e6);
  EXPECT_NEAR(*histogram.quantile(0.99), 99e6, 0.005 * 99e6);
  EXPECT_NEAR(*histogram.quantile(0), 1000, 6);
  EXPECT_FALSE(LogHistogram{}.quantile(0.5));
}

TEST(LogHistogram, MergingIsTheSameAsAddingAll) {
  LogHistogram a;
  LogHistogram b;
  LogHistogram all;
  for (int i = 1; i < 5000; ++i) {
    const double value = std::pow(10, 1 + (i * 7 % 100) / 12.0);
    (i % 3 == 0 ? a : b).add(value);
    all.add(value);
  }
  a.merge(b);
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.999}) EXPECT_EQ(a.quantile(q), all.quantile(q)) << q;
}

// The interval of a slowly wandering series must be wider than single values would make it.
TEST(BlockMeans, NeighboursThatDependOnEachOtherWidenTheInterval) {
  BlockMeans blocks(8);
  std::vector<double> singles;
  for (int i = 0; i < 4000; ++i) {
    const double value = 100 + 10 * std::sin(i / 200.0) + (i % 2);
    blocks.add(value);
    singles.push_back(value);
  }
  const auto interval = blocks.interval();
  ASSERT_TRUE(interval && interval->half_width);
  EXPECT_GT(*interval->half_width, 3 * *half_width_95(singles));
  EXPECT_LE(blocks.means().size(), BlockMeans::kBlocksMax);
}

TEST(BlockMeans, AppendingIsTheSameAsAddingAll) {
  for (const int split : {0, 16, 160, 4000, 9'600}) {
    BlockMeans all(8);
    BlockMeans before(8);
    BlockMeans after(8);
    for (int i = 0; i < 9'600; ++i) {
      const double value = 100 + (i * 37 % 101);
      all.add(value);
      (i < split ? before : after).add(value);
    }
    before.append(after);
    EXPECT_LE(before.means().size(), BlockMeans::kBlocksMax);
    ASSERT_TRUE(before.interval() && before.interval()->half_width) << split;
    EXPECT_NEAR(before.interval()->mean, all.interval()->mean, 1e-9);
    EXPECT_EQ(before.count(), all.count());
    before.add(100);
    EXPECT_EQ(before.count(), all.count() + 1);
  }
}

TEST(BlockMeans, TooFewBlocksHaveNoInterval) {
  BlockMeans blocks(8);
  for (int i = 0; i < 20; ++i) blocks.add(5);
  ASSERT_TRUE(blocks.interval());
  EXPECT_FALSE(blocks.interval()->half_width);
  EXPECT_DOUBLE_EQ(blocks.interval()->mean, 5);
}

TEST(LogHistogram, CountsAboveAndDeviation) {
  LogHistogram histogram;
  for (int i = 0; i < 1000; ++i) histogram.add(i % 10 == 0 ? 200e6 : 100e6);
  EXPECT_EQ(histogram.count_above(150e6), 100U);
  EXPECT_EQ(histogram.count_above(300e6), 0U);
  EXPECT_NEAR(*histogram.deviation(), 30e6, 0.5e6);
  EXPECT_FALSE(LogHistogram{}.deviation());
}

TEST(LevelProfile, QuantilesOfAWindowThatIsKnownOnlyLater) {
  LevelProfile profile;
  for (std::int64_t s = 0; s < 1000; ++s) profile.add(s * kNsPerS, s < 500 ? 0 : s % 2 == 0 ? 40 : 80, 1);
  EXPECT_EQ(profile.quantile(0.05, 600 * kNsPerS, 1000 * kNsPerS), 40);
  EXPECT_EQ(profile.quantile(0.95, 600 * kNsPerS, 1000 * kNsPerS), 80);
  EXPECT_EQ(profile.quantile(0.5, 0, 400 * kNsPerS), 0);
  EXPECT_NEAR(*profile.mean(600 * kNsPerS, 1000 * kNsPerS), 60, 0.5);
  EXPECT_NEAR(*profile.share_up_to(40, 600 * kNsPerS, 1000 * kNsPerS), 0.5, 0.02);
  EXPECT_FALSE(profile.quantile(0.5, 5000 * kNsPerS, 6000 * kNsPerS));
}

// One series after the other, as a reader gives them: the seconds meet all the same.
TEST(SecondJoin, SeriesMeetInTheirSeconds) {
  SecondJoin join;
  for (std::int64_t s = 0; s < 2000; ++s) join.add_level(0, s * kNsPerS, s % 2 == 0 ? 0 : 100);
  for (std::int64_t s = 0; s < 2000; ++s) {
    join.add_amount(1, s * kNsPerS, (s + 1) * kNsPerS, s % 2 == 0 ? 0.9 : 0.1);
  }
  std::int64_t together = 0;
  std::int64_t next = 0;
  const auto look = [&](std::int64_t second, const SecondJoin::Row& row) {
    EXPECT_EQ(second, next++);
    if (row.value(0) == 0 && row.value(1) > 0.8) ++together;
    EXPECT_FALSE(row.value(2));
  };
  join.release(look);
  EXPECT_EQ(next, 2000 - SecondJoin::kHoldS);
  join.visit_waiting(look);
  EXPECT_EQ(next, 2000);
  EXPECT_EQ(together, 1000);
}

// A level over ten minutes, one value a second.
GrowthShape shape_of(const std::function<double(int)>& level) {
  LevelTrack track;
  for (int s = 0; s < 600; ++s) track.add(s * kNsPerS, level(s));
  const auto growth = track.growth(0, 600 * kNsPerS, 50);
  return growth ? growth->shape : GrowthShape::kFlat;
}

TEST(Growth, LeakPoolStairsStepAndSpikesAreToldApart) {
  EXPECT_EQ(shape_of([](int s) { return 5000 + 10 * s + s % 7; }), GrowthShape::kLeak);
  EXPECT_EQ(shape_of([](int s) { return 5000 + 10 * s + (s % 20) * 40; }), GrowthShape::kLeak);  // a saw that rises
  EXPECT_EQ(shape_of([](int s) { return 5000 + std::min(10 * s, 2000) + s % 7; }), GrowthShape::kPool);
  EXPECT_EQ(shape_of([](int s) { return 5000 + 2000 * (1 - std::exp(-s / 60.0)); }), GrowthShape::kPool);
  EXPECT_EQ(shape_of([](int s) { return s < 300 ? 5000 : 9000; }), GrowthShape::kStep);
  EXPECT_EQ(shape_of([](int s) { return 5000 + 1000 * (s / 100); }), GrowthShape::kStairs);
  EXPECT_EQ(shape_of([](int s) { return s % 150 == 75 ? 9000 : 5000 + s % 11; }), GrowthShape::kSpikes);
  EXPECT_EQ(shape_of([](int s) { return 5000 + (s * 37 % 41); }), GrowthShape::kFlat);
  EXPECT_EQ(shape_of([](int s) { return 9000 - 10 * s; }), GrowthShape::kFlat);
}

TEST(Growth, SlopeAndItsInterval) {
  LevelTrack track;
  for (int s = 0; s < 3600; ++s) track.add(s * kNsPerS, 1e9 + 12e6 * s + (s % 30) * 1e6);
  const auto growth = track.growth(0, 3600 * kNsPerS, 64e6);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->shape, GrowthShape::kLeak);
  EXPECT_NEAR(growth->per_s, 12e6, 0.1e6);
  EXPECT_LT(growth->half_width, 0.5e6);
  EXPECT_FALSE(track.growth(3599 * kNsPerS, 3600 * kNsPerS, 64e6));  // too short to say
}

TEST(TimeProfile, KeepsAmountsWhenBucketsWiden) {
  TimeProfile profile;
  constexpr std::int64_t kSecond = 1'000'000'000;
  for (std::int64_t t = 0; t < 4000; ++t) profile.add(t * kSecond, (t + 1) * kSecond, 2);
  EXPECT_NEAR(profile.sum(0, 4000 * kSecond), 8000, 1e-6);
  EXPECT_NEAR(profile.sum(1000 * kSecond, 2000 * kSecond), 2000, 1e-6);
  EXPECT_GT(profile.width_ns(), 4 * kSecond);
}

TEST(RateProfile, AResetIsAGapAndNoSpike) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  RateProfile rate;
  std::vector<SamplePoint> points;
  for (std::int64_t t = 0; t < 10; ++t) points.push_back({t * kSecond, Value::of(static_cast<std::uint64_t>(t * 50))});
  for (std::int64_t t = 10; t < 20; ++t) {
    points.push_back({t * kSecond, Value::of(static_cast<std::uint64_t>((t - 10) * 50))});
  }
  rate.add(points, 0.01);
  EXPECT_NEAR(*rate.rate(0, 19 * kSecond), 0.5, 1e-9);
  EXPECT_NEAR(*rate.hot_share(0, 19 * kSecond), 0, 1e-9);
}

// Half a core for ten seconds before and after the machine slept for two hours: what is marked as a gap is no time in
// which nothing was done, nor too much that nobody looked at. Without the mark that is what it is.
TEST(RateProfile, AMarkedGapIsNoTimeOfTheWindow) {
  for (const bool is_marked : {true, false}) {
    RateProfile rate;
    std::vector<SamplePoint> points;
    for (std::int64_t t = 0; t < 10; ++t)
      points.push_back({t * kNsPerS, Value::of(static_cast<std::uint64_t>(t * 50))});
    if (is_marked) points.push_back({3600 * kNsPerS, Value::missing(MissingReason::kNotSampled)});
    for (std::int64_t t = 10; t < 20; ++t)
      points.push_back({(7200 + t) * kNsPerS, Value::of(static_cast<std::uint64_t>(t * 50))});
    rate.add(points, 0.01);
    const auto mean = rate.rate(0, 7232 * kNsPerS);
    ASSERT_TRUE(mean);
    EXPECT_NEAR(*mean, is_marked ? 0.5 : 9.5 / 7219, 1e-6);
  }
}

TierPoint minute_of(std::int64_t number, double first, double last) {
  return {.from_ns = number * 60 * kNsPerS,
          .to_ns = (number + 1) * 60 * kNsPerS,
          .min = first,
          .mean = (first + last) / 2,
          .max = last,
          .first = first,
          .last = last,
          .count = 120};
}

// Half a core, told by minutes between samples that are told one by one.
TEST(RateProfile, MinutesTellTheAmountAndNothingOfHeat) {
  RateProfile rate;
  const std::vector<SamplePoint> before{{0, Value::of(std::uint64_t{0})},
                                        {60 * kNsPerS, Value::of(std::uint64_t{3000})}};
  rate.add(before, 0.01);
  const std::vector<TierPoint> minutes{minute_of(1, 3025, 6000), minute_of(2, 6025, 9000)};
  rate.add(minutes, 0.01);
  const std::vector<SamplePoint> after{{181 * kNsPerS, Value::of(std::uint64_t{9050})},
                                       {182 * kNsPerS, Value::of(std::uint64_t{9150})}};
  rate.add(after, 0.01);
  EXPECT_NEAR(rate.amount(0, 180 * kNsPerS), 90, 1e-9);
  EXPECT_NEAR(*rate.rate(0, 180 * kNsPerS), 0.5, 1e-9);
  EXPECT_NEAR(rate.looked_s(60 * kNsPerS, 180 * kNsPerS), 0, 1e-9);
  EXPECT_GE(rate.width_ns(), 60 * kNsPerS);
  EXPECT_NEAR(*rate.hot_share(0, 200 * kNsPerS), 1.0 / 61, 1e-3);  // the last second, of those looked at
}

TEST(RateProfile, AResetWithinAMinuteIsAGap) {
  RateProfile rate;
  TierPoint reset = minute_of(1, 3000, 6000);
  reset.min = 0;
  const std::vector<TierPoint> minutes{minute_of(0, 0, 3000),
                                       reset,
                                       minute_of(2, 6000, 9000),
                                       {.from_ns = 180 * kNsPerS, .to_ns = 240 * kNsPerS, .missing = 120},
                                       minute_of(4, 9000, 12'000)};
  rate.add(minutes, 1);
  EXPECT_NEAR(rate.amount(0, 600 * kNsPerS), 3000, 1e-9);
}

TEST(LevelTrack, MinutesKeepExtremesAndMean) {
  LevelTrack track;
  for (int i = 0; i < 600; ++i) {
    TierPoint minute = minute_of(i, 5e9, 5e9);
    if (i == 300) minute.max = 20e9;
    track.add(minute, 1);
  }
  EXPECT_DOUBLE_EQ(*track.peak(0, 36'000 * kNsPerS), 20e9);
  EXPECT_DOUBLE_EQ(*track.mean(0, 36'000 * kNsPerS), 5e9);
  EXPECT_DOUBLE_EQ(*track.last(), 5e9);
}

TEST(Thinning, EndsAndAFewStretchesOfALongRunAreReadInFull) {
  std::vector<TickStretch> day;
  for (std::int64_t i = 0; i < 144; ++i) day.push_back({i * 600 * kNsPerS, (i * 600 + 599) * kNsPerS, 360'000});
  const Thinning all(day, 300, 290, {});
  std::int64_t full = 0;
  std::int64_t longest = 0;
  std::int64_t coarse = 0;
  for (std::size_t i = 0; i < day.size(); ++i) {
    coarse = all.is_coarse(i) ? coarse + 1 : 0;
    longest = std::max(longest, coarse);
    full += all.is_coarse(i) ? 0 : 1;
  }
  EXPECT_FALSE(all.is_coarse(0) || all.is_coarse(142) || all.is_coarse(143));
  EXPECT_GE(full, 3 + 144 / 16);
  EXPECT_LE(full, 24);
  EXPECT_LE(longest, 2 * 16);
  // Few series, and a run of an hour, are read in full.
  const Thinning few(day, 300, 5, {});
  EXPECT_FALSE(few.is_coarse(50));
  const Thinning brief(std::span<const TickStretch>(day).first(6), 300, 290, {});
  EXPECT_FALSE(brief.is_coarse(3));
}

Step step_of(std::int64_t index, std::int64_t ms, std::int64_t samples = 32) {
  Step step{.process = 1, .index = index, .start_ns = index * 1'000'000'000, .duration_ns = ms * 1'000'000};
  step.samples = samples;
  step.data_wait_ns = step.duration_ns / 2;
  return step;
}

TEST(StepStatistics, WarmUpAndRaggedBatchesAreLeftOut) {
  StepStatistics statistics;
  std::int64_t index = 0;
  for (int i = 0; i < 10; ++i) statistics.add(step_of(index++, 500));
  for (int i = 0; i < 1000; ++i) {
    const bool is_last = i % 50 == 49;
    statistics.add(step_of(index++, is_last ? 20 : 100, is_last ? 5 : 32));
  }
  const SteadySteps steady = statistics.steady();
  EXPECT_EQ(steady.count, 1010U);
  EXPECT_GE(steady.warmup_count, 8U);
  EXPECT_LE(steady.warmup_count, 12U);
  EXPECT_EQ(steady.ragged_count, 20U);
  EXPECT_NEAR(static_cast<double>(steady.sums.duration_ns) / static_cast<double>(steady.sums.steps), 100e6, 5e6);
  EXPECT_NEAR(*steady.durations_ns.quantile(0.5), 100e6, 1e6);
}

// Length-bucketed batches differ all the time: none of them is "ragged".
TEST(StepStatistics, BatchesThatAlwaysVaryAreAllTypical) {
  StepStatistics statistics;
  for (int i = 0; i < 600; ++i) statistics.add(step_of(i, 100, 10 + i % 30));
  EXPECT_EQ(statistics.steady().ragged_count, 0U);
  EXPECT_GT(statistics.steady().sums.steps, 590U);
}

TEST(StepStatistics, StepsThatStartALoaderAreNotTypical) {
  StepStatistics statistics;
  for (int i = 0; i < 400; ++i) {
    Step step = step_of(i, i % 100 == 0 ? 3000 : 100);
    if (i % 100 == 0) step.loader_start_ns = 2'900'000'000;
    statistics.add(step);
  }
  const SteadySteps steady = statistics.steady();
  EXPECT_EQ(steady.loader_start_count, 3U);  // the first one is warm-up
  EXPECT_NEAR(static_cast<double>(steady.loader_start_ns), 9e9, 1);
  EXPECT_NEAR(*steady.durations_ns.quantile(0.99), 100e6, 1e6);
}

// A checkpoint makes its step untypical: it is counted over all steps, and a part that nobody measured stays unknown.
TEST(StepStatistics, PausesAreThoseOfAllSteps) {
  StepStatistics statistics;
  for (int i = 0; i < 1000; ++i) {
    const bool saves = i % 250 == 200;
    statistics.add({.index = i,
                    .start_ns = i * kNsPerS,
                    .duration_ns = saves ? 5 * kNsPerS : kNsPerS,
                    .checkpoint_ns = saves ? 4 * kNsPerS : 0});
  }
  const PartPauses& saving = statistics.pauses(StepPart::kCheckpoint);
  EXPECT_EQ(saving.measured, 1000U);
  EXPECT_EQ(saving.steps, 4U);
  EXPECT_EQ(saving.total_ns, 16 * kNsPerS);
  EXPECT_EQ(saving.longest_ns, 4 * kNsPerS);
  EXPECT_EQ(saving.last_step - saving.first_step, 750U);
  EXPECT_EQ(statistics.pauses(StepPart::kEvaluation).measured, 0U);
}

// Watched in turns: what is rare counts in every step, or two checkpoints in the few watched ones would speak for all.
TEST(StepStatistics, RarePartsAreSeenInStepsThatAreNotWatched) {
  StepStatistics statistics;
  for (int i = 0; i < 1280; ++i) {
    const bool is_watched = i % 128 < 16;
    Step step{
        .index = i, .start_ns = i * kNsPerMs, .duration_ns = kNsPerMs, .checkpoint_ns = i % 64 == 0 ? kNsPerMs : 0};
    if (is_watched) step.forward_ns = kNsPerMs / 2;
    step.is_hooked = is_watched;
    statistics.add(step);
  }
  const StepSums sums = statistics.steady().sums;
  EXPECT_NEAR(*sums.mean_ns(StepPart::kCheckpoint) / kNsPerMs, 1.0 / 64, 0.002);
  EXPECT_DOUBLE_EQ(*sums.mean_ns(StepPart::kForward) / kNsPerMs, 0.5);
  EXPECT_EQ(statistics.pauses(StepPart::kCheckpoint).steps, 20U);
}

// Flushing and uploading after torch.save, in steps of which few are watched: told with the checkpoint, and no wait.
TEST(StepStatistics, WhatFollowsACheckpointIsNoDataWait) {
  StepStatistics statistics;
  for (int i = 0; i < 300; ++i) {
    const bool saves = i % 25 == 0 && i > 0;
    const bool is_watched = i % 128 < 32;
    Step step{.index = i, .start_ns = i * kNsPerS, .duration_ns = (saves ? 260 : 20) * kNsPerMs};
    step.checkpoint_ns = saves ? 40 * kNsPerMs : 0;
    if (is_watched) step.data_wait_ns = saves ? 200 * kNsPerMs : kNsPerMs / 5;
    step.is_hooked = is_watched;
    statistics.add(step);
  }
  EXPECT_NEAR(static_cast<double>(statistics.beside_checkpoints_ns()) / kNsPerMs, 11 * 200, 11 * 3);
  EXPECT_NEAR(*statistics.steady().sums.mean_ns(StepPart::kDataWait) / kNsPerMs, 0.2, 0.001);
}

// Steps that differ anyway: a checkpoint's own time is all that is told.
TEST(StepStatistics, ACheckpointThatNothingFollowsHasNothingBesideIt) {
  StepStatistics statistics;
  for (int i = 0; i < 300; ++i) {
    const bool saves = i % 25 == 0 && i > 0;
    const std::int64_t own_ms = 18 + i % 5;
    statistics.add({.index = i,
                    .start_ns = i * kNsPerS,
                    .duration_ns = (own_ms + (saves ? 40 : 0)) * kNsPerMs,
                    .checkpoint_ns = saves ? 40 * kNsPerMs : 0});
  }
  EXPECT_EQ(statistics.beside_checkpoints_ns(), 0);
}

TEST(StepStatistics, ARestartBeginsAnew) {
  StepStatistics statistics;
  for (int i = 0; i < 100; ++i) statistics.add(step_of(i, 100));
  for (int i = 50; i < 100; ++i) statistics.add(step_of(i, i == 50 ? 5000 : 100));
  const SteadySteps steady = statistics.steady();
  EXPECT_EQ(steady.restarts, 1U);
  EXPECT_EQ(steady.count, 150U);
  EXPECT_NEAR(*steady.durations_ns.quantile(1), 100e6, 1e6);
}

// What is told per epoch counts the steps of epochs that have ended, not those of the one that runs.
TEST(PhasesAnalyzer, StepsOfAnEpochAreThoseOfEpochsThatEnded) {
  const auto specs = all_analyzers();
  const auto spec = std::find_if(specs.begin(), specs.end(), [](const auto* s) { return s->id == "phases"; });
  ASSERT_NE(spec, specs.end());
  const auto analyzer = (*spec)->open({});
  const auto epoch_steps = [&] {
    FactTable facts;
    analyzer->snapshot(facts);
    const Fact* fact = facts.find("phases.summary");
    return fact == nullptr ? std::nullopt : fact->number("epoch_steps");
  };
  const auto feed = [&](int steps, bool ends) {
    const Span step{.start_ns = 0, .duration_ns = kNsPerMs, .kind = SpanKind::kStep};
    for (int i = 0; i < steps; ++i) analyzer->on_spans({&step, 1});
    const Span epoch{.start_ns = 0, .duration_ns = kNsPerS, .kind = SpanKind::kEpoch};
    if (ends) analyzer->on_spans({&epoch, 1});
  };
  feed(30, false);
  EXPECT_EQ(epoch_steps(), std::nullopt);
  feed(2, true);
  feed(34, true);
  feed(5, false);
  EXPECT_EQ(epoch_steps(), 33);
}

TEST(AnalyzerTable, EverySpecIsCompleteAndEveryKindHasOneProducer) {
  std::set<std::string_view> kinds;
  std::set<std::string_view> ids;
  for (const AnalyzerSpec* spec : all_analyzers()) {
    EXPECT_TRUE(ids.insert(spec->id).second) << spec->id;
    EXPECT_FALSE(spec->summary.empty()) << spec->id;
    EXPECT_NE(spec->open, nullptr) << spec->id;
    EXPECT_FALSE(spec->produces.empty()) << spec->id;
    for (const FactSchema& schema : spec->produces) {
      EXPECT_TRUE(kinds.insert(schema.kind).second) << schema.kind;
      std::set<std::string_view> fields;
      for (const FactField& field : schema.fields) {
        EXPECT_TRUE(fields.insert(field.name).second) << schema.kind << "." << field.name;
        EXPECT_FALSE(field.unit.empty()) << schema.kind << "." << field.name;
      }
    }
  }
}

}  // namespace
}  // namespace hotlap
