#pragma once
// The generated table of src/cli/commands, sorted by file name.
#include <span>

#include "cli/command.h"

namespace hotlap {
std::span<const CommandSpec* const> all_commands();
}  // namespace hotlap
