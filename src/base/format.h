#pragma once
// The one header of ours that shows a third-party header: text formatting by fmt.
#include <fmt/core.h>

#include <string>

namespace hotlap {
using fmt::format;
}  // namespace hotlap
