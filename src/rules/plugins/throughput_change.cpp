// Training became slower at one moment, and stayed so.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/gpu_limits_words.h"
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
    ParamDesc{.name = "lasts_min",
              .type = ParamType::kDuration,
              .default_text = "10s",
              .min = 0,
              .max = 3.6e15,
              .unit = "ns",
              .help = "so long it must last, and training must have been faster before"},
};

constexpr double kCertainS = 60;  // a minute is no passing trouble
// Cores that others use hold a job up where all are busy then.
constexpr double kOthersHighPct = 20;
constexpr double kFullPct = 20;

// Other programs were there for so much of the time that they may have made the difference.
bool may_be_of_others(const FactTable& facts, const Where& where) {
  const Fact* around = fact_for(facts, "neighbours.summary", where);
  return number_in(around, "outside_high_pct").value_or(0) >= kOthersHighPct &&
         number_in(around, "full_pct").value_or(0) >= kFullPct;
}

// It came bit by bit: all changes of one process were for the worse. As one change, from the first level to the last.
struct Slope {
  const Fact* first = nullptr;
  const Fact* last = nullptr;
  double pct = 0;
  double lost_s = 0;
};
std::optional<Slope> slope_of(const std::vector<const Fact*>& changes) {
  Slope slope;
  for (const Fact* change : changes) {
    if (slope.first == nullptr) slope.first = change;
    if (change->where != slope.first->where || change->text("process") != slope.first->text("process")) continue;
    if (change->number("change_pct").value_or(0) <= 0) return std::nullopt;
    slope.last = change;
    const double level = slope.first->number("before_ms").value_or(0);
    const double now = change->number("after_ms").value_or(0);
    if (now > 0) slope.lost_s += change->number("lasts_s").value_or(0) * std::max(1 - level / now, 0.0);
  }
  if (slope.last == slope.first) return std::nullopt;
  const double level = slope.first->number("before_ms").value_or(0);
  if (level <= 0) return std::nullopt;
  slope.pct = 100 * (slope.last->number("after_ms").value_or(level) / level - 1);
  return slope;
}

// What the GPUs say of it: clocks that fell with it, or a GPU that waits.
struct GpuView {
  bool has_lower_clock = false;
  std::string waits;  // "power 160 -> 70 W, 70 -> 52 C at the same clock"
};
GpuView gpu_view(const FactTable& facts) {
  constexpr double kSame = 0.97;
  GpuView view{.has_lower_clock = lowest_clock_ratio(facts).value_or(1) < kClockFell, .waits = {}};
  for (const Fact* limits : facts.all("gpu.limits")) {
    const auto first = limits->number("clock_first_mhz");
    const auto last = limits->number("clock_last_mhz");
    if (!first || !last) continue;
    const auto power = limits->number("power_first_w");
    const auto power_now = limits->number("power_last_w");
    if (*last < kSame * *first || !power || !power_now || *power_now > 0.9 * *power || !view.waits.empty()) continue;
    view.waits = format("power {} -> {} W", figure(*power), figure(*power_now));
    const auto warm = limits->number("temperature_first_c");
    const auto now = limits->number("temperature_last_c");
    if (warm && now) view.waits += format(", {} -> {} C", figure(*warm), figure(*now));
    view.waits += " at the same clock";
  }
  return view;
}

// Beside other programs a job of constant work gets slower and faster: then it is said, but not as the job's loss.
void doubt(const FactTable& facts, Finding& finding) {
  if (!may_be_of_others(facts, finding.where)) return;
  const Fact* around = fact_for(facts, "neighbours.summary", finding.where);
  finding.claims = kClaimsNeighbour;
  finding.certainty = Certainty::kPossible;
  finding.severity = Severity::kInfo;
  finding.lost_pct.reset();
  finding.lost_s.reset();
  finding.limits.push_back(format("whether it was the job: other programs had {} of {} cores, mean",
                                  cores_figure(around->number("outside_cores").value_or(0)),
                                  cores_figure(around->number("usable_cores").value_or(0))));
}

void judge(const FactTable& facts, const Fact& change, const Fact* steps, double pct, double lost_s, double share,
           FindingSink& out) {
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
  const GpuView gpus = gpu_view(facts);
  if (gpus.has_lower_clock && finding.claims == "change") finding.claims = "gpu_clocks";
  const bool is_taken =
      steps != nullptr && taken_by_others_pct(facts, *steps).value_or(0) >= kTakenByOthersPct && part != "data_wait";
  if (is_taken || change.text("along").value_or("").starts_with("cpu.steal")) finding.claims = kClaimsNeighbour;
  if (change.number("lasts_s").value_or(0) < kCertainS) finding.certainty = Certainty::kLikely;
  if (finding.claims == "change" || finding.claims == "data_wait") doubt(facts, finding);
  if (!gpus.waits.empty()) {
    finding.why.push_back("the GPU waits: " + gpus.waits);
    finding.look_alikes_excluded.emplace_back("heat and power limit (the GPU is cooler and its clock the same)");
  }
  finding.advice.push_back({.change = "look at what changed then",
                            .note = steps == nullptr ? "" : "what moved along is named, not what caused it"});
  out.add(std::move(finding));
}

// Long enough on both sides, as far as the steps before are known.
bool lasts(const Fact& change, double least_s) {
  const double before_s = change.number("at_step").value_or(0) * change.number("before_ms").value_or(0) / 1e3;
  return change.number("lasts_s").value_or(0) >= least_s && before_s >= least_s;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const double least_s = static_cast<double>(params.duration_ns("lasts_min")) * 1e-9;
  if (const auto slope = slope_of(facts.all("changes.point"))) {
    const Fact* steps = fact_for(facts, "steps.summary", slope->first->where);
    const double steady_s = steps == nullptr ? 0 : steps->number("steady_s").value_or(0);
    const double share = steady_s > 0 ? std::min(100 * slope->lost_s / steady_s, 100.0) : 0;
    if (slope->pct >= params.number("change_pct") && share >= params.number("share_pct")) {
      Fact whole = *slope->last;
      whole.fields["before_ms"] = slope->first->number("before_ms").value_or(0);
      for (const std::string_view field : {"at_s", "at_step", "along_before", "half_width_pct"}) {
        if (const auto value = slope->first->number(field)) whole.set(field, *value);
      }
      if (slope->first->text("along") != slope->last->text("along")) whole.fields.erase("along");
      judge(facts, whole, steps, slope->pct, slope->lost_s, share, out);
      return {};
    }
  }
  for (const Fact* change : facts.all("changes.point")) {
    const double pct = change->number("change_pct").value_or(0);
    const double lost_s = change->number("lost_s").value_or(0);
    if (pct < params.number("change_pct") || !lasts(*change, least_s)) continue;
    const Fact* steps = fact_for(facts, "steps.summary", change->where);
    const double steady_s = steps == nullptr ? 0 : steps->number("steady_s").value_or(0);
    const double share = steady_s > 0 ? std::min(100 * lost_s / steady_s, 100.0) : 0;
    if (share < params.number("share_pct")) continue;
    judge(facts, *change, steps, pct, lost_s, share, out);
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
