// The first pass over the data is slow to load, the later ones are not: it comes from a disk, or is decoded, and then
// stays in memory. Training waits at first only, which the typical steps do not show.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"steps.summary"}};
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
    share_param("5", "share of the time of all steps that the begin must have cost, where no disk was read"),
};
constexpr double kReadMinPerS = 5e6;
constexpr double kMostPct = 50;        // of a change, that waiting for data must make
constexpr double kSlowStepsMin = 8;    // a few are the start of workers, and batches that they prefetch
constexpr double kLongerWait = 2;      // than later
constexpr double kLikeAnEpoch = 0.25;  // steps more or fewer than one has

// Steps that were slow at first, up to some step.
struct SlowBegin {
  const Fact* steps = nullptr;  // steps.summary
  double count = 0;
  double before_ms = 0;
  double after_ms = 0;
  bool is_of_waits = false;  // the times are waits for data, not whole steps
  double lost_s() const { return count * (before_ms - after_ms) / 1e3; }
  std::optional<double> lost_pct() const {
    const auto total_s = number_in(steps, "total_s");
    if (!total_s || *total_s <= 0) return std::nullopt;
    return std::min(100 * lost_s() / *total_s, 100.0);
  }
};

SlowBegin begin_of(const FactTable& facts, const Fact& change) {
  return {.steps = fact_for(facts, "steps.summary", change.where),
          .count = change.number("at_step").value_or(0),
          .before_ms = change.number("before_ms").value_or(0),
          .after_ms = change.number("after_ms").value_or(0)};
}

// "the first epoch", or "the first 97 steps".
std::string stretch_words(const FactTable& facts, const SlowBegin& begin) {
  const Fact* phases = begin.steps == nullptr ? nullptr : fact_for(facts, "phases.summary", begin.steps->where);
  const auto epoch_steps = number_in(phases, "epoch_steps");
  const std::string steps = shown_count(static_cast<std::uint64_t>(std::max(begin.count, 0.0)));
  if (epoch_steps && std::abs(begin.count - *epoch_steps) <= kLikeAnEpoch * *epoch_steps &&
      phases->number("epochs").value_or(0) >= 2) {
    return "the first epoch";
  }
  return format("the first {} steps", steps);
}

Finding finding_of(const Fact& of, const SlowBegin& begin) {
  Finding finding;
  finding.where = of.where;
  finding.where.process = of.text("process").value_or("");
  finding.certainty = Certainty::kLikely;
  // The typical steps do not hold what was left out as a warm-up: what they wait for is another matter.
  finding.claims = begin.is_of_waits ? "first_pass" : "data_wait";
  finding.distance = -3;
  finding.lost_s = begin.lost_s();
  finding.lost_pct = begin.lost_pct();
  finding.loss = format("{} s at the begin", figure(*finding.lost_s));
  finding.evidence["before_ms"] = begin.before_ms;
  finding.evidence["after_ms"] = begin.after_ms;
  finding.look_alikes_excluded.emplace_back("too few workers (it is fast since)");
  return finding;
}

constexpr std::string_view kPageCacheCause =
    "Page cache: the first pass over the data came from disk, the later ones from memory";

Advice page_cache_advice() {
  return {.change =
              "nothing for a long run; for short ones read the data once before (vmtouch, cat), or keep it on a "
              "faster disk",
          .note = "with less free memory it would come from disk each time"};
}

// What was read by epochs, where that is known: it decides, since what a disk reads may be anybody's.
std::string_view cache_state(const Fact* cache) {
  const auto state = cache == nullptr ? std::nullopt : cache->text("state");
  constexpr std::array kStates{std::string_view{"warm"}, std::string_view{"fits"}, std::string_view{"partly"},
                               std::string_view{"too large"}};
  const auto* const known = state ? std::ranges::find(kStates, std::string_view(*state)) : kStates.end();
  return known == kStates.end() ? std::string_view{} : *known;
}

void add_epochs(const Fact& cache, Finding& finding) {
  finding.certainty = Certainty::kCertain;
  finding.why.push_back(format("{} from storage in the first epoch, {} in later ones",
                               format_bytes(cache.number("first_read_bytes").value_or(0)),
                               format_bytes(cache.number("later_read_bytes").value_or(0))));
}

void judge_read(const Fact& change, const SlowBegin& begin, const Fact* cache, FindingSink& out) {
  Finding finding = finding_of(change, begin);
  finding.cause = std::string(kPageCacheCause);
  finding.severity = Severity::kInfo;
  finding.why.push_back(format("step {} -> {} ms from step {} on", figure(begin.before_ms), figure(begin.after_ms),
                               shown_count(static_cast<std::uint64_t>(std::max(begin.count, 0.0)))));
  finding.why.push_back(format("disk reads {} -> {} MB/s: it fits the page cache",
                               figure(change.number("along_before").value_or(0) / 1e6),
                               figure(change.number("along_after").value_or(0) / 1e6)));
  finding.advice.push_back(page_cache_advice());
  if (cache_state(cache) == "fits") add_epochs(*cache, finding);
  out.add(std::move(finding));
}

