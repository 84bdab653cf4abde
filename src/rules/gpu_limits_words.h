#pragma once
// What rules about limits of GPUs share: which are meant, and the head of what is said of clocks that were held down.
#include <optional>
#include <vector>

#include "rules/gpu_findings.h"

namespace hotlap {

// gpu.limits of the GPUs that work, or of which it is not known.
std::vector<const Fact*> working_limits(const FactTable& facts);
// Clocks of `limits` held down for `share_pct` of the time: place, loss in words, clock against the highest.
Finding limit_finding(const FactTable& facts, const Fact& limits, double share_pct);
// The clock at the end against that at the beginning, of the GPU where it fell most. Nothing: no clock was recorded.
std::optional<double> lowest_clock_ratio(const FactTable& facts);
// Below this ratio a clock has fallen.
inline constexpr double kClockFell = 0.93;

}  // namespace hotlap
