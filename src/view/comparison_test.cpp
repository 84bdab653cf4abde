#include "view/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_reader.h"
#include "view/change.h"
#include "view/fail_on.h"
#include "view/run_settings.h"

namespace hotlap {
namespace {

using testing::HasSubstr;

std::vector<Measured> one(double value, std::optional<double> half = std::nullopt) { return {{value, half}}; }

TEST(ChangeOf, WithinRunsTheErrorsAddAndNeverGoBelowTheFloor) {
  const auto narrow = change_of(one(200, 0.1), one(100, 0.1), ChangeScale::kPercent);
  ASSERT_TRUE(narrow);
  EXPECT_NEAR(narrow->change, -50, 1e-9);
  EXPECT_NEAR(narrow->high - narrow->low, 2 * kFloorPct, 1e-9);
  EXPECT_FALSE(narrow->is_between_runs);
  const auto wide = change_of(one(100, 6), one(100, 8), ChangeScale::kPercent);
  EXPECT_NEAR(wide->high, 10, 1e-9);
  EXPECT_EQ(word_of(*wide, "better", "worse"), "no difference");
}

TEST(ChangeOf, WithoutAnIntervalNothingIsSaid) {
  EXPECT_FALSE(change_of(one(100), one(50, 1), ChangeScale::kPercent));
  EXPECT_FALSE(change_of({}, one(50, 1), ChangeScale::kPercent));
  EXPECT_FALSE(change_of(one(0, 0.1), one(50, 1), ChangeScale::kPercent));
}

// A share may be 0: its change is a difference.
TEST(ChangeOf, SharesChangeInPoints) {
  const auto change = change_of(one(60, 1), one(0, 0), ChangeScale::kPoints);
  ASSERT_TRUE(change);
  EXPECT_DOUBLE_EQ(change->change, -60);
  EXPECT_DOUBLE_EQ(change->high, -58);
}

// t(0.975, 4) = 2.776; the pooled deviation of {99, 100, 101} and {109, 110, 111} is 1.
TEST(ChangeOf, SeveralRunsTellTheirOwnSpread) {
  const std::vector<Measured> before{{99, 0.1}, {100, 0.1}, {101, 0.1}};
  const std::vector<Measured> after{{109, 0.1}, {110, 0.1}, {111, 0.1}};
  const auto change = change_of(before, after, ChangeScale::kPoints);
  ASSERT_TRUE(change);
  EXPECT_TRUE(change->is_between_runs);
  EXPECT_NEAR(change->low, 10 - 2.776 * std::sqrt(2.0 / 3), 0.01);
  // Runs that agree may do so below the floor.
  const std::vector<Measured> still{{100, 0.1}, {100.1, 0.1}, {99.9, 0.1}};
  EXPECT_LT(change_of(still, still, ChangeScale::kPercent)->high, kFloorPct / 2);
}

// Two runs that are equal by chance know no more than each of them.
TEST(ChangeOf, SeveralRunsKnowNoMoreThanTheyMeasured) {
  const std::vector<Measured> equal{{100, 5}, {100, 5}};
  EXPECT_NEAR(change_of(equal, equal, ChangeScale::kPoints)->high, 5, 1e-9);
}

TEST(ChangeOf, OneRunAgainstSeveral) {
  const std::vector<Measured> before{{99, 0.1}, {100, 0.1}, {101, 0.1}};
  const auto change = change_of(before, one(104, 0.1), ChangeScale::kPoints);
  ASSERT_TRUE(change);
  // One run of a group that varies so may lie 4.97 off: t(0.975, 2) = 4.303, times 1 times sqrt(1/3 + 1).
  EXPECT_NEAR(change->low, 4 - 4.303 * std::sqrt(4.0 / 3), 0.01);
}

TEST(FailOn, Grammar) {
  const auto parsed = parse_fail_on(" step_ms > +5% , samples_per_s<=-2.5%,gpu_busy_pct<90,memory_bytes>+1000000000");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 4U);
  EXPECT_EQ((*parsed)[0].limit_kind, FailCondition::Limit::kChangePct);
  EXPECT_EQ((*parsed)[0].limit, 5);
  EXPECT_TRUE((*parsed)[0].is_greater);
  EXPECT_EQ((*parsed)[1].limit, -2.5);
  EXPECT_TRUE((*parsed)[1].is_or_equal);
  EXPECT_FALSE((*parsed)[1].is_greater);
  EXPECT_EQ((*parsed)[2].limit_kind, FailCondition::Limit::kValue);
  EXPECT_EQ((*parsed)[3].limit_kind, FailCondition::Limit::kChange);
}

TEST(FailOn, BadConditionsAreOneClearLine) {
  for (const char* text : {"", " ", "step_ms", "step_ms>", "step_ms>5%", "step_ms>+x%", "step_ms>+-5%", "step_ms>nan",
                           "step_ms>>5", "step_ms=5", "step_ms>+5%,", ">5", "step_ms>+5%%", "step_ms>inf"}) {
    const auto parsed = parse_fail_on(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidInput) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("--fail-on '")) << text;
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos) << text;
  }
  EXPECT_THAT(parse_fail_on("step_mss>+5%").error().message, HasSubstr("did you mean step_ms?"));
  EXPECT_THAT(parse_fail_on("xyzzy>+5%").error().message, HasSubstr("there are: step_ms"));
}

