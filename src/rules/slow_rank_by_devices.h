#pragma once
// A slow rank by the traces of several ranks: the GPU that computes longest is the one that waits least inside the
// collectives, where the others wait for it.
#include <optional>

#include "model/fact.h"
#include "model/finding.h"

namespace hotlap {

// Over device.time of at least two ranks. `share_pct`: of the time that the others wait longer than it inside
// collectives. Absent: no rank is slow, or their traces do not span the same steps.
std::optional<Finding> slow_rank_by_devices(const FactTable& facts, double share_pct);

}  // namespace hotlap
