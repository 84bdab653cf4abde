#include "rules/slow_rank_by_devices.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/fact_number.h"
#include "rules/median.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr double kSameWall = 0.1;  // traces whose lengths differ more are not of the same steps
// What a rank's GPU does, or waits for, on its own.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOwn{
    {{"compute_ms", "computing"},
     {"exposed_copy_ms", "copying"},
     {"idle_data_ms", "waiting for data"},
     {"idle_host_ms", "waiting for the host"},
     {"idle_dispatch_ms", "waiting for launches"},
     {"idle_sync_ms", "waking up the host"}}};

double field_of(const Fact& device, std::string_view field) { return device.number(field).value_or(0); }

// One device of each rank; empty: fewer than two, or not of the same steps.
std::vector<const Fact*> ranks_of(const FactTable& facts) {
  std::vector<const Fact*> out;
  if (facts.find("device.windows") != nullptr) return out;  // each was watched at times of its own
  for (const Fact* device : facts.all("device.time")) {
    if (!device->where.rank || field_of(*device, "wall_ms") <= 0 || !device->number("exposed_communication_ms"))
      continue;
    const auto is_same = [&](const Fact* other) { return other->where.rank == device->where.rank; };
    if (std::ranges::none_of(out, is_same)) out.push_back(device);
  }
  if (out.size() < 2) return {};
  const auto wall_of = [](const Fact* device) { return field_of(*device, "wall_ms"); };
  const auto [shortest, longest] = std::ranges::minmax(out, {}, wall_of);
  return wall_of(longest) <= (1 + kSameWall) * wall_of(shortest) ? out : std::vector<const Fact*>();
}

struct Excess {
  std::string_view words;
  std::string_view field;
  double own_ms = 0;
  double others_ms = 0;
  double ms() const { return own_ms - others_ms; }
};

Excess largest_excess(const std::vector<const Fact*>& ranks, const Fact* const* slow) {
  Excess most;
  for (const auto& [field, words] : kOwn) {
    const auto figure_of = [name = field](const Fact* device) { return field_of(*device, name); };
    const Excess one{words, field, figure_of(*slow), median_of_others(ranks, slow, figure_of)};
    if (one.ms() > most.ms()) most = one;
  }
  return most;
}

}  // namespace

std::optional<Finding> slow_rank_by_devices(const FactTable& facts, double share_pct) {
  const std::vector<const Fact*> ranks = ranks_of(facts);
  if (ranks.empty()) return std::nullopt;
  const auto waits_of = [](const Fact* device) { return field_of(*device, "exposed_communication_ms"); };
  const auto place = std::ranges::min_element(ranks, {}, waits_of);
  const Fact* slow = *place;
  const double waited_ms = median_of_others(ranks, &*place, waits_of) - waits_of(slow);
  const double wall_ms = field_of(*slow, "wall_ms");
  const double share = 100 * waited_ms / wall_ms;
  const Excess excess = largest_excess(ranks, &*place);
  // What nobody sees it do may be no slowness at all: a collective that it does not take part in.
  if (share < share_pct || excess.ms() < 0.5 * waited_ms) return std::nullopt;
  const bool is_loading = excess.field == "idle_data_ms";
  Finding finding = share_finding(
      slow->where,
      {.cause = format("Slow rank {}", slow->where.rank.value_or(-1)),
       .loss = format("{} wait {} % of the time for it, inside collectives",
                      ranks.size() == 2 ? "the other one has to" : format("{} others have to", ranks.size() - 1),
                      figure(share)),
       .claims = "communication",
       .share_pct = share});
  finding.distance = -1;  // that nothing hides the collectives is what the wait looks like
  const Fact* steps = fact_for(facts, "steps.summary", slow->where);
  if (steps != nullptr) set_step_loss(*steps, share, finding);
  finding.evidence["waited_ms"] = waited_ms;
  finding.evidence["excess_ms"] = excess.ms();
  finding.why.push_back(
      format("its GPU spends {} ms {}, those of the others {} ms; they are {} ms longer inside collectives "
             "than it",
             figure(excess.own_ms), excess.words, figure(excess.others_ms), figure(waited_ms)));
  Advice advice{.change = is_loading
                              ? "look at that rank's data: larger samples, a slower disk, fewer cores"
                              : "look at that rank's GPU (clocks, power limit, heat, PCIe) and at the size of its "
                                "part of the batch; or leave it out",
                .basis = Basis::kModel,
                .note = "when it is as fast as the others"};
  if (const auto mean = number_in(steps, "mean_ms")) {
    const double then = *mean * (1 - excess.ms() / wall_ms);
    advice.step_ms_low = then;
    advice.step_ms_high = std::min(then + 0.1 * *mean * excess.ms() / wall_ms, *mean);
  }
  finding.advice.push_back(std::move(advice));
  finding.look_alikes_excluded.emplace_back("the network (it enters the collectives last and leaves them at once)");
  return finding;
}

}  // namespace hotlap
