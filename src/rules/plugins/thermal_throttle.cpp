// A GPU lowers its clocks because it is hot.
#include <algorithm>
#include <array>

#include "rules/gpu_limits_words.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.limits"}};
constexpr std::array kParams{
    percent_param("share_pct", "5", "share of time with clocks lowered because of heat, from which on the rule speaks"),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* limits : working_limits(facts)) {
    const auto share = limits->number("thermal_pct");
    if (!share || *share < params.number("share_pct")) continue;
    Finding finding = limit_finding(facts, *limits, *share);
    finding.cause = format("{} is too hot and lowers its clocks", limits->where.device);
    const auto first = limits->number("temperature_first_c");
    const auto last = limits->number("temperature_last_c");
    if (first && last) finding.why.push_back(format("{} -> {} C", figure(*first), figure(*last)));
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
        "GPU says so.",
    .advice = "Cooling.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
