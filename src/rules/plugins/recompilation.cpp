// torch.compile compiles again and again after the warm-up.
#include <array>
#include <cstdint>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"steps.summary"}};
// Where nobody looked inside the steps, shapes alone tell.
constexpr std::array kNeedsOneOf{std::string_view{"breakdown.parts"}, std::string_view{"shapes.summary"}};
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

// Nobody measured the compiler: steps whose input has a new shape take far longer, and nearly no others do.
constexpr double kMostSlow = 60;    // percent of the steps with a new shape
constexpr double kOthersSlow = 40;  // percent of the slow steps that have none
constexpr double kFirstStepsMin = 3;

void judge_by_shape(const FactTable& facts, const Fact& shapes, FindingSink& out) {
  const double lost = shapes.number("lost_pct").value_or(0);
  const double first = shapes.number("first_steps").value_or(0);
  Finding finding = share_finding(shapes.where, {.cause = "Each new shape of the input compiles anew",
                                                 .loss = format("{} % of the steps", figure(lost)),
                                                 .claims = "compile",
                                                 .share_pct = lost,
                                                 .lost_s = shapes.number("lost_s"),
                                                 .count = first});
  finding.certainty = Certainty::kLikely;
  finding.evidence["new_shapes"] = first;
  finding.evidence["first_ms"] = shapes.number("first_ms").value_or(0);
  finding.evidence["again_ms"] = shapes.number("again_ms").value_or(0);
  finding.why.push_back(format("{} steps with a new shape take {} ms, with a shape seen before {} ms",
                               count_figure(first), figure(shapes.number("first_ms").value_or(0)),
                               figure(shapes.number("again_ms").value_or(0))));
  finding.why.push_back(format("{} shapes in {} steps", count_figure(shapes.number("shapes").value_or(0)),
                               count_figure(shapes.number("steps").value_or(0))));
  Advice advice{.change =
                    "pad or bucket the batches to few shapes, or dynamic ones (torch.compile(dynamic=True), "
                    "reduce_retracing in TensorFlow); warm all of them up before training",
                .basis = Basis::kModel,
                .note = "cudnn.benchmark tries its algorithms out for each shape: off, it costs less then"};
  const auto again = shapes.number("again_ms");
  const auto mean = number_in(facts.find("steps.summary"), "mean_ms");
  if (again && mean && *again < *mean) {
    advice.step_ms_low = again;
    advice.step_ms_high = mean;
  }
  finding.advice.push_back(std::move(advice));
  finding.limits.emplace_back("whether it compiles, retraces or tunes: by the time alone");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const std::vector<StepShare> measured = step_shares(facts, params, "compile");
  for (const StepShare& one : measured) judge(*one.steps, one.share_pct, out);
  if (!measured.empty()) return {};
  for (const Fact* shapes : facts.all("shapes.summary")) {
    if (shapes->number("first_steps").value_or(0) < kFirstStepsMin) continue;
    if (shapes->number("lost_pct").value_or(0) < params.number("share_pct")) continue;
    if (shapes->number("slow_first_pct").value_or(0) < kMostSlow) continue;
    if (shapes->number("slow_others_pct").value_or(0) > kOthersSlow) continue;
    judge_by_shape(facts, *shapes, out);
    break;
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_recompilation{
    .id = "Recompilation",
    .title = "torch.compile compiles again after the warm-up",
    .why =
        "Looks at the compiler's share of typical steps; what the first steps compile is warm-up and not counted. "
        "Where "
        "it was not measured and steps tell the shape of their input: steps with a new shape against the others.",
    .advice = "Fewer shapes, or dynamic ones, with the step time that leaves.",
    .needs = kNeeds,
    .needs_one_of = kNeedsOneOf,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