void judge_cached(const FactTable& facts, const Fact& of, const SlowBegin& begin, FindingSink& out) {
  Finding finding = finding_of(of, begin);
  const std::string stretch = stretch_words(facts, begin);
  finding.cause = format("Loading is slow in {}, and no longer after it", stretch);
  finding.severity = Severity::kWarning;
  finding.lost_of = LostOf::kRun;
  if (finding.lost_pct) finding.loss = format("{} % of the run, at its begin", figure(*finding.lost_pct));
  finding.why.push_back(begin.is_of_waits ? format("in {} a step waits {} ms for data, later {} ms", stretch,
                                                   figure(begin.before_ms), figure(begin.after_ms))
                                          : format("step {} -> {} ms after {}; waiting for data makes most of it",
                                                   figure(begin.before_ms), figure(begin.after_ms), stretch));
  finding.advice.push_back({.change =
                                "nothing for a long run; for short ones load with workers (num_workers), or keep what "
                                "the first pass makes on a disk for the next run",
                            .note = "a cache fills up: of the system (files read once) or of the program"});
  finding.limits.emplace_back("which cache it is");
  out.add(std::move(finding));
}

// The typical steps themselves became faster.
bool judge_change(const FactTable& facts, const Params& params, const Fact& change, FindingSink& out) {
  if (-change.number("change_pct").value_or(0) < params.number("change_pct")) return false;
  const SlowBegin begin = begin_of(facts, change);
  const auto part = change.text("part");
  const double before = change.number("along_before").value_or(0);
  const double after = change.number("along_after").value_or(0);
  const bool was_read = change.text("along") == "disk.total.read.bytes" && before >= kReadMinPerS;
  if (was_read && after <= params.number("left_pct") / 100 * before &&
      (!part || *part == "data_wait" || *part == "other")) {
    const Fact* cache = fact_for(facts, "page_cache.summary", change.where);
    const std::string_view state = cache_state(cache);
    if (!state.empty() && state != "fits") return false;
    judge_read(change, begin, cache, out);
    return true;
  }
  if (was_read || part != "data_wait" || change.number("part_share_pct").value_or(0) < kMostPct) return false;
  if (begin.lost_pct().value_or(0) < params.number("share_pct")) return false;
  judge_cached(facts, change, begin, out);
  return true;
}

// Epochs too few or too short for a lasting change to show tell it by themselves.
bool judge_epochs(const FactTable& facts, const Params& params, const Fact& cache, FindingSink& out) {
  const auto first_ms = cache.number("first_step_ms");
  const auto later_ms = cache.number("later_step_ms");
  const auto epoch_steps = number_in(facts.find("phases.summary"), "epoch_steps");
  if (cache_state(&cache) != "fits" || !first_ms || !later_ms || !epoch_steps) return false;
  if (100 * (*first_ms - *later_ms) < params.number("change_pct") * *first_ms) return false;
  const SlowBegin begin{.steps = fact_for(facts, "steps.summary", cache.where),
                        .count = *epoch_steps,
                        .before_ms = *first_ms,
                        .after_ms = *later_ms};
  Finding finding = finding_of(cache, begin);
  finding.cause = std::string(kPageCacheCause);
  finding.severity = Severity::kInfo;
  finding.why.push_back(
      format("step {} ms in the first epoch, {} ms in later ones", figure(*first_ms), figure(*later_ms)));
  add_epochs(cache, finding);
  finding.advice.push_back(page_cache_advice());
  out.add(std::move(finding));
  return true;
}

// The slow ones were left out as a warm-up.
bool judge_warmup(const FactTable& facts, const Params& params, const Fact& steps, FindingSink& out) {
  const auto before_ms = steps.number("warmup_data_wait_ms");
  const auto after_ms = steps.number("data_wait_ms");
  if (!before_ms || !after_ms || *before_ms < kLongerWait * *after_ms) return false;
  const SlowBegin begin{.steps = &steps,
                        .count = steps.number("warmup_count").value_or(0),
                        .before_ms = *before_ms,
                        .after_ms = *after_ms,
                        .is_of_waits = true};
  if (begin.count < kSlowStepsMin || begin.lost_pct().value_or(0) < params.number("share_pct")) return false;
  judge_cached(facts, steps, begin, out);
  return true;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* change : facts.all("changes.point")) {
    if (judge_change(facts, params, *change, out)) return {};
  }
  for (const Fact* cache : facts.all("page_cache.summary")) {
    if (judge_epochs(facts, params, *cache, out)) return {};
  }
  for (const Fact* steps : facts.all("steps.summary")) {
    if (judge_warmup(facts, params, *steps, out)) return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_cold_cache{
    .id = "ColdCache",
    .title = "The first pass over the data is slow to load",
    .why =
        "Looks for the moment from which steps are faster for good while disks are hardly read any more: the data fits "
        "the page cache. Where no disk is read, for first steps that wait longer for data than all later ones: a cache "
        "of the program's fills up. Likely: by what is read and waited for, not by what is cached; certain where "
        "it is known what each epoch read from storage, which also tells what does not fit.",
    .advice = "Reading it before, or keeping what the first pass makes, where that pays.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
