#pragma once
// Turns the words after a command's name into Args, checked against its spec. The one place that knows CLI11.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace hotlap {

struct ParsedWords {
  bool wants_help = false;  // --help or -h before anything wrong; `args` is then empty
  Args args;
};

// kInvalidInput names the word, what is wrong with it and what the command takes. In `args.values` every flag and
// positional of the spec has an entry, empty when it was not given; "-o,--output" has one for each spelling. A flag
// that is given twice keeps both values; the accessors of Args answer with the last.
Result<ParsedWords> parse_words(const CommandSpec& spec, std::span<const std::string> words);

// The spellings of a flag: "-o,--output" → "-o", "--output".
std::vector<std::string_view> flag_spellings(const FlagSpec& flag);

}  // namespace hotlap
