// Evaluation between the steps takes a large part of the run.
#include <array>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"pauses.part"}};
constexpr std::array kParams{
    share_param("15", "share of the time from the first step to the last from which on the rule speaks"),
};

constexpr double kRollOutSteps = 50;

// No loader gives what is evaluated, and it comes after every few steps: a policy that acts, a model that generates.
bool is_roll_out(const Fact& pauses) {
  const auto every = pauses.number("every_steps");
  return pauses.number("batches") == 0 && every && *every <= kRollOutSteps;
}

Advice advice_for(bool rolls_out, double share) {
  const double half = 100 * (share / 2) / (100 - share / 2);
  Advice advice{
      .change = "evaluate half as often, or on half of the data",
      .basis = Basis::kArithmetic,
      .note = "under torch.inference_mode(), with larger batches than training has",
      .gain = format("{} % -> {} % of the run, {} % shorter", figure(share), figure(half), figure(share / 2))};
  if (!rolls_out) return advice;
  advice.change =
      "more in one call: many environments or prompts as one batch; caches of keys and values; or another "
      "process for it while training goes on";
  advice.note = "under torch.inference_mode()";
  advice.gain = format("at half the time: {}", advice.gain);
  return advice;
}

void judge(const Fact& pauses, double share, FindingSink& out) {
  const auto every = pauses.number("every_steps");
  const bool rolls_out = is_roll_out(pauses);
  Finding finding =
      share_finding(pauses.where, {.cause = rolls_out ? "Forward passes without gradients take a large part "
                                                        "of the run: roll-outs, generation"
                                                      : "Evaluation takes a large part of the run",
                                   .loss = format("{} % of the run", figure(share)),
                                   .claims = "evaluation",
                                   .share_pct = share,
                                   .lost_of = LostOf::kRun,
                                   .lost_s = pauses.number("total_s")});
  finding.severity = share >= 40 ? Severity::kWarning : Severity::kInfo;  // often it is wanted
  finding.where.process = pauses.text("process").value_or("");
  finding.evidence["count"] = pauses.number("count").value_or(0);
  finding.evidence["mean_s"] = pauses.number("mean_s").value_or(0);
  const std::string mean_s = figure(pauses.number("mean_s").value_or(0));
  if (rolls_out) {
    finding.why.push_back(
        format("every {} steps the model runs for {} s, without a loader", count_figure(*every), mean_s));
  } else if (every) {
    finding.why.push_back(format("every {} steps the model is evaluated for {} s", count_figure(*every), mean_s));
  } else {
    finding.why.push_back(format("the model was evaluated for {} s", figure(pauses.number("total_s").value_or(0))));
  }
  finding.advice.push_back(advice_for(rolls_out, share));
  if (!rolls_out) finding.limits.emplace_back("what the evaluations are needed for");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* pauses : facts.all("pauses.part")) {
    const double share = pauses->number("share_pct").value_or(0);
    if (pauses->text("what") == "evaluation" && share >= params.number("share_pct")) judge(*pauses, share, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_evaluation_share{
    .id = "EvaluationShare",
    .title = "Evaluation takes a large part of the run",
    .why =
        "Adds up the evaluations between the first step and the last, each from the wait for its first batch to the "
        "end "
        "of its last forward pass.",
    .advice = "Evaluating more rarely or on less data, with what that gains.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
