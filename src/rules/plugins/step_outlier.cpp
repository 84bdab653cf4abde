// Some steps take far longer than the others: at which period, which part of them grew, and what moved along.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/gpu_limits_words.h"
#include "rules/pause_kind.h"
#include "rules/series_words.h"
#include "rules/step_findings.h"
#include "rules/step_period.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"slow_steps.summary"}};
constexpr std::array kParams{
    ParamDesc{
        .name = "stddev",
        .default_text = "3",
        .min = 1,
        .max = 10,
        .unit = "1",
        .help = "standard deviations above the mean from which on a step is an outlier; whole ones are told apart"},
    ParamDesc{.name = "n_outliers",
              .default_text = "10",
              .min = 1,
              .max = 1e6,
              .unit = "{step}",
              .help = "so many outliers are none to speak of; fewer do where they come at a period"},
    ParamDesc{.name = "mode",
              .type = ParamType::kText,
              .default_text = "train",
              .help = "taken for SageMaker's sake and not used: typical training steps are looked at"},
    ParamDesc{.name = "steps_min",
              .default_text = "100",
              .min = 30,
              .max = 1e6,
              .unit = "{step}",
              .help = "typical steps that must have been seen"},
    share_param("3", "share of step time that slow steps must cost beyond the median"),
};

constexpr double kDearPct = 10;  // of step time, that slow steps cost: then their number does not matter

// The claim of a part of the step whose own rule comes first.
std::string claim_of(const std::string& part) {
  for (const std::string_view known : {"data_wait", "checkpoint", "evaluation", "gc", "compile", "other"}) {
    if (part == known) return part;
  }
  return "outlier";
}

// One rank at a time stalls for as long as the slow steps take longer: RotatingStall says whose step that is.
bool are_stalls_in_turn(const FactTable& facts, double extra_ms) {
  constexpr double kAlike = 0.5;
  const Fact* ranks = facts.find("ranks.summary");
  if (ranks == nullptr || ranks->number("stalled_ranks").value_or(0) < 2) return false;
  const double stall_ms = ranks->number("stall_ms").value_or(0);
  return stall_ms >= kAlike * extra_ms && extra_ms >= kAlike * stall_ms;
}

// Slow steps that are no slower than the GPU's fallen clock makes them: what holds the clock down explains them.
bool are_of_lower_clock(const FactTable& facts, double slow_ms, double median_ms) {
  constexpr double kAlike = 1.15;
  const auto ratio = lowest_clock_ratio(facts);
  return ratio && *ratio > 0 && *ratio < kClockFell && slow_ms <= kAlike * median_ms / *ratio;
}

// What the slow steps have lost their time to.
std::string claim_of(const FactTable& facts, const Fact& slow) {
  const std::string part = slow.text("part").value_or("");
  const std::string own = claim_of(part);
  const Fact* steps = fact_for(facts, "steps.summary", slow.where);
  const bool is_taken = steps != nullptr && taken_by_others_pct(facts, *steps).value_or(0) >= kTakenByOthersPct;
  if (is_taken && (own == "other" || own == "outlier")) return std::string(kClaimsNeighbour);
  if (!part.empty() && part != "other") return own;
  const double median_ms = slow.number("median_ms").value_or(0);
  const double slow_ms = slow.number("slow_ms").value_or(0);
  if (are_stalls_in_turn(facts, slow_ms - median_ms)) return "gc";
  if (!slow.number("period_steps") && are_of_lower_clock(facts, slow_ms, median_ms)) return "gpu_clocks";
  return own;
}

std::string part_words(const std::string& part) {
  if (part == "data_wait") return "waiting for data";
  if (part == "gc") return "garbage collection";
  if (part == "compile") return "compilation";
  if (part == "other") return "code outside loader and model";
  return part;
}

// The slow steps are those whose input has a new shape: Recompilation speaks of them.
bool are_new_shapes(const FactTable& facts, const Fact& slow) {
  constexpr double kMost = 60;
  return std::ranges::any_of(facts.all("shapes.summary"), [&](const Fact* shapes) {
    return shapes->number("slow_first_pct").value_or(0) >= kMost &&
           2 * shapes->number("lost_s").value_or(0) >= slow.number("lost_s").value_or(0);
  });
}

