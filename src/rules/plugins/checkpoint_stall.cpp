// Saving stops training, and comes so often or takes so long that it counts.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/text.h"
#include "rules/pause_kind.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

// What the hook measured; else pauses in time during which it is written: either will do.
constexpr std::array kNeeds{std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("3", "share of the time from the first step to the last from which on the rule speaks"),
    ParamDesc{.name = "count_min",
              .default_text = "2",
              .min = 1,
              .max = 1e6,
              .unit = "{step}",
              .help = "checkpoints that must have been seen: one may be the only one"},
};
constexpr std::array kFactors{2, 4, 10, 20, 50, 100};
constexpr double kShareWanted = 6;  // what the advice brings it under, in percent; less costs more at a crash

// Share of time when the pauses come `factor` times more rarely: training takes as long as before.
double share_at(double share_pct, int factor) {
  const double rest = share_pct / factor;
  return 100 * rest / (100 - share_pct + rest);
}

std::string steps_words(double steps) { return shown_count(static_cast<std::uint64_t>(std::lround(steps))); }

std::string seconds_words(double seconds) {
  return seconds < 120 ? format("{} s", figure(seconds)) : format("{} min", figure(seconds / 60));
}

// Every so many steps, with what a crash then costs.
void advise_rarer(double share, std::optional<double> every_steps, std::optional<double> every_s, Finding& finding) {
  if (every_steps && every_s) {
    const auto* const factor =
        std::ranges::find_if(kFactors, [&](int f) { return share_at(share, f) <= kShareWanted; });
    const int chosen = factor == kFactors.end() ? kFactors.back() : *factor;
    finding.advice.push_back(
        {.change = format("save every {} steps", steps_words(*every_steps * chosen)),
         .basis = Basis::kArithmetic,
         .note =
             format("a crash then costs up to {}, not {}", seconds_words(*every_s * chosen), seconds_words(*every_s)),
         .gain = format("{} % -> {} % of the run, {} % shorter", figure(share), figure(share_at(share, chosen)),
                        figure(100 - 100 * (100 - share) / (100 - share_at(share, chosen))))});
  }
  finding.advice.push_back({.change = "save asynchronously, or to a local disk first",
                            .basis = Basis::kRuleOfThumb,
                            .note = "what is left of the stall then was not measured"});
  finding.limits.emplace_back("how often the job is interrupted, which saving pays for");
}

void judge(const Fact& pauses, FindingSink& out) {
  const double share = pauses.number("share_pct").value_or(0);
  const double mean_s = pauses.number("mean_s").value_or(0);
  const auto every_steps = pauses.number("every_steps");
  const auto every_s = pauses.number("every_s");
  const double count = pauses.number("count").value_or(0);
  Finding finding = share_finding(pauses.where, {.cause = "Checkpoints stall training",
                                                 .loss = format("{} % of the run", figure(share)),
                                                 .claims = "checkpoint",
                                                 .share_pct = share,
                                                 .lost_of = LostOf::kRun,
                                                 .lost_s = pauses.number("total_s"),
                                                 .count = count});
  finding.where.process = pauses.text("process").value_or("");
  finding.evidence["count"] = count;
  finding.evidence["mean_s"] = mean_s;
  std::string why = every_steps && every_s ? format("every {} steps ({}) saving takes {}", steps_words(*every_steps),
                                                    seconds_words(*every_s), seconds_words(mean_s))
                                           : format("saving took {}", seconds_words(mean_s));
  if (const auto beside = pauses.number("beside_s"); beside && count > 0) {
    why += format(", {} of it right around torch.save (flushing, copying, uploading)", seconds_words(*beside / count));
    finding.evidence["beside_s"] = *beside;
  }
  if (const auto bytes = pauses.number("bytes")) {
    why += format(": {}", format_bytes(*bytes));
    if (const auto rate = pauses.number("bytes_per_s")) why += format(" at {}/s", format_bytes(*rate));
    finding.evidence["bytes"] = *bytes;
  }
  finding.why.push_back(std::move(why));
  advise_rarer(share, every_steps, every_s, finding);
  out.add(std::move(finding));
}

// Nobody measured what is saved: pauses during which it is written, or of which the program says that it saves.
void judge_by_time(const Fact& pauses, bool is_told, FindingSink& out) {
  const double share = pauses.number("share_pct").value_or(0);
  const double mean_s = pauses.number("mean_s").value_or(0);
  const double count = pauses.number("count").value_or(0);
  const auto every_steps = pauses.number("every_steps");
  const auto every_s = pauses.number("every_s");
  const auto rate = pauses.number("write_bytes_per_s");
  Finding finding = share_finding(pauses.where, {.cause = "Checkpoints stall training",
                                                 .loss = format("{} % of the run", figure(share)),
                                                 .claims = "checkpoint",
                                                 .share_pct = share,
                                                 .lost_of = LostOf::kRun,
                                                 .lost_s = pauses.number("total_s"),
                                                 .count = count});
  if (!is_told) finding.certainty = Certainty::kLikely;
  finding.where.process = pauses.text("process").value_or("");
  finding.evidence["count"] = count;
  finding.evidence["mean_s"] = mean_s;
  std::string why = every_steps && every_s
                        ? format("every {} steps ({}) a pause of {}", steps_words(*every_steps),
                                 seconds_words(*every_s), seconds_words(mean_s))
                        : format("{} of {}", counted(count, "pause", "pauses"), seconds_words(mean_s));
  if (rate && *rate >= 1e6) {
    why += format(" while {}/s are written, {} each", format_bytes(*rate), format_bytes(*rate * mean_s));
    finding.evidence["bytes_per_s"] = *rate;
  }
  finding.why.push_back(std::move(why));
  if (is_told) finding.why.emplace_back("the log says that it saves then");
  if (const auto gpu = pauses.number("gpu_busy_pct")) finding.why.push_back(format("GPU {} % meanwhile", figure(*gpu)));
  advise_rarer(share, every_steps, every_s, finding);
  if (pauses.number("data_wait_pct")) finding.look_alikes_excluded.emplace_back("waiting for data");
  if (!is_told) finding.limits.emplace_back("that it is a checkpoint: by what is written, nobody said so");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* pauses : facts.all("interruptions.summary")) {
    const PauseGuess guess = pause_kind(facts, *pauses);
    if (guess.kind != PauseKind::kCheckpoint) continue;
    if (pauses->number("share_pct").value_or(0) < params.number("share_pct")) continue;
    if (pauses->number("count").value_or(0) < params.number("count_min")) continue;
    judge_by_time(*pauses, guess.is_told, out);
    break;  // the other ranks pause as well
  }
  for (const Fact* pauses : facts.all("pauses.part")) {
    if (pauses->text("what") != "checkpoint") continue;
    if (pauses->number("share_pct").value_or(0) < params.number("share_pct")) continue;
    if (pauses->number("count").value_or(0) < params.number("count_min")) continue;
    judge(*pauses, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_checkpoint_stall{
    .id = "CheckpointStall",
    .title = "Saving checkpoints stops training",
    .why =
        "Adds up the time inside torch.save and torch.load between the first step and the last, and says how often it "
        "comes, how much is written and how fast. Where nobody measured it: pauses of training during which it is "
        "written, or of which the log says that it saves.",
    .advice = "Saving more rarely, with what a crash then costs, or asynchronously.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
