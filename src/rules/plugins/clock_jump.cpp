// The machine's wall clock jumped: times in logs, of other machines and of certificates do not fit any more.
#include <array>
#include <cmath>
#include <string_view>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"clock.jumps"}};
constexpr std::array kParams{
    ParamDesc{.name = "jump",
              .type = ParamType::kDuration,
              .default_text = "500ms",
              .min = 1e6,
              .max = 3.6e15,
              .unit = "ns",
              .help = "size from which on a jump is spoken of"},
};
constexpr double kLargeS = 60;

std::string_view direction(double s) { return s < 0 ? "backward" : "forward"; }

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const double limit_s = static_cast<double>(params.duration_ns("jump")) * 1e-9;
  for (const Fact* clock : facts.all("clock.jumps")) {
    const double largest = clock->number("largest_s").value_or(0);
    if (clock->number("count").value_or(0) < 1 || std::abs(largest) < limit_s) continue;
    // Of a machine that slept the clock goes on: nothing is wrong with it.
    const double count = clock->number("count").value_or(0);
    const bool may_be_sleep = clock->number("unsure").value_or(0) >= count;
    Finding finding;
    finding.where = clock->where;
    finding.cause = may_be_sleep ? "The wall clock jumped, or the machine slept" : "The wall clock jumped";
    finding.loss = format("by {} s {}", figure(std::abs(largest)), direction(largest));
    finding.severity = std::abs(largest) >= kLargeS ? Severity::kWarning : Severity::kInfo;
    finding.certainty = may_be_sleep ? Certainty::kPossible : Certainty::kCertain;
    finding.claims = "clock";
    finding.evidence["count"] = count;
    finding.evidence["largest_s"] = largest;
    const double sum_s = clock->number("sum_s").value_or(0);
    finding.why.push_back(format("{} in all, together {} s {}", counted(std::lround(count), "jump"),
                                 figure(std::abs(sum_s)), direction(sum_s)));
    if (clock->number("suspends").value_or(0) > 0)
      finding.why.push_back(format("the machine slept {} s besides", figure(clock->number("suspended_s").value_or(0))));
    if (may_be_sleep) {
      finding.advice.push_back({.change = "copy /proc/uptime with each dump: it tells the two apart", .note = {}});
      finding.limits.emplace_back("which of the two it was: /proc/uptime was not copied");
      out.add(std::move(finding));
      continue;
    }
    finding.advice.push_back(
        {.change = "let one service keep the clock (chrony, systemd-timesyncd), which turns it slowly",
         .note = "what hotlap records itself goes by the monotonic clock"});
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_clock_jump{.id = "ClockJump",
                                                .title = "The machine's wall clock jumped",
                                                .why = "Counts the jumps of the wall clock against the monotonic one.",
                                                .advice = "What keeps a clock steady.",
                                                .needs = kNeeds,
                                                .params = kParams,
                                                .evaluate = evaluate};

}  // namespace hotlap
