// Loader workers are started anew at each epoch, and training waits for their first batch.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/pause_kind.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

// What the hook saw of the loader; else pauses in time where epochs begin: either will do.
constexpr std::array kNeeds{std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("3", "share of all steps' time from which on the rule speaks"),
    ParamDesc{.name = "starts_min",
              .default_text = "2",
              .min = 1,
              .max = 1e6,
              .unit = "{start}",
              .help = "starts after the first that must have been seen"},
};

constexpr double kRestOfGap = 0.05;  // of a gap, that stays besides: asking the workers, their first reads

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
  // The queue still runs empty at an epoch's end: its first batch is waited for all the same.
  double low = 0;
  double high = gap.share_pct / 2;
  if (const auto batch_ms = loader.number("batch_wall_ms"); batch_ms && gap.each_s > 0) {
    const double of_gap = *batch_ms / 1e3 / gap.each_s;
    low = gap.share_pct * std::min(0.5 * of_gap, 0.5);
    high = gap.share_pct * std::min(2 * of_gap + kRestOfGap, 1.0);
  }
  finding.advice.push_back(
      {.change = "DataLoader(persistent_workers=True)",
       .basis = Basis::kModel,
       .note = "keeps the workers' memory between epochs",
       .gain = format("{} % -> {}-{} % of the run", figure(gap.share_pct), figure(low), figure(high))});
  finding.look_alikes_excluded.emplace_back("evaluation and checkpoints (counted apart)");
  out.add(std::move(finding));
}

constexpr double kMostOfWait = 0.7;  // of all waiting for data: then the pauses are what the loader's finding sees

// Nobody saw the loader: pauses where epochs begin, by time alone.
void judge_by_time(const FactTable& facts, const Fact& pauses, bool is_told, FindingSink& out) {
  const double share = pauses.number("share_pct").value_or(0);
  const double count = pauses.number("count").value_or(0);
  const double mean_s = pauses.number("mean_s").value_or(0);
  Finding finding = share_finding(pauses.where, {.cause = "Training pauses at the begin of each epoch",
                                                 .loss = format("{} % of the run between epochs", figure(share)),
                                                 .claims = "epoch_gap",
                                                 .share_pct = share,
                                                 .lost_of = LostOf::kRun,
                                                 .lost_s = pauses.number("total_s"),
                                                 .count = count});
  finding.certainty = Certainty::kLikely;
  const Fact* steps = fact_for(facts, "steps.summary", pauses.where);
  const Fact* parts = fact_for(facts, "breakdown.parts", pauses.where);
  const auto waits = number_in(parts, "data_wait");
  const auto steady_s = number_in(steps, "steady_s");
  const double in_pauses_s = pauses.number("data_wait_pct").value_or(0) / 100 * pauses.number("total_s").value_or(0);
  if (waits && steady_s && in_pauses_s >= kMostOfWait * *waits / 100 * *steady_s) {
    finding.claims = "data_wait";
    finding.distance = -1;
  }
  finding.evidence["starts"] = count;
  finding.evidence["each_s"] = mean_s;
  std::string why = format("{} of {} s", counted(count, "pause", "pauses"), figure(mean_s));
  if (const auto every = pauses.number("every_steps")) why += format(", every {} steps", std::lround(*every));
  if (const auto every_s = pauses.number("every_s")) why += format(" ({} s)", figure(*every_s));
  finding.why.push_back(std::move(why));
  if (is_told) finding.why.emplace_back("an epoch begins there");
  if (const auto wait = pauses.number("data_wait_pct"); wait && *wait >= 60)
    finding.why.push_back(format("{} % of it waiting for data", figure(*wait)));
  if (const auto gpu = pauses.number("gpu_busy_pct")) finding.why.push_back(format("GPU {} % meanwhile", figure(*gpu)));
  finding.advice.push_back({.change = "DataLoader(persistent_workers=True)",
                            .basis = Basis::kModel,
                            .note = "if workers are started anew there; keeps their memory between epochs",
                            .gain = format("{} % -> 0-{} % of the run", figure(share), figure(share / 2))});
  const auto written = pauses.number("write_bytes_per_s");
  if (written) finding.look_alikes_excluded.emplace_back("checkpoints (nothing is written then)");
  if (pauses.number("gpu_busy_pct")) finding.look_alikes_excluded.emplace_back("evaluation (the GPU is idle)");
  finding.limits.emplace_back("what happens there: the loader was not seen");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* pauses : facts.all("interruptions.summary")) {
    const PauseGuess guess = pause_kind(facts, *pauses);
    const bool is_loader_seen = number_in(fact_for(facts, "loader.summary", pauses->where), "known") == 1;
    if (guess.kind != PauseKind::kEpochGap || is_loader_seen) continue;
    if (pauses->number("share_pct").value_or(0) < params.number("share_pct")) continue;
    if (pauses->number("count").value_or(0) < params.number("starts_min")) continue;
    judge_by_time(facts, *pauses, guess.is_told, out);
    break;  // the other ranks pause as well
  }
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
        "not start again. Where the loader was not seen: pauses in or between steps where epochs begin.",
    .advice = "Persistent workers, with the share of the run that they save.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
