// One rank is slower than the others, step after step: it sets the pace of all.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "rules/fact_number.h"
#include "rules/slow_rank_by_devices.h"
#include "rules/slow_rank_by_parts.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"ranks.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "slower_pct",
              .default_text = "5",
              .min = 0.5,
              .max = 1000,
              .unit = "%",
              .help = "longer own work than the median rank's, mean over the steps, from which on a rank is slow"},
    ParamDesc{.name = "share_pct",
              .default_text = "60",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "of the steps in which it must be the slowest"},
    steps_min_param("steps that the ranks must have in common"),
};
constexpr double kOthersSpread = 0.5;  // of its own: the others must lie closer together than that

// What a step takes once the slow rank is like the others: like the median one, or like the slowest of them.
void set_gain(const FactTable& facts, const Fact& slow, const std::vector<const Fact*>& ranks, double median_ms,
              Finding& finding) {
  const double own_ms = slow.number("mean_ms").value_or(0);
  const double step_ms = number_in(fact_for(facts, "steps.summary", slow.where), "mean_ms").value_or(own_ms);
  double next_ms = median_ms;
  for (const Fact* one : ranks) {
    if (one != &slow) next_ms = std::max(next_ms, one->number("mean_ms").value_or(0));
  }
  finding.evidence["step_ms"] = step_ms;
  Advice& advice = finding.advice.back();
  advice.step_ms_low = std::max(step_ms - (own_ms - median_ms), 0.0);
  advice.step_ms_high = std::clamp(step_ms - (own_ms - next_ms), *advice.step_ms_low, step_ms);
  advice.basis = Basis::kArithmetic;
}

// The ranks' own work side by side, step by step.
std::optional<Finding> slow_rank_by_steps(const FactTable& facts, const Params& params) {
  const Fact* summary = facts.find("ranks.summary");
  if (summary == nullptr || summary->number("steps").value_or(0) < params.number("steps_min")) return std::nullopt;
  const Fact& all = *summary;
  std::vector<const Fact*> ranks = facts.all("ranks.rank");
  std::ranges::stable_sort(ranks, std::greater{},
                           [](const Fact* one) { return one->number("slower_pct").value_or(0); });
  if (ranks.empty()) return std::nullopt;
  const Fact& slow = *ranks.front();
  const double slower = slow.number("slower_pct").value_or(0);
  const double share = slow.number("slowest_share_pct").value_or(0);
  const double second = ranks.size() > 1 ? ranks[1]->number("slower_pct").value_or(0) : 0;
  if (slower < params.number("slower_pct") || share < params.number("share_pct")) return std::nullopt;
  // Of two ranks neither is the rule and the other the exception; the median is the slower one's then.
  const double rank_count = all.number("ranks").value_or(0);
  if (rank_count >= 3 && second > kOthersSpread * slower) return std::nullopt;
  const Fact* steps = fact_for(facts, "steps.summary", slow.where);
  const double lost = slower / (100 + slower) * 100;
  Finding finding;
  finding.where = slow.where;
  finding.cause = format("Slow rank {}", slow.where.rank.value_or(-1));
  finding.loss = format("{} wait {} % of each step for it", counted(std::lround(rank_count) - 1, "rank"), figure(lost));
  finding.severity = slower >= 15 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = share >= 80 ? Certainty::kCertain : Certainty::kLikely;
  finding.claims = "straggler";
  if (steps != nullptr) set_step_loss(*steps, lost, finding);
  finding.evidence["slower_pct"] = slower;
  finding.evidence["slowest_share_pct"] = share;
  const double mean = slow.number("mean_ms").value_or(0);
  finding.why.push_back(format("own work {} ms, others {}, in {} % of {} steps the slowest", figure(mean),
                               figure(all.number("median_ms").value_or(0)), figure(share),
                               count_figure(all.number("steps").value_or(0))));
  const auto wait = slow.number("data_wait_ms");
  std::vector<double> waits;
  for (const Fact* one : ranks) {
    if (one != &slow && one->number("data_wait_ms")) waits.push_back(*one->number("data_wait_ms"));
  }
  bool is_by_data = false;
  if (wait && !waits.empty()) {
    std::ranges::sort(waits);
    const double usual = waits[waits.size() / 2];
    is_by_data = *wait - usual >= 0.5 * mean * slower / (100 + slower);
    finding.why.push_back(format("waiting for data {} ms, others {}", figure(*wait), figure(usual)));
  }
  // Its wait is the loader's, and the others wait for it: one thing, told with the rank.
  if (is_by_data) {
    finding.claims = "data_wait";
    finding.distance = -1;
  }
  finding.advice.push_back(
      {.change = is_by_data ? "look at its data: its part of the set, its disk or mount, its workers"
                 : has_no_gpu(facts)
                     ? "look at its node and its cores: how many it may use, other programs on them; and at what its "
                       "code does more than the others'"
                     : "look at its node and GPU: clocks, heat, power limit, PCIe link, other programs; or leave "
                       "it out"});
  if (const auto median_ms = all.number("median_ms")) set_gain(facts, slow, ranks, *median_ms, finding);
  finding.look_alikes_excluded.emplace_back("ranks that stall in turns (it is always the same one)");
  if (wait && !is_by_data) finding.look_alikes_excluded.emplace_back("data (it waits no longer than the others)");
  if (all.number("own_work") != 1)
    finding.limits.emplace_back("communication was not measured: whole steps are compared");
  return finding;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::optional<Finding> found = slow_rank_by_steps(facts, params);
  if (!found) found = slow_rank_by_parts(facts, params.number("slower_pct"), params.number("steps_min"));
  if (!found) found = slow_rank_by_devices(facts, params.number("slower_pct"));
  if (found) out.add(std::move(*found));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_slow_rank{
    .id = "SlowRank",
    .title = "One rank is slower than the others",
    .why =
        "Compares the own work of all ranks step by step: the same one must be the slowest in most steps, and stand "
        "apart from the others. Where they wait for each other, so that all steps last the same, it compares what each "
        "does for itself; the others must then spend longer where ranks meet, in the backward pass and communication. "
        "In "
        "traces of several ranks it is the one whose GPU waits least inside the collectives.",
    .advice = "Where to look, and what a step takes without it.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