TEST(NamedArguments, AllTheWaysToWriteThem) {
  const auto named = named_arguments({"python", "-u", "train.py", "--lr", "0.1", "--amp", "--wd=-1", "bs=4", "data",
                                      "--neg", "-3", "--tag", "a", "--tag", "b"});
  EXPECT_EQ(named.at("-u"), "set");
  EXPECT_EQ(named.at("1"), "train.py");
  EXPECT_EQ(named.at("--lr"), "0.1");
  EXPECT_EQ(named.at("--amp"), "set");
  EXPECT_EQ(named.at("--wd"), "-1");
  EXPECT_EQ(named.at("bs"), "4");
  EXPECT_EQ(named.at("2"), "data");
  EXPECT_EQ(named.at("--neg"), "-3");
  EXPECT_EQ(named.at("--tag"), "a b");
}

TEST(SettingsDifferences, WhatOneSideDidNotRecordIsNone) {
  const RunSettings before{{"argument", {{"--lr", "1"}, {"--amp", "set"}}}, {"code", {}}};
  const RunSettings after{{"argument", {{"--lr", "2"}}}, {"code", {{"git.revision", "b"}}}};
  const auto found = settings_differences({&before}, {&after});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "--amp");
  EXPECT_EQ(found[0].after, "not set");
  EXPECT_EQ(found[1].before, "1");
  EXPECT_EQ(found[1].after, "2");
  const RunSettings third{{"argument", {{"--lr", "1"}}}};
  EXPECT_EQ(settings_differences({&before, &after}, {&third}).front().before, "not set or set");
}

// A run of so many steps with one figure.
RunFigures run_with(double step_ms, double samples, std::int64_t steps = 400) {
  RunFigures run;
  run.info.id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  run.info.script = "/srv/train.py";
  run.info.status = RunStatus::kFinished;
  run.steps = run.steps_all = steps;
  run.samples_per_step = samples;
  run.document.steps = {.count = steps, .count_all = steps, .mean_ms = step_ms, .half_width_ms = step_ms / 100};
  run.figures.assign(figure_descriptions().size(), Figure{.measured = {}, .missing = "not measured"});
  run.figures[0] = {.measured = Measured{step_ms, step_ms / 100}, .missing = {}};
  run.figures[*find_figure("samples_per_s")] = {.measured = Measured{1000 * samples / step_ms, 10 * samples / step_ms},
                                                .missing = {}};
  return run;
}

