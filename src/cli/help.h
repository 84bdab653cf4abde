#pragma once
// Help texts, made from the specs alone.
#include <span>
#include <string>

#include "cli/command.h"

namespace hotlap {

std::string program_help(std::span<const CommandSpec* const> commands);
std::string command_help(const CommandSpec& spec);
// "hotlap show RUN [flags]"
std::string command_usage(const CommandSpec& spec);
// "--interval 500ms", as it stands in help and in the reference.
std::string flag_heading(const FlagSpec& flag);
// " (10 ms to 60 s)"; empty when it has no range.
std::string flag_range(const FlagSpec& flag);

}  // namespace hotlap
