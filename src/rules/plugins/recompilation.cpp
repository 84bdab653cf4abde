// torch.compile compiles again and again after the warm-up.
#include <array>
#include <cstdint>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("3", "share of the time after the warm-up from which on the rule speaks"),
    steps_min_param("steps after the warm-up that must have been seen"),
};

void judge(const Fact& steps, double share, FindingSink& out) {
  Finding finding = share_finding(steps.where, {.cause = "The model is compiled again and again",
                                                .loss = format("{} % of the steps after the warm-up", figure(share)),
                                                .claims = "compile",
                                                .share_pct = share});
  set_step_loss(steps, share, finding);
  finding.why.push_back(format("{} steps after the warm-up still spend {} % of their time in the compiler",
                               shown_count(static_cast<std::uint64_t>(steps.number("steady_count").value_or(0))),
                               figure(share)));
  Advice advice{.change = "pad or bucket the batches to few shapes, or torch.compile(dynamic=True)",
                .basis = Basis::kModel,
                .note = "TORCH_LOGS=recompiles names the guard that failed"};
  if (const auto mean = steps.number("mean_ms")) {
    finding.evidence["step_ms"] = *mean;
    advice.step_ms_low = *mean * (1 - share / 100);
    // Shapes that are made alike are padded, dynamic kernels are slower: some of it is paid for.
    advice.step_ms_high = *mean * (1 - 0.6 * share / 100);
  }
  finding.advice.push_back(std::move(advice));
  finding.limits.emplace_back("which shape or value changes");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const StepShare& one : step_shares(facts, params, "compile")) judge(*one.steps, one.share_pct, out);
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_recompilation{
    .id = "Recompilation",
    .title = "torch.compile compiles again after the warm-up",
    .why = "Looks at the compiler's share of typical steps; what the first steps compile is warm-up and not counted.",
    .advice = "Fewer shapes, or dynamic ones, with the step time that leaves.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
