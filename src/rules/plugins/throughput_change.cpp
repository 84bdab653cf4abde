// Training became slower at one moment, and stayed so.
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/series_words.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"steps.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "change_pct",
              .default_text = "10",
              .min = 1,
              .max = 1000,
              .unit = "%",
              .help = "so much longer a sample must take from then on"},
    share_param("3", "share of the time of typical steps that it has cost so far"),
};

void judge(const Fact& change, const Fact* steps, double pct, double lost_s, double share, FindingSink& out) {
  const std::string part = change.text("part").value_or("");
  Finding finding = share_finding(change.where, {.cause = "Training became slower, and stayed so",
                                                 .loss = format("+{} % for each sample", figure(pct)),
                                                 .claims = part == "data_wait" ? "data_wait" : "change",
                                                 .share_pct = share,
                                                 .lost_s = lost_s});
  finding.distance = 3;
  finding.where.process = change.text("process").value_or("");
  finding.evidence["before_ms"] = change.number("before_ms").value_or(0);
  finding.evidence["after_ms"] = change.number("after_ms").value_or(0);
  finding.evidence["at_s"] = change.number("at_s").value_or(0);
  finding.why.push_back(
      format("step {} -> {} ms from step {} on, +/-{} %", figure(change.number("before_ms").value_or(0)),
             figure(change.number("after_ms").value_or(0)),
             shown_count(static_cast<std::uint64_t>(std::max(change.number("at_step").value_or(0), 0.0))),
             figure(change.number("half_width_pct").value_or(0))));
  if (!part.empty())
    finding.why.push_back(format("{} makes {} % of it", part == "data_wait" ? "waiting for data" : part,
                                 figure(change.number("part_share_pct").value_or(0))));
  if (const std::string words = series_words(change, "along", "along_before", "along_after"); !words.empty())
    finding.why.push_back("along with it " + words);
  finding.advice.push_back({.change = "look at what changed then",
                            .note = steps == nullptr ? "" : "what moved along is named, not what caused it"});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* change : facts.all("changes.point")) {
    const double pct = change->number("change_pct").value_or(0);
    const double lost_s = change->number("lost_s").value_or(0);
    if (pct < params.number("change_pct")) continue;
    const Fact* steps = fact_for(facts, "steps.summary", change->where);
    const double steady_s = steps == nullptr ? 0 : steps->number("steady_s").value_or(0);
    const double share = steady_s > 0 ? std::min(100 * lost_s / steady_s, 100.0) : 0;
    if (share < params.number("share_pct")) continue;
    judge(*change, steps, pct, lost_s, share, out);
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_throughput_change{
    .id = "ThroughputChange",
    .title = "Training became slower at one moment and stayed so",
    .why =
        "Looks for moments that part the typical steps into faster and slower ones, by time per sample. It names the "
        "part "
        "of the step that changed and the series of the machine that moved along most.",
    .advice = "Where to look.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
