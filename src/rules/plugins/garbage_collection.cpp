// Python's collector runs inside the steps and takes time that counts.
#include <array>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("3", "share of a typical step from which on the rule speaks"),
    steps_min_param("typical steps that must have been seen"),
};

void judge(const Fact& steps, double share, FindingSink& out) {
  Finding finding = share_finding(steps.where, {.cause = "Python's garbage collector runs inside the steps",
                                                .loss = format("{} % of each step", figure(share)),
                                                .claims = "gc",
                                                .share_pct = share});
  set_step_loss(steps, share, finding);
  Advice advice{.change = "gc.freeze() after the set-up; gc.disable(), and gc.collect() once per epoch",
                .basis = Basis::kModel,
                .note = "every rank at the same step; watch memory: reference cycles wait until then"};
  if (const auto mean = steps.number("mean_ms")) {
    finding.why.push_back(
        format("of a step of {} ms the collector takes {} ms, mean", figure(*mean), figure(*mean * share / 100)));
    finding.evidence["step_ms"] = *mean;
    finding.evidence["gc_ms"] = *mean * share / 100;
    // A collection per epoch is left, and collecting cools the caches of what comes after it.
    const double error = steps.number("half_width_ms").value_or(0.05 * *mean) / *mean;
    advice.step_ms_low = *mean * (1 - share / 100) * (1 - error);
    advice.step_ms_high = *mean * (1 - 0.93 * share / 100) * (1 + error);
  } else {
    finding.why.push_back(format("the collector takes {} % of a typical step", figure(share)));
  }
  finding.advice.push_back(std::move(advice));
  finding.look_alikes_excluded.emplace_back("the loader");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const StepShare& one : step_shares(facts, params, "gc")) judge(*one.steps, one.share_pct, out);
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_garbage_collection{
    .id = "GarbageCollection",
    .title = "Python's garbage collector slows the steps",
    .why = "Looks at the time that Python's cyclic collector takes of typical steps, as gc.callbacks tell it.",
    .advice = "Collecting at chosen moments only, with the step time that leaves.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
