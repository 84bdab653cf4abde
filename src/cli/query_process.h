#pragma once
// What `hotlap sql` hands to the process in which a foreign query runs.
#include <string>

#include "base/result.h"

namespace hotlap {

inline constexpr std::size_t kQueryBytesMax = std::size_t{64} << 10U;

// Everything that standard input has, up to `bytes_max` (kResourceLimit beyond).
Result<std::string> read_standard_input(std::size_t bytes_max);

}  // namespace hotlap
