// A good part of the step lies outside everything that is measured: no loader, no model. It is said, so that "nothing
// found" never covers it.
#include <algorithm>
#include <array>
#include <optional>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("10", "share of a typical step in other code from which on the rule speaks"),
    steps_min_param("typical steps that must have been seen"),
};

// Of the time in which the training thread wanted a core, the part in which it had one. 1: not known.
double share_with_core(const FactTable& facts, const Fact& steps) {
  const Fact* process = process_of(facts, steps);
  const auto wait_pct = number_in(process, "main_wait_pct");
  const auto cores = number_in(process, "main_thread_cores");
  if (!wait_pct || !cores || *wait_pct + 100 * *cores <= 0) return 1;
  return 100 * *cores / (*wait_pct + 100 * *cores);
}

void judge(const Fact& steps, double share, FindingSink& out) {
  Finding finding = share_finding(steps.where, {.cause = "Code that is neither loading nor the model",
                                                .loss = format("{} % of each step", figure(share)),
                                                .claims = "other",
                                                .share_pct = share});
  finding.severity = Severity::kWarning;  // how much of it could go is not known
  finding.distance = 2;                   // a rule that knows what the code does is nearer
  set_step_loss(steps, share, finding);
  Advice advice{.change = "name its parts: with hotlap.span('...') between optimizer.step() and the next batch",
                .basis = Basis::kRuleOfThumb,
                .note = "metrics, logging and loss.item() are the usual ones"};
  if (const auto mean = steps.number("mean_ms")) {
    finding.why.push_back(format("{} of {} ms pass outside data wait, forward, backward and optimizer",
                                 figure(*mean * share / 100), figure(*mean)));
    finding.evidence["other_ms"] = *mean * share / 100;
    advice.gain = format("at most: step {} -> {} ms without it", figure(*mean), figure(*mean * (1 - share / 100)));
  }
  finding.advice.push_back(std::move(advice));
  finding.limits.emplace_back("which code it is");
  out.add(std::move(finding));
}

// Of a trace: the share of the device's time in which it idled while the host ran other code. Nothing: no device in it.
std::optional<double> idle_beside_pct(const FactTable& facts, const Where& where) {
  const Fact* device = fact_for(facts, "device.time", where);
  const auto wall_ms = number_in(device, "wall_ms");
  if (!wall_ms || *wall_ms <= 0) return std::nullopt;
  return 100 * number_in(device, "idle_host_ms").value_or(0) / *wall_ms;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const StepShare& one : step_shares(facts, params, "other")) {
    const Fact* parts = fact_for(facts, "breakdown.parts", one.steps->where);
    if (parts->number("compute_known") != 1) continue;  // the model itself is in it then
    double share = one.share_pct * share_with_core(facts, *one.steps);
    if (share < params.number("share_pct")) continue;  // it is the wait for a core that is long, wherever it comes
    if (const auto idle = idle_beside_pct(facts, one.steps->where)) {
      share = std::min(share, *idle);
      if (share < params.number("share_pct")) continue;
    } else if (may_have_gpu(facts)) {
      const auto busy = gpu_busy_pct(facts, one.steps->where);
      if (!busy) {
        out.cannot_tell(format("{} % of each step is other code, or waiting for the GPU: how busy it was is missing",
                               figure(share)));
        continue;
      }
      share = std::min(share, 100 - *busy);  // what the thread waits for the GPU holds nothing up
      if (share < params.number("share_pct")) continue;
    }
    judge(*one.steps, share, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_other_code{
    .id = "OtherCode",
    .title = "Much of the step is neither loading nor the model",
    .why =
        "Looks at what is left of typical steps when everything that is measured has been taken off. With a GPU only "
        "the part in which the GPU did not work counts. HotCore, where it names the thread, explains the same time.",
    .advice = "Naming the parts of that code, with the step time without it as the limit of what can be won.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
