#include "rules/gpu_limits_words.h"

#include <algorithm>
#include <cmath>

#include "rules/words.h"

namespace hotlap {

std::vector<const Fact*> working_limits(const FactTable& facts) {
  std::vector<const Fact*> out;
  for (const Fact* limits : facts.all("gpu.limits")) {
    const Fact* use = same_device(facts, "gpu.use", *limits);
    const bool is_known = use != nullptr && use->number("ever_pct");
    if (use != nullptr && use->number("is_of_job") == 0) continue;
    if (!is_known || is_in_use(*use)) out.push_back(limits);
  }
  return out;
}

Finding limit_finding(const FactTable& facts, const Fact& limits, double share_pct) {
  Finding finding;
  finding.where = place_of({&limits});
  finding.loss = format("clocks held down {} % of the time", figure(share_pct));
  finding.severity = share_pct >= 50 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "gpu_clocks";
  finding.evidence["share_pct"] = share_pct;
  const auto clock = limits.number("clock_mhz");
  const auto highest = limits.number("clock_max_mhz");
  if (clock && highest) {
    finding.why.push_back(format("{} of {} MHz", figure(*clock), figure(*highest)));
    finding.evidence["clock_mhz"] = *clock;
    finding.evidence["clock_max_mhz"] = *highest;
  }
  const auto first = limits.number("clock_first_mhz");
  const auto last = limits.number("clock_last_mhz");
  if (first && last && std::abs(*last - *first) >= 0.05 * *first)
    finding.why.push_back(format("clock {} -> {} MHz", figure(*first), figure(*last)));
  // What others of its kind do at the same time is the best measure of what it loses.
  double best = 0;
  for (const Fact* other : facts.all("gpu.limits")) {
    if (other != &limits && other->number("clock_max_mhz") == highest)
      best = std::max(best, other->number("clock_mhz").value_or(0));
  }
  if (clock && best > 1.03 * *clock) finding.why.push_back(format("others run at {} MHz", figure(best)));
  const auto power = limits.number("power_w");
  const auto limit = limits.number("power_limit_w");
  if (power && limit) finding.why.push_back(format("{} of {} W", figure(*power), figure(*limit)));
  finding.limits.emplace_back("how much of the step follows the clock");
  return finding;
}

std::optional<double> lowest_clock_ratio(const FactTable& facts) {
  std::optional<double> lowest;
  for (const Fact* limits : facts.all("gpu.limits")) {
    const auto first = limits->number("clock_first_mhz");
    const auto last = limits->number("clock_last_mhz");
    if (first && last && *first > 0) lowest = std::min(lowest.value_or(*last / *first), *last / *first);
  }
  return lowest;
}

}  // namespace hotlap
