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

// Without a word of the driver: at its limit all the time, with clocks far below the highest.
constexpr double kAtLimit = 0.93;
constexpr double kClockLowPct = 80;
constexpr double kClockVeryLowPct = 60;  // a GPU at its default limit hardly ever has to go so low
constexpr double kNearPct = 97;          // of the limit that was asked for

bool looks_capped(const Fact& limits, double clock_pct) {
  const auto power = limits.number("power_w");
  const auto limit = limits.number("power_limit_w");
  const auto clock = limits.number("clock_pct");
  return power && limit && clock && *power >= kAtLimit * *limit && *clock <= clock_pct;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* limits : working_limits(facts)) {
    const auto by_cap = limits->number("power_cap_pct");
    const auto by_brake = limits->number("power_brake_pct");
    const auto limit = limits->number("power_limit_w");
    const auto recorded = limits->number("power_default_w");
    const auto usual = recorded ? recorded : limits->number("power_board_w");
    const bool is_brake = by_brake && *by_brake >= params.number("share_pct");
    const bool is_lowered = limit && usual && *usual > 0 && 100 * (1 - *limit / *usual) >= params.number("lowered_pct");
    // What was asked for is not what is enforced.
    const auto requested = limits->number("power_requested_w");
    const bool is_below_request = limit && requested && 100 * *limit < kNearPct * *requested;
    const bool is_told = by_cap && *by_cap >= params.number("share_pct");
    const bool may_be_lowered = is_lowered || is_below_request;
    const bool is_guessed = !by_cap && looks_capped(*limits, may_be_lowered ? kClockLowPct : kClockVeryLowPct) &&
                            (may_be_lowered || !usual);
    const bool is_very_low = is_told && !usual && looks_capped(*limits, kClockVeryLowPct);
    if (!is_brake && !(is_told && may_be_lowered) && !is_guessed && !is_very_low) continue;
    Finding finding = limit_finding(facts, *limits, is_brake ? *by_brake : by_cap.value_or(100));
    if (is_guessed) {
      finding.certainty = Certainty::kLikely;
      finding.loss = "at its power limit all the time";
      finding.evidence.erase("share_pct");
      finding.limits.emplace_back("the driver's reason: it was not recorded");
    }
    if (is_brake) {
      finding.cause = format("The power supply holds {} back", limits->where.device);
      finding.advice.push_back(
          {.change = "look at the machine's power supply and its cables: ask the administrator", .note = {}});
    } else {
      finding.cause = format("{} is held to {} W", limits->where.device, figure(*limit));
      if (recorded) finding.why.push_back(format("its default is {} W", figure(*recorded)));
      if (usual && !recorded) {
        finding.why.push_back(format("boards of its name start with {} W", figure(*usual)));
        finding.certainty = Certainty::kLikely;
      }
      if (is_below_request) {
        finding.why.push_back(format("{} W were asked for, {} W are enforced", figure(*requested), figure(*limit)));
      }
      if (!recorded) finding.limits.emplace_back("its default limit: it was not recorded");
      const auto wanted = usual ? usual : is_below_request ? requested : std::nullopt;
      finding.advice.push_back(
          {.change = wanted ? format("raise the limit to {} W (nvidia-smi -pl {})", figure(*wanted), figure(*wanted))
                            : std::string("raise the limit to its default (nvidia-smi -q -d POWER "
                                          "says which)"),
           .note = is_below_request ? "something else lowers it: a service at boot, the board's power supply"
                                    : "it may be deliberate: ask the administrator"});
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
                                                   "A GPU that reaches its default limit is well used. Where no reason "
                                                   "was recorded, likely: at its limit with clocks far below the "
                                                   "highest.",
                                               .advice = "The default limit, and whom to ask.",
                                               .needs = kNeeds,
                                               .params = kParams,
                                               .evaluate = evaluate};

}  // namespace hotlap
