#include "rules/slow_rank_by_parts.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "rules/fact_number.h"
#include "rules/median.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr double kInStep = 0.1;  // ranks whose step times differ more do not wait for each other
// What a rank does for itself. Ranks meet in the backward pass and in communication: who is early waits there.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOwn{{{"forward", "forward"},
                                                                             {"data_wait", "waiting for data"},
                                                                             {"optimizer", "the optimizer"},
                                                                             {"other", "other code"}}};

struct Rank {
  const Fact* steps = nullptr;
  double step_ms = 0;
  std::array<double, kOwn.size()> parts_ms{};
  double meeting_ms = 0;
  double own_ms() const {
    double sum = 0;
    for (const double part : parts_ms) sum += part;
    return sum;
  }
};

std::vector<Rank> ranks_of(const FactTable& facts, double steps_min) {
  std::vector<Rank> out;
  for (const Fact* parts : facts.all("breakdown.parts")) {
    if (!parts->where.rank || parts->number("compute_known") != 1) continue;
    const Fact* steps = fact_for(facts, "steps.summary", parts->where);
    const auto step_ms = number_in(steps, "mean_ms");
    const auto backward = parts->number("backward");
    if (!step_ms || !backward || steps->number("steady_count").value_or(0) < steps_min) continue;
    Rank rank{.steps = steps, .step_ms = *step_ms};
    for (std::size_t i = 0; i < kOwn.size(); ++i)
      rank.parts_ms[i] = parts->number(kOwn[i].first).value_or(0) / 100 * *step_ms;
    rank.meeting_ms = (*backward + parts->number("communication").value_or(0)) / 100 * *step_ms;
    out.push_back(rank);
  }
  return out;
}

bool are_in_step(const std::vector<Rank>& ranks) {
  const auto [fast, slow] = std::ranges::minmax_element(ranks, {}, &Rank::step_ms);
  return slow->step_ms <= (1 + kInStep) * fast->step_ms;
}

std::string_view slow_rank_advice(bool has_gpu) {
  return has_gpu ? "look at that rank's GPU (clocks, power limit, heat, PCIe) and at what else runs on its cores; or "
                   "leave it out"
                 : "look at that rank's cores: how many it may use and at which clock, other programs on them; and at "
                   "what its code does more than the others'";
}

Finding describe(const std::vector<Rank>& ranks, const Rank& slow, double excess_ms, double waited_ms, bool has_gpu) {
  const double share = 100 * excess_ms / slow.step_ms;
  std::size_t most = 0;
  std::array<double, kOwn.size()> excess{};
  for (std::size_t i = 0; i < kOwn.size(); ++i) {
    excess[i] = slow.parts_ms[i] - median_of_others(ranks, &slow, [i](const Rank& rank) { return rank.parts_ms[i]; });
    if (excess[i] > excess[most]) most = i;
  }
  const bool is_loading = kOwn[most].first == "data_wait";
  const std::int32_t number = slow.steps->where.rank.value_or(-1);
  Finding finding = share_finding(
      slow.steps->where,
      {.cause = format("Slow rank {}", number),
       .loss = format("{} wait {} % of each step for it",
                      ranks.size() == 2 ? "the other one has to" : format("{} others have to", ranks.size() - 1),
                      figure(share)),
       .claims = is_loading ? "data_wait" : "slow_rank",
       .share_pct = share});
  finding.certainty = Certainty::kLikely;
  finding.distance = is_loading ? 1 : 0;  // why its loader is slow InputBound says
  set_step_loss(*slow.steps, share, finding);
  finding.evidence["step_ms"] = slow.step_ms;
  finding.evidence["own_ms"] = slow.own_ms();
  finding.evidence["own_others_ms"] = slow.own_ms() - excess_ms;
  finding.why.push_back(format("its own work takes {} ms, that of the others {} ms; {} makes {} % of the difference",
                               figure(slow.own_ms()), figure(slow.own_ms() - excess_ms), kOwn[most].second,
                               figure(std::min(100 * excess[most] / excess_ms, 100.0))));
  finding.why.push_back(
      format("the others spend {} ms more than it in the backward pass, where ranks meet", figure(waited_ms)));
  // What the others wait for is what goes when it is as fast as they are.
  const double error = slow.steps->number("half_width_ms").value_or(0.05 * slow.step_ms) / slow.step_ms;
  const double then = slow.step_ms - excess_ms;
  finding.advice.push_back({.change = is_loading
                                          ? "look at that rank's data: larger samples, a slower disk, fewer cores"
                                          : std::string(slow_rank_advice(has_gpu)),
                            .step_ms_low = then * (1 - error),
                            .step_ms_high = std::min(then * (1 + error) + 0.1 * excess_ms, slow.step_ms),
                            .basis = Basis::kModel,
                            .note = "when it is as fast as the others"});
  finding.look_alikes_excluded.emplace_back("the network (it enters last)");
  return finding;
}

}  // namespace

bool has_no_gpu(const FactTable& facts) {
  const Fact* software = facts.find("job.software");
  if (software == nullptr || (!software->number("gpu") && !software->number("gpu_build"))) return false;
  return (software->number("gpu") == 0 || software->number("gpu_build") == 0) && facts.find("gpu.use") == nullptr;
}

std::optional<Finding> slow_rank_by_parts(const FactTable& facts, double share_pct, double steps_min) {
  const std::vector<Rank> ranks = ranks_of(facts, steps_min);
  if (ranks.size() < 2 || !are_in_step(ranks)) return std::nullopt;
  const Rank& slow = *std::ranges::max_element(ranks, {}, &Rank::own_ms);
  const double excess_ms =
      slow.own_ms() - median_of_others(ranks, &slow, [](const Rank& rank) { return rank.own_ms(); });
  const double waited_ms =
      median_of_others(ranks, &slow, [](const Rank& rank) { return rank.meeting_ms; }) - slow.meeting_ms;
  if (100 * excess_ms / slow.step_ms < share_pct) return std::nullopt;
  // Where nobody waits they do not meet in each step: every rank has a pace of its own.
  if (waited_ms < 0.5 * excess_ms) return std::nullopt;
  return describe(ranks, slow, excess_ms, waited_ms, !has_no_gpu(facts));
}

}  // namespace hotlap
