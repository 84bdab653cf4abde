// A GPU lowers its clocks because it is hot.
#include <algorithm>
#include <array>
#include <vector>

#include "rules/gpu_limits_words.h"
#include "rules/words.h"

namespace hotlap {
namespace {

// Without a word of the driver: so hot, so much hotter and so much slower than before, and not at its power limit.
constexpr double kHotC = 83;
constexpr double kNearSlowdownC = 5;
constexpr double kRiseC = 8;
constexpr double kClockDrop = 0.1;
constexpr double kAtLimit = 0.95;
constexpr double kGuessedSharePct = 50;

bool looks_hot(const Fact& limits) {
  const auto first_c = limits.number("temperature_first_c");
  const auto last_c = limits.number("temperature_last_c");
  const auto first_mhz = limits.number("clock_first_mhz");
  const auto last_mhz = limits.number("clock_last_mhz");
  if (!first_c || !last_c || !first_mhz || !last_mhz || *first_mhz <= 0) return false;
  const auto slowdown = limits.number("temperature_slowdown_c");
  const double hot = slowdown ? std::min(kHotC, *slowdown - kNearSlowdownC) : kHotC;
  const auto power = limits.number("power_last_w");
  const auto limit = limits.number("power_limit_w");
  const bool is_at_limit = power && limit && *power >= kAtLimit * *limit;
  return *last_c >= hot && *last_c - *first_c >= kRiseC && *last_mhz <= (1 - kClockDrop) * *first_mhz && !is_at_limit;
}

// Hotter and slower than all the others of its kind that work beside it.
constexpr double kHotterC = 8;
constexpr double kSlower = 0.1;

bool is_at_power_limit(const Fact& limits) {
  const auto power = limits.number("power_w");
  const auto limit = limits.number("power_limit_w");
  return power && limit && *power >= kAtLimit * *limit;
}

bool is_hotter_than_others(const std::vector<const Fact*>& gpus, const Fact& limits) {
  const auto heat = limits.number("temperature_c");
  const auto clock = limits.number("clock_mhz");
  const auto slowdown = limits.number("temperature_slowdown_c");
  if (!heat || !clock || *heat < (slowdown ? std::min(kHotC, *slowdown - kNearSlowdownC) : kHotC)) return false;
  if (is_at_power_limit(limits)) return false;
  std::size_t others = 0;
  for (const Fact* other : gpus) {
    if (other == &limits || other->where.node != limits.where.node ||
        other->number("clock_max_mhz") != limits.number("clock_max_mhz"))
      continue;
    const auto its_heat = other->number("temperature_c");
    const auto its_clock = other->number("clock_mhz");
    if (!its_heat || !its_clock) continue;
    if (*heat - *its_heat < kHotterC || *clock > (1 - kSlower) * *its_clock) return false;
    ++others;
  }
  return others > 0;
}

std::string others_words(const std::vector<const Fact*>& gpus, const Fact& limits) {
  double hottest = 0;
  for (const Fact* other : gpus) {
    if (other != &limits && other->where.node == limits.where.node)
      hottest = std::max(hottest, other->number("temperature_c").value_or(0));
  }
  return format("{} C, the others at most {} C", figure(limits.number("temperature_c").value_or(0)), figure(hottest));
}

constexpr std::array kNeeds{std::string_view{"gpu.limits"}};
constexpr std::array kParams{
    percent_param("share_pct", "5", "share of time with clocks lowered because of heat, from which on the rule speaks"),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const std::vector<const Fact*> gpus = working_limits(facts);
  for (const Fact* limits : gpus) {
    const auto told = limits->number("thermal_pct");
    const bool is_hotter = !told && is_hotter_than_others(gpus, *limits);
    if (told ? *told < params.number("share_pct") : !looks_hot(*limits) && !is_hotter) continue;
    Finding finding = limit_finding(facts, *limits, told.value_or(kGuessedSharePct));
    if (!told) {
      finding.certainty = Certainty::kLikely;
      finding.loss = is_hotter ? "slower than the others of its kind" : "clocks fall as it gets hot";
      finding.evidence.erase("share_pct");
      finding.limits.emplace_back("the driver's reason: it was not recorded");
    }
    finding.cause = format("{} is too hot and lowers its clocks", limits->where.device);
    const auto first = limits->number("temperature_first_c");
    const auto last = limits->number("temperature_last_c");
    if (first && last && !is_hotter) finding.why.push_back(format("{} -> {} C", figure(*first), figure(*last)));
    if (is_hotter) finding.why.push_back(others_words(gpus, *limits));
    if (const auto slowdown = limits->number("temperature_slowdown_c"))
      finding.why.push_back(format("it slows down at {} C", figure(*slowdown)));
    finding.advice.push_back(
        {.change = "cooling: fans, air flow, dust, the neighbours in the rack; or a lower power limit",
         .note = "a lower limit that is held beats clocks that go up and down"});
    finding.look_alikes_excluded.emplace_back("the power limit");
    finding.look_alikes_excluded.emplace_back("a GPU that waits (that is cooler, not hotter)");
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_thermal_throttle{
    .id = "ThermalThrottle",
    .title = "A GPU lowers its clocks because of heat",
    .why =
        "Adds up the time in which the driver or the hardware gave heat as the reason for lower clocks. Certain: the "
        "GPU says so. Where no reason was recorded, likely: clocks that fell while it became hot, below its power "
        "limit, or one that is hotter and slower than all others of its kind.",
    .advice = "Cooling.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
