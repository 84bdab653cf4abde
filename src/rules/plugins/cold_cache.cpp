// The first pass over the data comes from disk, the later ones from memory: training waits at first only.
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"changes.point"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "change_pct",
              .default_text = "15",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "so much less time a step must take once the data comes from memory"},
    ParamDesc{.name = "left_pct",
              .default_text = "20",
              .min = 0,
              .max = 100,
              .unit = "%",
              .help = "of what was read from disks before, that may still be read"},
};
constexpr double kReadMinPerS = 5e6;

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* change : facts.all("changes.point")) {
    const double faster = -change->number("change_pct").value_or(0);
    const double before = change->number("along_before").value_or(0);
    const double after = change->number("along_after").value_or(0);
    if (faster < params.number("change_pct") || change->text("along") != "disk.total.read.bytes") continue;
    if (before < kReadMinPerS || after > params.number("left_pct") / 100 * before) continue;
    const auto part = change->text("part");
    if (part && *part != "data_wait" && *part != "other") continue;
    const Fact* steps = fact_for(facts, "steps.summary", change->where);
    const double before_ms = change->number("before_ms").value_or(0);
    const double after_ms = change->number("after_ms").value_or(0);
    const double at_step = change->number("at_step").value_or(0);
    Finding finding;
    finding.where = change->where;
    finding.where.process = change->text("process").value_or("");
    finding.cause = "Page cache: the first pass over the data came from disk, the later ones from memory";
    finding.severity = Severity::kInfo;
    finding.certainty = Certainty::kLikely;
    finding.claims = "data_wait";
    finding.distance = -3;
    finding.lost_s = at_step * (before_ms - after_ms) / 1e3;
    if (const auto total = number_in(steps, "total_s"); total && *total > 0)
      finding.lost_pct = std::min(100 * *finding.lost_s / *total, 100.0);
    finding.loss = format("{} s at the begin", figure(*finding.lost_s));
    finding.evidence["before_ms"] = before_ms;
    finding.evidence["after_ms"] = after_ms;
    finding.why.push_back(format("step {} -> {} ms from step {} on", figure(before_ms), figure(after_ms),
                                 shown_count(static_cast<std::uint64_t>(std::max(at_step, 0.0)))));
    finding.why.push_back(
        format("disk reads {} -> {} MB/s: it fits the page cache", figure(before / 1e6), figure(after / 1e6)));
    finding.advice.push_back({.change =
                                  "nothing for a long run; for short ones read the data once before (vmtouch, cat), "
                                  "or keep it on a faster disk",
                              .note = "with less free memory it would come from disk each time"});
    finding.look_alikes_excluded.emplace_back("too few workers (it is fast since)");
    out.add(std::move(finding));
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_cold_cache{
    .id = "ColdCache",
    .title = "The first pass over the data comes from disk",
    .why =
        "Looks for the moment from which steps are faster for good while disks are hardly read any more: the data fits "
        "the page cache. Likely: by what is read, not by what is cached.",
    .advice = "Reading it before, where that pays.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
