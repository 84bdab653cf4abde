#pragma once
// The script by which a shell completes our command line, made from the specs alone.
#include <span>
#include <string>

#include "base/result.h"
#include "cli/command.h"

namespace hotlap {

enum class Shell : std::uint8_t { kBash, kZsh };

// The script; it asks `hotlap completion runs` for names of runs when they are wanted.
std::string completion_script(std::span<const CommandSpec* const> commands, Shell shell);

// What names a run on a command line without quotes, newest first, a line each: its name, or its id where the name has
// other characters than letters, digits, '.', '_' and '-'. At most `limit`. A shell expands what it is offered, so
// nothing else may come from a run.
Result<std::string> completion_runs(std::size_t limit);

}  // namespace hotlap
