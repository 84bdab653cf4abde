// Loader workers against cores: far fewer than there are, or far more. A symptom: what the wait needs comes first.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/loader_case.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"loader.summary"}, std::string_view{"core_use.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "min_threshold",
              .default_text = "70",
              .min = 0,
              .max = 1000,
              .unit = "%",
              .help = "workers of usable cores below which there are few, when training waits for data"},
    ParamDesc{.name = "max_threshold",
              .default_text = "200",
              .min = 1,
              .max = 10000,
              .unit = "%",
              .help = "workers of usable cores above which there are many"},
    ParamDesc{.name = "wait_pct",
              .default_text = "3",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "share of step time spent waiting for data, without which few workers are no fault"},
};

Finding base_finding(const Fact& loader, double workers, double cores) {
  Finding finding;
  finding.where = loader.where;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kPossible;
  finding.claims = "data_wait";
  finding.distance = 2;
  finding.evidence["workers"] = workers;
  finding.evidence["usable_cores"] = cores;
  finding.why.push_back(
      format("{} on {} usable cores", counted(std::lround(workers), "loader worker"), cores_figure(cores)));
  if (loader.number("pin_memory") == 0) finding.why.emplace_back("batches are not in pinned memory");
  return finding;
}

bool do_keep_up(const Fact& loader, const Fact& steps, double workers, double wait_pct) {
  const double step_ms = steps.number("mean_ms").value_or(0);
  const double batches = std::max(steps.number("batches_per_step").value_or(1), 1.0);
  return wait_pct < kHandOverPct && keep_up(loader.number("batch_wall_ms").value_or(0), static_cast<int>(workers),
                                            (1 - wait_pct / 100) * step_ms / batches);
}

void few(const Fact& loader, const Fact& steps, double workers, double cores, double wait_pct, FindingSink& out) {
  Finding finding = base_finding(loader, workers, cores);
  finding.cause = "Few loader workers for the cores there are";
  set_step_loss(steps, wait_pct, finding);
  finding.advice.push_back({.change = format("DataLoader(num_workers={})", std::lround(0.7 * cores)),
                            .note = "how many are needed depends on what a batch costs"});
  out.add(std::move(finding));
}

void many(const Fact& loader, const Fact& core_use, double workers, double cores, FindingSink& out) {
  Finding finding = base_finding(loader, workers, cores);
  finding.cause = "More loader workers than cores for them";
  finding.loss = "memory, and time for switching";
  finding.severity = core_use.number("busy_pct").value_or(0) >= 90 ? Severity::kWarning : Severity::kInfo;
  if (const auto runnable = core_use.number("runnable"))
    finding.why.push_back(format("{} tasks want to run", figure(*runnable)));
  finding.advice.push_back({.change = format("DataLoader(num_workers={})", std::max(1L, std::lround(cores))),
                            .note = "more than one per core helps only where workers wait for storage"});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* loader : facts.all("loader.summary")) {
    const Fact* core_use = fact_for(facts, "core_use.summary", loader->where);
    const auto cores = number_in(core_use, "usable_cores");
    const auto workers = loader->number("workers");
    if (!cores || !workers || *cores <= 0) continue;
    // Ranks on one machine share its cores.
    const auto ranks = static_cast<double>(facts.all("loader.summary").size());
    const double all = *workers * (loader->where.node.empty() ? ranks : 1);
    if (all > *cores * params.number("max_threshold") / 100) {
      many(*loader, *core_use, all, *cores, out);
      return {};
    }
    const Fact* steps = fact_for(facts, "steps.summary", loader->where);
    const Fact* parts = fact_for(facts, "breakdown.parts", loader->where);
    const auto wait = number_in(parts, "data_wait");
    if (steps == nullptr || !wait || *wait < params.number("wait_pct")) continue;
    if (all >= *cores * params.number("min_threshold") / 100 || std::round(0.7 * *cores) <= all) continue;
    if (do_keep_up(*loader, *steps, *workers, *wait)) continue;
    few(*loader, *steps, all, *cores, *wait, out);
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_dataloader{
    .id = "Dataloader",
    .title = "Loader workers do not fit the cores",
    .why =
        "Compares the number of loader workers with the cores that the job may use. Few workers are a fault only when "
        "training waits for data; InputBound, which knows what a batch costs, comes first.",
    .advice = "A number of workers by rule of thumb.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
