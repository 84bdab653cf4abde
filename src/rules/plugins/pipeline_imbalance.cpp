// One stage of a pipeline computes longer than the others: every micro-batch waits for it.
#include <array>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"pipeline.summary"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("5", "share of a typical step that goes when the stages' work is even, from which on the rule speaks"),
    ParamDesc{.name = "slowest_pct",
              .default_text = "60",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "of the steps in which the same stage must be the slowest"},
    ParamDesc{.name = "steps_min",
              .default_text = "3",
              .min = 1,
              .max = 1e6,
              .unit = "{step}",
              .help = "in which all stages must have been seen"},
};
constexpr double kCertainShare = 80;

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const Fact& all = *facts.find("pipeline.summary");
  const Fact& steps = *facts.find("steps.summary");
  const auto mean_ms = steps.number("mean_ms");
  const auto saves_ms = all.number("even_saves_ms");
  if (!mean_ms || *mean_ms <= 0 || all.number("steps").value_or(0) < params.number("steps_min")) return {};
  if (!saves_ms) {
    out.cannot_tell("how many micro-batches a step has is missing: no forward pass of a stage was seen");
    return {};
  }
  const double share = 100 * *saves_ms / *mean_ms;
  const double slowest_share = all.number("slowest_share_pct").value_or(0);
  if (share < params.number("share_pct") || slowest_share < params.number("slowest_pct")) return {};
  const long stage = std::lround(all.number("slowest_stage").value_or(0));
  const long others = std::lround(all.number("stages").value_or(0)) - 1;
  Finding finding = share_finding({}, {.cause = format("Pipeline stage {} is the slowest", stage),
                                       .loss = format("the other{} it {} % of each step",
                                                      others == 1 ? " one waits for" : "s wait for", figure(share)),
                                       .claims = "other",  // the stages wait outside of all that they compute
                                       .share_pct = share});
  finding.certainty = slowest_share >= kCertainShare ? Certainty::kCertain : Certainty::kLikely;
  set_step_loss(steps, share, finding);
  const double slowest_ms = all.number("slowest_ms").value_or(0);
  finding.evidence["stage"] = static_cast<double>(stage);
  finding.evidence["slowest_ms"] = slowest_ms;
  finding.evidence["even_saves_ms"] = *saves_ms;
  finding.why.push_back(format("it computes {} ms of a step, the {} {} ms; in {} % of {} steps the slowest",
                               figure(slowest_ms), others == 1 ? "other" : "others",
                               figure(all.number("others_ms").value_or(0)), figure(slowest_share),
                               count_figure(all.number("steps").value_or(0))));
  finding.why.push_back(format("{} pass through it one after the other",
                               counted(all.number("micro_batches").value_or(0), "micro-batch", "micro-batches")));
  // Layers are whole, so that an even split is the limit.
  finding.advice.push_back(
      {.change = "move layers from that stage to the others; the last one has the head and the loss as well",
       .step_ms_low = *mean_ms - *saves_ms,
       .step_ms_high = *mean_ms - *saves_ms / 2,
       .basis = Basis::kModel,
       .note = "if it has no more of them: look at its GPUs' clocks, heat, power"});
  finding.look_alikes_excluded.emplace_back("filling and draining the pipeline (not counted)");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_pipeline_imbalance{
    .id = "PipelineImbalance",
    .title = "One stage of a pipeline is slower than the others",
    .why =
        "Compares what the stages of a pipeline compute in the same step, in a timeline that calls its threads by "
        "them. A step would be shorter by what the slowest stage computes beyond an even split, for every micro-batch "
        "but one.",
    .advice = "Moving layers between stages, with the step time of an even split as the limit.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
