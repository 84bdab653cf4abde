#pragma once
// Names of XLA's operations (HLO), as they stand in traces of TPUs and of JAX and TensorFlow: the operation with
// hyphens, a number behind it, "%all-reduce.1", "reduce-scatter-start.2", fusions of them. Thread-safe.
#include <string_view>

namespace hotlap {

// Collectives, their two halves, and fusions that are called after them.
bool names_hlo_collective(std::string_view operation);

}  // namespace hotlap
