// Loader workers are started anew at each epoch, and training waits for their first batch.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"steps.summary"}, std::string_view{"loader.summary"}};
constexpr std::array kParams{
    share_param("3", "share of all steps' time from which on the rule speaks"),
    ParamDesc{.name = "starts_min",
              .default_text = "2",
              .min = 1,
              .max = 1e6,
              .unit = "{start}",
              .help = "starts after the first that must have been seen"},
};

struct Gap {
  double starts = 0;
  double each_s = 0;  // beyond a typical step
  double share_pct = 0;
};

// The first start is part of starting up: it comes with persistent workers too.
Gap gap_of(const Fact& steps) {
  Gap gap;
  const double total_s = steps.number("total_s").value_or(0);
  const double slow_s = steps.number("loader_start_s").value_or(0);
  const double count = steps.number("loader_start_count").value_or(0);
  const double typical_s = steps.number("mean_ms").value_or(0) / 1e3;
  if (count < 1 || total_s <= 0) return gap;
  gap.each_s = std::max(slow_s / count - typical_s, 0.0);
  gap.starts = count;
  gap.share_pct = 100 * gap.each_s * count / total_s;
  return gap;
}

void judge(const Fact& steps, const Fact& loader, const Gap& gap, FindingSink& out) {
  Finding finding = share_finding(steps.where, {.cause = "Loader workers are started anew each epoch",
                                                .loss = format("{} % of the run between epochs", figure(gap.share_pct)),
                                                .claims = "epoch_gap",
                                                .share_pct = gap.share_pct,
                                                .lost_of = LostOf::kRun,
                                                .lost_s = gap.each_s * gap.starts,
                                                .count = gap.starts});
  finding.evidence["starts"] = gap.starts;
  finding.evidence["each_s"] = gap.each_s;
  const long workers = std::lround(loader.number("workers").value_or(0));
  std::string why = format("{} epochs began with {} s until {} gave the first batch", figure(gap.starts),
                           figure(gap.each_s), counted(workers, "new worker"));
  if (const auto method = loader.text("start_method")) why += format(" (start method {})", *method);
  finding.why.push_back(std::move(why));
  // The queue still runs empty at an epoch's end: a part of the gap stays.
  finding.advice.push_back(
      {.change = "DataLoader(persistent_workers=True)",
       .basis = Basis::kModel,
       .note = "keeps the workers' memory between epochs",
       .gain = format("{} % -> 0-{} % of the run", figure(gap.share_pct), figure(gap.share_pct / 2))});
  finding.look_alikes_excluded.emplace_back("evaluation and checkpoints (counted apart)");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* steps : facts.all("steps.summary")) {
    const Gap gap = gap_of(*steps);
    if (gap.starts < params.number("starts_min") || gap.share_pct < params.number("share_pct")) continue;
    const Fact* loader = fact_for(facts, "loader.summary", steps->where);
    if (loader == nullptr || loader->number("workers").value_or(0) < 1) continue;
    if (loader->number("persistent_workers") == 1) continue;  // something else makes these steps slow
    judge(*steps, *loader, gap, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_epoch_gap{
    .id = "EpochGap",
    .title = "Training waits at each epoch for new loader workers",
    .why =
        "Compares the steps that waited for loader workers to start with typical ones. With persistent workers they do "
        "not start again.",
    .advice = "Persistent workers, with the share of the run that they save.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
