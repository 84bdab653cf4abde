#pragma once
// A slow rank of a job whose ranks wait for each other in each step, so that all steps last the same: told by what each
// does for itself (forward, waiting for data, optimizer, other code) and by the others' wait where they meet.
#include <optional>

#include "model/fact.h"
#include "model/finding.h"

namespace hotlap {

// Over steps.summary and breakdown.parts of ranks with at least `steps_min` steady steps. `share_pct`: by how much of
// the step its own work must be longer than that of the others. Absent: no rank is slow, or the ranks do not meet.
std::optional<Finding> slow_rank_by_parts(const FactTable& facts, double share_pct, double steps_min);

// The job is known to have no GPU: its work is the processor's.
bool has_no_gpu(const FactTable& facts);

}  // namespace hotlap
