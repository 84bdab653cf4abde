// Ranks of one job do not do the same number of steps: the last collective of those that do more waits for ever.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"ranks.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "difference_pct",
              .default_text = "5",
              .min = 0.01,
              .max = 100,
              .unit = "%",
              .help = "of the steps, by which ranks may differ at most: with more, a recording was cut off"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::vector<const Fact*> ranks = facts.all("ranks.rank");
  std::erase_if(ranks, [](const Fact* one) { return !one->number("steps") || !one->where.rank; });
  const Fact& all = *facts.find("ranks.summary");
  if (ranks.size() < 2 || static_cast<double>(ranks.size()) < all.number("ranks").value_or(0)) return {};
  if (all.number("running").value_or(0) > 0) return {};  // one is always a step ahead
  const auto steps_of = [](const Fact* one) { return *one->number("steps"); };
  std::ranges::stable_sort(ranks, {}, steps_of);
  const double least = steps_of(ranks.front());
  const double most = steps_of(ranks.back());
  if (least == most || 100 * (most - least) > params.number("difference_pct") * most) return {};
  const auto more = std::ranges::count_if(ranks, [&](const Fact* one) { return steps_of(one) > least; });
  const bool one_does_more = 2 * more <= static_cast<long>(ranks.size());
  const Fact& odd = one_does_more ? *ranks.back() : *ranks.front();
  const auto count = [](double steps) { return shown_count(static_cast<std::uint64_t>(steps)); };
  Finding finding;
  if (more == 1 || more + 1 == static_cast<long>(ranks.size())) finding.where = odd.where;
  finding.cause = format("Ranks do not do the same number of steps: {} and {}", count(most), count(least));
  finding.loss = "those that do more wait for ever at the end, or crash";
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "uneven_steps";
  finding.evidence["most"] = most;
  finding.evidence["least"] = least;
  finding.why.push_back(format("rank {} did {}, {} {}", odd.where.rank.value_or(-1), count(steps_of(&odd)),
                               one_does_more ? "most others" : "the others", count(one_does_more ? least : most)));
  finding.advice.push_back({.change = "the same number of batches on each rank: drop_last=True, DistributedSampler, or "
                                      "with model.join() around the loop",
                            .note = "rank 0 that evaluates or logs through a collective alone hangs in the same way"});
  finding.limits.emplace_back("whether the recordings end at the same moment");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_uneven_steps{
    .id = "UnevenSteps",
    .title = "Ranks do not do the same number of steps",
    .why =
        "Counts the steps of each rank once all have ended. A few more on one than on the others means that a "
        "collective there waits for ranks that are done.",
    .advice = "The same number of batches on each rank.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
