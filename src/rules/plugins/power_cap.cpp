// A GPU is held below its clocks by a power limit that was lowered.
#include <algorithm>
#include <array>

#include "rules/gpu_limits_words.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.limits"}};
constexpr std::array kParams{
    percent_param("share_pct", "20",
                  "share of time with clocks lowered for the power limit, from which on the rule speaks"),
    ParamDesc{
        .name = "lowered_pct",
        .default_text = "5",
        .min = 0,
        .max = 100,
        .unit = "%",
        .help = "so far below its default the limit must be: at its default, a limit that is reached is a busy GPU"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* limits : working_limits(facts)) {
    const auto by_cap = limits->number("power_cap_pct");
    const auto by_brake = limits->number("power_brake_pct");
    const auto limit = limits->number("power_limit_w");
    const auto usual = limits->number("power_default_w");
    const bool is_brake = by_brake && *by_brake >= params.number("share_pct");
    const bool is_lowered = limit && usual && *usual > 0 && 100 * (1 - *limit / *usual) >= params.number("lowered_pct");
    const bool is_capped = by_cap && *by_cap >= params.number("share_pct") && is_lowered;
    if (!is_brake && !is_capped) continue;
    Finding finding = limit_finding(facts, *limits, is_brake ? *by_brake : *by_cap);
    if (is_brake) {
      finding.cause = format("The power supply holds {} back", limits->where.device);
      finding.advice.push_back(
          {.change = "look at the machine's power supply and its cables: ask the administrator", .note = {}});
    } else {
      finding.cause = format("{} is held to {} W", limits->where.device, figure(*limit));
      finding.why.push_back(format("its default is {} W", figure(*usual)));
      finding.advice.push_back({.change = format("raise the limit to its default (nvidia-smi -pl {})", figure(*usual)),
                                .note = "it may be deliberate: ask the administrator"});
    }
    finding.look_alikes_excluded.emplace_back("heat");
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_power_cap{.id = "PowerCap",
                                               .title = "A lowered power limit holds a GPU down",
                                               .why =
                                                   "Adds up the time in which power was the reason for lower clocks, "
                                                   "and compares the limit with the board's default. "
                                                   "A GPU that reaches its default limit is well used.",
                                               .advice = "The default limit, and whom to ask.",
                                               .needs = kNeeds,
                                               .params = kParams,
                                               .evaluate = evaluate};

}  // namespace hotlap
