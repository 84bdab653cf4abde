// The first pass over the data comes from disk, the later ones from memory: training waits at first only.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"steps.summary"}};
constexpr std::array kNeedsOneOf{std::string_view{"changes.point"}, std::string_view{"page_cache.summary"}};
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

// What was read by epochs, where that is known: it decides, since what a disk reads may be anybody's.
std::string_view cache_state(const Fact* cache) {
  const auto state = cache == nullptr ? std::nullopt : cache->text("state");
  constexpr std::array kStates{std::string_view{"warm"}, std::string_view{"fits"}, std::string_view{"partly"},
                               std::string_view{"too large"}};
  const auto* const known = state ? std::ranges::find(kStates, std::string_view(*state)) : kStates.end();
  return known == kStates.end() ? std::string_view{} : *known;
}

Finding finding_of(const Where& where, double before_ms, double after_ms) {
  Finding finding;
  finding.where = where;
  finding.cause = "Page cache: the first pass over the data came from disk, the later ones from memory";
  finding.severity = Severity::kInfo;
  finding.certainty = Certainty::kLikely;
  finding.claims = "data_wait";
  finding.distance = -3;
  finding.evidence["before_ms"] = before_ms;
  finding.evidence["after_ms"] = after_ms;
  finding.advice.push_back({.change =
                                "nothing for a long run; for short ones read the data once before (vmtouch, cat), "
                                "or keep it on a faster disk",
                            .note = "with less free memory it would come from disk each time"});
  finding.look_alikes_excluded.emplace_back("too few workers (it is fast since)");
  return finding;
}

void set_lost(double lost_s, const Fact* steps, Finding& finding) {
  finding.lost_s = lost_s;
  if (const auto total = number_in(steps, "total_s"); total && *total > 0)
    finding.lost_pct = std::min(100 * lost_s / *total, 100.0);
  finding.loss = format("{} s at the begin", figure(lost_s));
}

void add_epochs(const Fact& cache, Finding& finding) {
  finding.certainty = Certainty::kCertain;
  finding.why.push_back(format("{} from storage in the first epoch, {} in later ones",
                               format_bytes(cache.number("first_read_bytes").value_or(0)),
                               format_bytes(cache.number("later_read_bytes").value_or(0))));
}

// Steps that got faster for good while disks are hardly read any more.
bool judge_change(const FactTable& facts, const Fact& change, const Params& params, FindingSink& out) {
  const double faster = -change.number("change_pct").value_or(0);
  const double before = change.number("along_before").value_or(0);
  const double after = change.number("along_after").value_or(0);
  if (faster < params.number("change_pct") || change.text("along") != "disk.total.read.bytes") return false;
  if (before < kReadMinPerS || after > params.number("left_pct") / 100 * before) return false;
  const auto part = change.text("part");
  if (part && *part != "data_wait" && *part != "other") return false;
  const Fact* cache = fact_for(facts, "page_cache.summary", change.where);
  const std::string_view state = cache_state(cache);
  if (!state.empty() && state != "fits") return false;
  const double before_ms = change.number("before_ms").value_or(0);
  const double after_ms = change.number("after_ms").value_or(0);
  const double at_step = change.number("at_step").value_or(0);
  Finding finding = finding_of(change.where, before_ms, after_ms);
  finding.where.process = change.text("process").value_or("");
  set_lost(at_step * (before_ms - after_ms) / 1e3, fact_for(facts, "steps.summary", change.where), finding);
  finding.why.push_back(format("step {} -> {} ms from step {} on", figure(before_ms), figure(after_ms),
                               shown_count(static_cast<std::uint64_t>(std::max(at_step, 0.0)))));
  finding.why.push_back(
      format("disk reads {} -> {} MB/s: it fits the page cache", figure(before / 1e6), figure(after / 1e6)));
  if (state == "fits") add_epochs(*cache, finding);
  out.add(std::move(finding));
  return true;
}

// Epochs too few or too short for a lasting change to show tell it by themselves.
void judge_epochs(const FactTable& facts, const Fact& cache, const Params& params, FindingSink& out) {
  const auto first_ms = cache.number("first_step_ms");
  const auto later_ms = cache.number("later_step_ms");
  const auto epoch_steps = number_in(facts.find("phases.summary"), "epoch_steps");
  if (cache_state(&cache) != "fits" || !first_ms || !later_ms || !epoch_steps) return;
  if (100 * (*first_ms - *later_ms) < params.number("change_pct") * *first_ms) return;
  Finding finding = finding_of(cache.where, *first_ms, *later_ms);
  set_lost(*epoch_steps * (*first_ms - *later_ms) / 1e3, fact_for(facts, "steps.summary", cache.where), finding);
  finding.why.push_back(
      format("step {} ms in the first epoch, {} ms in later ones", figure(*first_ms), figure(*later_ms)));
  add_epochs(cache, finding);
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* change : facts.all("changes.point")) {
    if (judge_change(facts, *change, params, out)) return {};
  }
  for (const Fact* cache : facts.all("page_cache.summary")) judge_epochs(facts, *cache, params, out);
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_cold_cache{
    .id = "ColdCache",
    .title = "The first pass over the data comes from disk",
    .why =
        "Looks for the moment from which steps are faster for good while disks are hardly read any more: the data fits "
        "the page cache. Likely: by what is read, not by what is cached; certain where what each epoch read from "
        "storage "
        "is known, which also tells what does not fit.",
    .advice = "Reading it before, where that pays.",
    .needs = kNeeds,
    .needs_one_of = kNeedsOneOf,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
