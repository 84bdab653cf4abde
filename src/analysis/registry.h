#pragma once
// The generated table of src/analysis/plugins, sorted by file name.
#include <span>

#include "analysis/analyzer.h"

namespace hotlap {
std::span<const AnalyzerSpec* const> all_analyzers();
}  // namespace hotlap
