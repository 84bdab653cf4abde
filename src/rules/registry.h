#pragma once
// The generated table of src/rules/plugins, sorted by file name.
#include <span>

#include "rules/rule.h"

namespace hotlap {
std::span<const RuleSpec* const> all_rules();
}  // namespace hotlap
