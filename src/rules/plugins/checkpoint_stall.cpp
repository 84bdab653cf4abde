// Saving stops training, and comes so often or takes so long that it counts.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"pauses.part"}};
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
  if (const auto bytes = pauses.number("bytes")) {
    why += format(": {}", format_bytes(*bytes));
    if (const auto rate = pauses.number("bytes_per_s")) why += format(" at {}/s", format_bytes(*rate));
    finding.evidence["bytes"] = *bytes;
  }
  finding.why.push_back(std::move(why));
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
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
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
        "comes, how much is written and how fast.",
    .advice = "Saving more rarely, with what a crash then costs, or asynchronously.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
