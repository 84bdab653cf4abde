#pragma once
// From the words of a command line to an exit code: finds the command, parses, runs it and reports its error.
#include <span>
#include <string>

#include "cli/command.h"

namespace hotlap {

// `words` are the arguments without the program's name.
int dispatch(std::span<const CommandSpec* const> commands, std::span<const std::string> words, Streams& streams);

// What an Error means for the caller of the program (docs/reference/exit-codes.md).
ExitCode exit_code_of(ErrorCode code);

}  // namespace hotlap