void judge(const FactTable& facts, const Fact& slow, double outliers, FindingSink& out) {
  const double median = slow.number("median_ms").value_or(0);
  const double mean = slow.number("slow_ms").value_or(0);
  const double lost_pct = slow.number("lost_pct").value_or(0);
  const auto period = slow.number("period_steps");
  const std::string part = slow.text("part").value_or("");
  Finding finding = share_finding(slow.where, {.cause = period ? format("Every {} step is slow", ordinal(*period))
                                                               : "Some steps are far slower than the others",
                                               .loss = format("{} % of the time", figure(lost_pct)),
                                               .claims = claim_of(facts, slow),
                                               .share_pct = lost_pct,
                                               .lost_s = slow.number("lost_s"),
                                               .count = outliers});
  finding.distance = 2;
  finding.certainty = period ? Certainty::kCertain : Certainty::kLikely;
  finding.evidence["outliers"] = outliers;
  finding.evidence["median_ms"] = median;
  finding.evidence["slow_ms"] = mean;
  finding.why.push_back(format("{} steps of {} ms, the median is {} ms",
                               shown_count(static_cast<std::uint64_t>(slow.number("slow").value_or(0))), figure(mean),
                               figure(median)));
  if (!part.empty()) {
    finding.why.push_back(
        format("{} makes {} % of the difference", part_words(part), figure(slow.number("part_share_pct").value_or(0))));
  }
  if (const std::string words = series_words(slow, "along", "along_typical", "along_slow"); !words.empty())
    finding.why.push_back("along with it " + words);
  if ((part == "data_wait" || part.empty() || part == "other") && is_worker_period(facts, slow)) {
    finding.why.push_back(format("a batch of each of {} loader workers, then all are awaited",
                                 std::lround(*loader_workers(facts, slow.where))));
    finding.look_alikes_excluded.emplace_back("checkpoints");
  }
  finding.advice.push_back({.change = "look at what runs at these steps",
                            .note = part.empty() ? "which part of the step grew is not known" : ""});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  static constexpr std::array<std::string_view, 10> kOver{"over_1sd", "over_2sd", "over_3sd", "over_4sd", "over_5sd",
                                                          "over_6sd", "over_7sd", "over_8sd", "over_9sd", "over_10sd"};
  const auto at = static_cast<std::size_t>(std::clamp(std::lround(params.number("stddev")), 1L, 10L)) - 1;
  for (const Fact* slow : facts.all("slow_steps.summary")) {
    if (slow->number("steps").value_or(0) < params.number("steps_min")) continue;
    if (slow->number("lost_pct").value_or(0) < params.number("share_pct")) continue;
    const double outliers = slow->number(kOver[at]).value_or(0);
    // Steps at a short period are a part of the typical variation: no deviation shows them.
    const bool is_periodic = slow->number("period_steps").has_value();
    // Few that cost much are no small matter either.
    const bool is_dear = slow->number("lost_pct").value_or(0) >= kDearPct;
    if (outliers <= params.number("n_outliers") && !is_periodic && !is_dear) continue;
    // Pauses that have a name have a rule of their own.
    const Fact* pauses = fact_for(facts, "interruptions.summary", slow->where);
    if (pauses != nullptr && pause_kind(facts, *pauses).kind != PauseKind::kUnknown &&
        2 * pauses->number("total_s").value_or(0) >= slow->number("lost_s").value_or(0)) {
      continue;
    }
    if (are_new_shapes(facts, *slow)) continue;
    judge(facts, *slow, is_periodic ? slow->number("slow").value_or(outliers) : outliers, out);
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_step_outlier{
    .id = "StepOutlier",
    .title = "Some steps take far longer than the others",
    .why =
        "Counts typical steps that lie standard deviations above the mean, looks for a period in them, for the part of "
        "the step that grew, and for a series of the machine that moves along. A finding about that part comes first.",
    .advice = "Where to look.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
