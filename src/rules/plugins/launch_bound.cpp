// The host cannot launch kernels as fast as the GPU runs them.
#include <array>

#include "rules/fact_number.h"
#include "rules/trace_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"device.time"}, std::string_view{"kernels.summary"},
                            std::string_view{"launch.summary"}};
constexpr std::array kParams{
    share_param("10", "share of the device's time that it waits for launches from which on the rule speaks"),
    ParamDesc{.name = "kernel_us_max",
              .default_text = "200",
              .min = 1,
              .max = 1e6,
              .unit = "us",
              .help = "median length of kernels up to which launches can be what limits"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto c = trace_case(facts);
  if (!c || c->share_pct(c->launch_ms) < params.number("share_pct")) return {};
  const Fact* kernels = facts.find("kernels.summary");
  const Fact* launches = facts.find("launch.summary");
  const double median_us = number_in(kernels, "median_us").value_or(0);
  if (median_us > params.number("kernel_us_max")) {
    out.cannot_tell(
        format("the GPU waits {} % of its time for the host's next launch, but kernels are long ({} us): "
               "few launches in a row are slow",
               figure(c->share_pct(c->launch_ms)), figure(median_us)));
    return {};
  }
  Finding finding =
      trace_finding(*c, {.cause = "Launch-bound: the host gives the GPU work too slowly",
                         .loss = format("GPU waits {} % for launches", figure(c->share_pct(c->launch_ms))),
                         .claims = "launch",
                         .lost_ms = c->launch_ms});
  finding.certainty = Certainty::kLikely;  // the profiler slows the host, too
  const double calls = number_in(kernels, "calls").value_or(0);
  finding.evidence["kernels"] = calls;
  finding.evidence["kernel_median_us"] = median_us;
  std::string why = format("{}, half of them shorter than {} us", counted_per_step(*c, calls, "kernel", "kernels"),
                           figure(median_us));
  if (const auto short_pct = number_in(kernels, "short_pct"); short_pct && *short_pct >= 10) {
    why += format(", {} % below 10 us", figure(*short_pct));
  }
  finding.why.push_back(std::move(why));
  if (const auto empty = number_in(launches, "queue_empty_pct")) {
    finding.evidence["queue_empty_pct"] = *empty;
    finding.why.push_back(format("{} % of the work begins with nothing queued behind it", figure(*empty)));
  }
  Advice graphs{.change = "torch.compile(model, mode=\"reduce-overhead\"), or CUDA graphs"};
  if (const auto saved = saved_pct(facts, *c, "dispatch"); saved && *saved >= 3) {
    set_gain(*c, *saved, 0.4 * *saved, Basis::kModel, graphs);
  }
  graphs.note = "needs inputs of fixed shapes";
  finding.advice.push_back(std::move(graphs));
  finding.advice.push_back({.change = "a larger batch, the optimizer's fused=True",
                            .step_ms_low = std::nullopt,
                            .step_ms_high = std::nullopt,
                            .basis = Basis::kRuleOfThumb,
                            .note = ""});
  finding.limits.emplace_back("the profiler's own share of it");
  if (c->share_pct(c->device->number("idle_setup_ms").value_or(0)) < 3) {
    finding.look_alikes_excluded.emplace_back("allocation and loading of code");
  }
  if (c->share_pct(c->device->number("idle_data_ms").value_or(0)) < 3)
    finding.look_alikes_excluded.emplace_back("data");
  if (c->sync_ms && c->share_pct(*c->sync_ms) < 3) finding.look_alikes_excluded.emplace_back("waits of the host");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_launch_bound{
    .id = "LaunchBound",
    .title = "The host cannot launch kernels as fast as the GPU runs them",
    .why =
        "Looks at the GPU's idle time while the host runs operators on its way to the next launch. Never certain, "
        "since "
        "the profiler lengthens the host's work; time in which one call of a millisecond or more goes on (allocation, "
        "loading of code) is not meant.",
    .advice =
        "Fewer launches: graphs, compilation, fused operators, larger batches; with the step time of a replay "
        "in which the host's work is free as the limit.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
