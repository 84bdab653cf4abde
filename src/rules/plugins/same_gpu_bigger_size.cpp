// All cores are full of loading while the GPU waits, and the same GPU is to be had with more cores.
#include <array>

#include "base/format.h"
#include "rules/bigger_size.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"machine.type"}, std::string_view{"steps.summary"},
                            std::string_view{"breakdown.parts"}, std::string_view{"core_use.summary"},
                            std::string_view{"loader.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "wait_pct",
              .default_text = "10",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "share of step time spent waiting for data from which on the rule speaks"},
    ParamDesc{.name = "busy_pct",
              .default_text = "90",
              .min = 10,
              .max = 100,
              .unit = "%",
              .help = "use of the usable cores from which on they are full"},
    ParamDesc{.name = "workers_max",
              .default_text = "64",
              .min = 1,
              .max = 1024,
              .unit = "{process}",
              .help = "never advise more workers than this"},
    steps_min_param("typical steps that must have been seen"),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto c = worst_loader_case(facts, params);
  if (!c || !c->is_known || c->core_use == nullptr || c->busy_pct < params.number("busy_pct")) return {};
  // Cores that others fill are not the machine's fault, and storage gives no more to more cores.
  if (c->shares_cores() || c->io_share >= kIoShareHigh) return {};
  const auto size = bigger_size(facts, *c, static_cast<int>(params.number("workers_max")));
  if (!size) return {};
  Finding finding =
      share_finding(c->steps->where, {.cause = format("The GPU waits for the cores of {}", size->now.name),
                                      .loss = {},
                                      .claims = "data_wait",
                                      .share_pct = c->wait_pct});
  finding.distance = 1;  // InputBound says why the cores are full
  finding.certainty = Certainty::kLikely;
  set_step_loss(*c->steps, c->wait_pct, finding);
  finding.evidence["step_ms"] = c->step_ms;
  finding.evidence["busy_pct"] = c->busy_pct;
  finding.evidence["price_change_pct"] = size->price_change_pct;
  finding.why.push_back(format("{} cores at {} %, a batch is {} ms of CPU; the step itself needs {} ms",
                               cores_figure(c->cores), figure(c->busy_pct), figure(c->costs.worker_cpu_ms),
                               figure(c->costs.compute_ms)));
  finding.advice.push_back({.change = size->change(),
                            .step_ms_low = size->step_ms.low,
                            .step_ms_high = size->step_ms.high,
                            .basis = Basis::kModel,
                            .note = size->note()});
  finding.limits.emplace_back("cheaper transforms cost no machine");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_same_gpu_bigger_size{
    .id = "SameGPUBiggerSize",
    .title = "The same GPU is to be had with more cores",
    .why =
        "When loading fills all cores that the job may use and the GPU waits, looks in the catalogue for sizes of the "
        "same provider with the same GPUs and more cores, and takes the one with which a step costs least by the model "
        "of the loader. InputBound, which says why the cores are full, comes first.",
    .advice =
        "That size and the number of workers, with the step time, the price of an hour and the cost of a step then.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
