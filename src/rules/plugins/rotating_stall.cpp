// One rank at a time stalls, each at steps of its own, and all wait for it: as Python's garbage collector makes it.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"ranks.summary"}};
constexpr std::array kParams{
    share_param("3", "share of step time that the stalls cost, from which on the rule speaks"),
    ParamDesc{.name = "top_share_pct",
              .default_text = "50",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "of the stalls, that the rank with the most may have: one with more is a slow rank"},
    ParamDesc{.name = "stalls_min",
              .default_text = "4",
              .min = 1,
              .max = 1e6,
              .unit = "1",
              .help = "stalls that must have been seen"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const Fact& all = *facts.find("ranks.summary");
  const double lost = all.number("stall_lost_pct").value_or(0);
  const double stalls = all.number("stalls").value_or(0);
  const double ranks = all.number("ranks").value_or(0);
  const double stalled = all.number("stalled_ranks").value_or(0);
  if (lost < params.number("share_pct") || stalls < params.number("stalls_min")) return {};
  // More than half of the ranks, none of them most of the time.
  if (stalled < std::max(2.0, 0.5 * ranks)) return {};
  if (all.number("stall_top_share_pct").value_or(100) > params.number("top_share_pct")) return {};
  const double stall_s = all.number("stall_ms").value_or(0) / 1e3;
  const Fact* parts = facts.find("breakdown.parts");
  const auto collecting = number_in(parts, "gc");
  Finding finding;
  finding.cause = "One rank at a time stalls, and all wait for it";
  finding.loss = format("{} % of the time", figure(lost));
  finding.severity = lost >= 15 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "gc";
  finding.distance = 1;
  if (const Fact* steps = facts.find("steps.summary")) set_step_loss(*steps, lost, finding);
  finding.evidence["stalls"] = stalls;
  finding.evidence["stalled_ranks"] = stalled;
  finding.evidence["stall_s"] = stall_s;
  std::string why = format("{} stalls of {} s, of {} of {} ranks in turn, never the same step", count_figure(stalls),
                           figure(stall_s), count_figure(stalled), count_figure(ranks));
  if (const auto every = all.number("stall_every_steps"))
    why += format("; each about every {} steps", std::lround(*every));
  finding.why.push_back(std::move(why));
  finding.why.push_back(collecting && *collecting >= 1
                            ? format("garbage collection takes {} % of the steps", figure(*collecting))
                            : std::string("as Python's garbage collector does, which each "
                                          "process runs at its own moment"));
  finding.advice.push_back(
      {.change = "gc.disable(), and gc.collect() at the same step on all ranks, every few hundred steps",
       .basis = Basis::kRuleOfThumb,
       .note = "then all stall at once: the time of one stall instead of that of all ranks",
       .gain = format("{} % -> about {} % of the time", figure(lost), figure(lost / std::max(stalled, 1.0)))});
  finding.look_alikes_excluded.emplace_back("a slow rank (it is another one each time)");
  finding.look_alikes_excluded.emplace_back("checkpoints (they stop all ranks at once)");
  if (!collecting) finding.limits.emplace_back("that it is the collector: it was not measured");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_rotating_stall{
    .id = "RotatingStall",
    .title = "One rank at a time stalls, and all wait for it",
    .why =
        "Compares the ranks step by step: stalls that hit one rank each, and another one each time. Python's garbage "
        "collector does so; likely only where it was not measured.",
    .advice = "Collecting at the same step on all ranks.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