TEST(CompareSides, MissingIsNeverZero) {
  const Comparison c = compare_sides({run_with(200, 32)}, {run_with(100, 32)}, {});
  EXPECT_EQ(c.refusal, "");
  const ComparedFigure& memory = c.figures[*find_figure("memory_bytes")];
  EXPECT_FALSE(memory.before);
  EXPECT_FALSE(memory.change);
  EXPECT_EQ(memory.missing, "not measured");
  const auto json = JsonDocument::parse(format_comparison(c, ComparisonFormat::kJson));
  ASSERT_TRUE(json.ok());
  for (const JsonValue& figure : json->root()["figures"].items()) {
    if (figure["figure"].text() != "memory_bytes") continue;
    EXPECT_TRUE(figure["before"].is_null());
    EXPECT_TRUE(figure["change"].is_null());
    EXPECT_EQ(figure["missing"].text(), "not measured");
  }
  EXPECT_EQ(json->root()["headline"]["word"].text(), "better");
}

// Another batch size: steps are not the same work, samples are.
TEST(CompareSides, OtherBatchesAreComparedBySamples) {
  const Comparison c = compare_sides({run_with(200, 32)}, {run_with(300, 64)}, {});
  EXPECT_EQ(c.refusal, "");
  EXPECT_EQ(c.figures[c.headline].desc->name, "samples_per_s");
  EXPECT_EQ(c.figures[c.headline].word, "better");
  EXPECT_FALSE(c.figures[0].change);
  EXPECT_THAT(c.figures[0].missing, HasSubstr("a step has 32 samples before, 64 after"));
}

TEST(CompareSides, RefusesWhereNoUnitIsCommon) {
  RunFigures unknown = run_with(200, 32);
  unknown.samples_per_step.reset();
  unknown.figures[*find_figure("samples_per_s")] = {.measured = {}, .missing = "the samples of a step are not known"};
  const Comparison c = compare_sides({unknown}, {run_with(300, 64)}, {});
  EXPECT_THAT(c.refusal, HasSubstr("known of one side only"));
  RunFigures starting = run_with(0, 0, 0);
  starting.document.steps = {};
  starting.is_live = true;
  EXPECT_THAT(compare_sides({unknown}, {starting}, {}).refusal, HasSubstr("still starting"));
  EXPECT_THAT(compare_sides({run_with(200, 32, 12)}, {run_with(300, 32)}, {}).refusal, HasSubstr("12 typical steps"));
}

TEST(CompareSides, AConditionHoldsOnlyBeyondChance) {
  const auto holds = [](double after_ms, const char* text) {
    const auto parsed = parse_fail_on(text);
    EXPECT_TRUE(parsed.ok());
    return compare_sides({run_with(100, 32)}, {run_with(after_ms, 32)}, *parsed).conditions.front().holds;
  };
  EXPECT_EQ(holds(110, "step_ms>+5%"), true);
  EXPECT_EQ(holds(104, "step_ms>+5%"), false);
  EXPECT_EQ(holds(101, "step_ms>+0.5%"), false);  // within 2 %
  EXPECT_EQ(holds(95, "step_ms>-10%"), true);     // not the gain that was asked for
  EXPECT_EQ(holds(80, "step_ms>-10%"), false);
  EXPECT_EQ(holds(110, "step_ms>105"), true);
  EXPECT_EQ(holds(110, "step_ms>+9"), true);
  EXPECT_EQ(holds(110, "samples_per_s<-5%"), true);
  EXPECT_EQ(holds(110, "memory_bytes>+5%"), std::nullopt);
}

TEST(CompareSides, ForeignTextHarmsNoFormat) {
  RunFigures before = run_with(200, 32);
  RunFigures after = run_with(100, 32);
  after.info.name = "a|b<c>\x1b[2J\n\"&";
  after.settings["argument"]["--x"] = "<script>|\x1b";
  before.settings["argument"]["--x"] = "y";
  const Comparison c = compare_sides({before}, {after}, {});
  for (const ComparisonFormat format :
       {ComparisonFormat::kText, ComparisonFormat::kMarkdown, ComparisonFormat::kJunit, ComparisonFormat::kJson}) {
    EXPECT_EQ(format_comparison(c, format).find('\x1b'), std::string::npos);
  }
  EXPECT_THAT(format_comparison(c, ComparisonFormat::kMarkdown), HasSubstr("\\<script>\\|"));
}

}  // namespace
}  // namespace hotlap
