#include "view/remaining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hotlap {
namespace {

using testing::HasSubstr;

// 1,000 steps of 100 ms after a start-up of 20 s; a checkpoint each 200 steps.
FactTable facts(double checkpoints = 5) {
  FactTable out;
  Fact steps{.kind = "steps.summary"};
  steps.set("count", 1'000).set("steady_count", 950).set("warmup_count", 10).set("warmup_s", 2);
  steps.set("mean_ms", 100).set("half_width_ms", 0.5);
  out.add(steps);
  Fact throughput{.kind = "throughput.summary"};
  throughput.set("overall_steps_per_s", 1'000.0 / (2 + 990 * 0.11));  // 10 ms beside each step
  out.add(throughput);
  Fact phases{.kind = "phases.summary"};
  phases.set("starting_s", 8).set("initialisation_s", 10).set("epoch_steps", 500);
  out.add(phases);
  Fact pause{.kind = "pauses.part"};
  pause.set_text("what", "checkpoint").set("count", checkpoints).set("every_steps", 200);
  out.add(pause);
  return out;
}

RunInfo run_with(std::vector<std::string> command) {
  RunInfo run;
  run.command = std::move(command);
  return run;
}

std::vector<Finding> advised(double low_ms, double high_ms) {
  Finding finding;
  finding.rule = "InputBound";
  finding.advice = {{.change = "DataLoader(num_workers=6)", .step_ms_low = low_ms, .step_ms_high = high_ms}};
  return {finding};
}

TEST(StepsTotal, WhereItComesFrom) {
  RunInfo run = run_with({"python", "train.py", "--epochs", "4"});
  EXPECT_FALSE(steps_total_of(run, std::nullopt));  // no epoch has ended
  EXPECT_EQ(steps_total_of(run, 500)->steps, 2'000);
  EXPECT_EQ(steps_total_of(run, 500)->from, "--epochs 4 x 500 steps");
  EXPECT_EQ(steps_total_of(run_with({"python", "t.py", "trainer.max_steps=900", "--epochs=4"}), 500)->steps, 900);
  EXPECT_EQ(steps_total_of(run_with({"python", "t.py", "--num-epochs=3"}), 100)->steps, 300);
  run.environment["HOTLAP_STEPS"] = "52000";
  EXPECT_EQ(steps_total_of(run, 500)->steps, 52'000);
  EXPECT_EQ(steps_total_of(run, 500)->from, "--steps");
  for (const char* value : {"-1", "0", "x", "1e300"}) {
    EXPECT_FALSE(steps_total_of(run_with({"python", "t.py", "--max-steps", value}), 500)) << value;
  }
}

// Before the first epoch ends its length is the loader's.
TEST(EpochSteps, AreTheLoadersBeforeAnEpochHasEnded) {
  FactTable early;
  Fact steps{.kind = "steps.summary"};
  early.add(steps.set("batches_per_step", 4));
  EXPECT_FALSE(epoch_steps_of(early));
  Fact loader{.kind = "loader.summary"};
  early.add(loader.set("epoch_batches", 2'000));
  EXPECT_EQ(epoch_steps_of(early), 500);  // four batches make a step
  Fact phases{.kind = "phases.summary"};
  early.add(phases.set("epoch_steps", 480));
  EXPECT_EQ(epoch_steps_of(early), 480);  // what was seen comes first
}

TEST(Remaining, AsItIsAndWithTheFix) {
  const auto left = remaining_of(run_with({"python", "t.py", "--max-steps=11000"}), facts(), advised(40, 50));
  ASSERT_TRUE(left);
  EXPECT_EQ(left->steps_left, 10'000);
  EXPECT_NEAR(left->as_is_s.low, 1'100 * 0.98, 1);  // never finer than 2 %
  EXPECT_NEAR(left->as_is_s.high, 1'100 * 1.02, 1);
  // What lies beside typical steps stays.
  EXPECT_NEAR(left->with_fix_s->low, 10'000 * 0.050, 1);
  EXPECT_NEAR(left->with_fix_s->high, 10'000 * 0.060, 1);
  EXPECT_DOUBLE_EQ(left->start_up_s, 20);
  EXPECT_EQ(left->redone_steps, 200);
  EXPECT_NEAR(left->restart_s->high, 20 + 10'200 * 0.060, 1);
  EXPECT_EQ(left->better, "restart");
  const auto lines = remaining_lines(*left, Price{.per_hour = 3.6});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("10,000 of 11,000 steps left (--max-steps 11000)"));
  EXPECT_THAT(lines[0], HasSubstr("$1.08-$1.12"));
  EXPECT_THAT(lines[1], HasSubstr("a restart pays"));
}

TEST(Remaining, WithoutACheckpointEverythingIsDoneAgain) {
  FactTable none = facts(0);
  const auto left = remaining_of(run_with({"python", "t.py", "--max-steps=1500"}), none, advised(80, 90));
  ASSERT_TRUE(left);
  EXPECT_FALSE(left->has_checkpoint);
  EXPECT_NEAR(left->restart_s->low, 20 + 1'500 * 0.090, 1);
  EXPECT_EQ(left->better, "finish");
  EXPECT_THAT(remaining_lines(*left, std::nullopt)[1], HasSubstr("from the beginning"));
}

TEST(Remaining, WhatIsNotKnownIsNotSaid) {
  EXPECT_FALSE(remaining_of(run_with({"python", "t.py"}), facts(), advised(40, 50)));
  // More steps done than there were to be.
  EXPECT_FALSE(remaining_of(run_with({"python", "t.py", "--max-steps=900"}), facts(), advised(40, 50)));
  EXPECT_FALSE(remaining_of(run_with({"python", "t.py", "--max-steps=9000"}), FactTable(), {}));
  const auto healthy = remaining_of(run_with({"python", "t.py", "--max-steps=9000"}), facts(), {});
  ASSERT_TRUE(healthy);
  EXPECT_FALSE(healthy->with_fix_s);
  EXPECT_EQ(healthy->better, "");
  EXPECT_EQ(remaining_lines(*healthy, std::nullopt).size(), 1U);
}

}  // namespace
}  // namespace hotlap
