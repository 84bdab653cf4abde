#pragma once
// The version of this program, as the build states it.
#include <string_view>

namespace hotlap {
std::string_view hotlap_version();  // "0.1.0"
}  // namespace hotlap
