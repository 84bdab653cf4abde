// torch.compile compiles again and again after the warm-up.
#include <array>
#include <cstdint>

#include "base/text.h"
#include "rules/rule.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "share_pct",
              .default_text = "3",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "share of the time after the warm-up from which on the rule speaks"},
    ParamDesc{.name = "steps_min",
              .default_text = "30",
              .min = 1,
              .max = 1e6,
              .unit = "{step}",
              .help = "steps after the warm-up that must have been seen"},
};

void judge(const Fact& steps, double share, FindingSink& out) {
  Finding finding;
  finding.where = steps.where;
  finding.cause = "The model is compiled again and again";
  finding.loss = format("{} % of the steps after the warm-up", figure(share));
  finding.severity = share >= 15 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "compile";
  finding.lost_pct = share;
  if (const auto steady = steps.number("steady_s")) finding.lost_s = *steady * share / 100;
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
  for (const Fact* parts : facts.all("breakdown.parts")) {
    const auto share = parts->number("compile");
    if (!share || *share < params.number("share_pct")) continue;
    for (const Fact* steps : facts.all("steps.summary")) {
      if (!(steps->where == parts->where)) continue;
      if (steps->number("steady_count").value_or(0) >= params.number("steps_min")) judge(*steps, *share, out);
    }
  }
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
