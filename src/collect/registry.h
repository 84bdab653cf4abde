#pragma once
// The generated table of src/collect/plugins, sorted by name.
#include <span>

#include "collect/collector.h"

namespace hotlap {
std::span<const CollectorSpec* const> all_collectors();
}  // namespace hotlap
