#include "rules/engine.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "rules/registry.h"

namespace hotlap {
namespace {

Finding finding(std::string claims, std::int32_t distance, double lost_pct) {
  Finding one;
  one.claims = std::move(claims);
  one.distance = distance;
  one.lost_pct = lost_pct;
  one.lost_s = lost_pct;
  return one;
}

Result<void> cause(const FactTable&, const Params&, FindingSink& out) {
  out.add(finding("data_wait", 0, 50));
  return {};
}
Result<void> symptom(const FactTable&, const Params&, FindingSink& out) {
  out.add(finding("data_wait", 1, 60));
  return {};
}
Result<void> elsewhere(const FactTable&, const Params&, FindingSink& out) {
  out.add(finding("checkpoint", 0, 80));
  return {};
}
Result<void> between_steps(const FactTable&, const Params&, FindingSink& out) {
  Finding one = finding("evaluation", 0, 70);
  one.lost_of = LostOf::kRun;
  one.lost_s = 90;
  out.add(one);
  return {};
}
Result<void> trifle(const FactTable&, const Params&, FindingSink& out) {
  out.add(finding("gc", 0, 2));
  return {};
}
Result<void> broken(const FactTable&, const Params&, FindingSink&) {
  return Error{ErrorCode::kInternal, "division by zero"};
}

constexpr std::array kNeedsGpu{std::string_view{"gpu.use"}};
constexpr RuleSpec kCause{.id = "Cause", .evaluate = cause};
constexpr RuleSpec kSymptom{.id = "Symptom", .evaluate = symptom};
constexpr RuleSpec kElsewhere{.id = "Elsewhere", .evaluate = elsewhere};
constexpr RuleSpec kBetweenSteps{.id = "BetweenSteps", .evaluate = between_steps};
constexpr RuleSpec kTrifle{.id = "Trifle", .evaluate = trifle};
constexpr RuleSpec kBroken{.id = "Broken", .evaluate = broken};
constexpr std::array kEitherNeeds{std::string_view{"gpu.use"}, std::string_view{"steps.summary"}};
constexpr RuleSpec kEither{.id = "Either", .needs_one_of = kEitherNeeds, .evaluate = cause};
constexpr RuleSpec kGpu{.id = "Gpu", .needs = kNeedsGpu, .evaluate = cause};

TEST(RulesEngine, ALostSecondBelongsToTheFindingNearestToItsCause) {
  const std::array rules{&kSymptom, &kCause};
  const RulesOutcome out = run_rules(rules, {}, {});
  ASSERT_EQ(out.findings.size(), 2U);
  EXPECT_EQ(out.findings[0].rule, "Cause");
  EXPECT_EQ(out.findings[0].explains, std::vector<std::string>{"Symptom"});
  EXPECT_EQ(out.findings[1].explained_by, "Cause");
  EXPECT_FALSE(out.findings[1].lost_pct);
}

TEST(RulesEngine, LossesNeverAddUpToMoreThanWasLost) {
  const std::array rules{&kCause, &kElsewhere};
  const RulesOutcome out = run_rules(rules, {}, {});
  ASSERT_EQ(out.findings.size(), 2U);
  EXPECT_EQ(out.findings[0].rule, "Elsewhere");  // by loss
  EXPECT_DOUBLE_EQ(*out.findings[0].lost_pct + *out.findings[1].lost_pct, 100);
  EXPECT_DOUBLE_EQ(*out.findings[1].lost_s, 20);
}

FactTable with_steps() {
  FactTable facts;
  facts.add(Fact{.kind = "steps.summary"});
  return facts;
}

// Where nobody saw a step, a share is of the time that was recorded.
TEST(RulesEngine, WithoutStepsALossIsOfTheRun) {
  const std::array rules{&kCause};
  EXPECT_EQ(run_rules(rules, {}, {}).findings.at(0).lost_of, LostOf::kRun);
  EXPECT_EQ(run_rules(rules, with_steps(), {}).findings.at(0).lost_of, LostOf::kSteps);
}

// 80 % of the steps and 70 % of the run are different seconds; the order is by seconds.
TEST(RulesEngine, LossesBetweenTheStepsTakeNothingFromTheSteps) {
  const std::array rules{&kElsewhere, &kBetweenSteps};
  const RulesOutcome out = run_rules(rules, with_steps(), {});
  ASSERT_EQ(out.findings.size(), 2U);
  EXPECT_EQ(out.findings[0].rule, "BetweenSteps");
  EXPECT_DOUBLE_EQ(*out.findings[0].lost_pct, 70);
  EXPECT_DOUBLE_EQ(*out.findings[1].lost_pct, 80);
}

TEST(RulesEngine, TriflesAreNotRecommended) {
  const std::array rules{&kTrifle};
  EXPECT_TRUE(run_rules(rules, {}, {}).findings.empty());
}

TEST(RulesEngine, ARuleWithoutItsFactsSaysWhichAreMissing) {
  const std::array rules{&kGpu, &kCause};
  const RulesOutcome out = run_rules(rules, {}, {});
  ASSERT_EQ(out.not_run.size(), 1U);
  EXPECT_EQ(out.not_run[0].rule, "Gpu");
  EXPECT_EQ(out.not_run[0].missing, std::vector<std::string>{"gpu.use"});
  EXPECT_EQ(out.run, 1);
}

TEST(RulesEngine, ARuleThatCanDoWithEitherFactSaysSo) {
  const std::array rules{&kEither};
  const RulesOutcome out = run_rules(rules, {}, {});
  ASSERT_EQ(out.not_run.size(), 1U);
  EXPECT_EQ(out.not_run[0].missing, std::vector<std::string>{"gpu.use or steps.summary"});
  EXPECT_EQ(run_rules(rules, with_steps(), {}).run, 1);
}

TEST(RulesEngine, ABrokenRuleTakesNoOtherDown) {
  const std::array rules{&kBroken, &kCause};
  const RulesOutcome out = run_rules(rules, {}, {});
  ASSERT_EQ(out.errors.size(), 1U);
  EXPECT_EQ(out.errors[0].message, "Broken: division by zero");
  EXPECT_EQ(out.findings.size(), 1U);
}

TEST(Params, WhatTheUserSetsIsChecked) {
  constexpr std::array kDescs{
      ParamDesc{.name = "share", .default_text = "3", .min = 1, .max = 50, .unit = "%", .help = "x"},
      ParamDesc{.name = "wait", .type = ParamType::kDuration, .default_text = "2s", .help = "x"}};
  const auto plain = Params::make("R", kDescs, {});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->number("share"), 3);
  EXPECT_EQ(plain->duration_ns("wait"), 2'000'000'000);
  const auto far = Params::make("R", kDescs, {{"share", "99"}});
  ASSERT_FALSE(far.ok());
  EXPECT_EQ(far.error().message, "rule R: share is '99', it takes a number from 1 to 50 %");
  const auto typo = Params::make("R", kDescs, {{"shar", "9"}});
  ASSERT_FALSE(typo.ok());
  EXPECT_EQ(typo.error().message, "rule R has no parameter 'shar'; it has share, wait");
}

TEST(RuleTable, EverySpecIsCompleteAndItsDefaultsAreValid) {
  std::set<std::string_view> ids;
  for (const RuleSpec* rule : all_rules()) {
    EXPECT_TRUE(ids.insert(rule->id).second) << rule->id;
    EXPECT_TRUE(rule->id[0] >= 'A' && rule->id[0] <= 'Z') << rule->id;
    EXPECT_FALSE(rule->title.empty() || rule->why.empty() || rule->advice.empty()) << rule->id;
    EXPECT_NE(rule->evaluate, nullptr) << rule->id;
    const auto params = Params::make(rule->id, rule->params, {});
    EXPECT_TRUE(params.ok()) << (params.ok() ? "" : params.error().message);
    for (const ParamDesc& desc : rule->params) EXPECT_FALSE(desc.help.empty()) << rule->id << "." << desc.name;
  }
}

}  // namespace
}  // namespace hotlap
