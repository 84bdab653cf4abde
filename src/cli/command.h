#pragma once
// The command contract: one file per command; flags are data, so that one file (cli/parse.cpp) knows CLI11.
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

// Exit codes that scripts may rely on (docs/reference/exit-codes.md). `run` returns the job's own.
enum ExitCode : int { kExitSuccess = 0, kExitFailed = 1, kExitUsage = 2, kExitFailOn = 3 };

enum class FlagType : std::uint8_t { kSwitch, kText, kNumber, kDuration, kInteger };

struct FlagSpec {
  std::string_view name;  // "--interval"; a second spelling after a comma: "-o,--output"
  FlagType type = FlagType::kSwitch;
  std::string_view placeholder;  // "500ms": shown in help
  std::string_view help;
  double min = 0;  // range of a number, an integer, or a duration in ns; min == max: any
  double max = 0;
};

struct PositionalSpec {
  std::string_view name;  // "RUN"
  std::string_view help;
  bool is_required = false;
  bool is_repeated = false;
  bool takes_rest = false;     // everything after "--": the job's own command line, untouched
  bool names_runs = false;     // completed with the runs of the home
  std::string_view choices{};  // "bash zsh": the only words it takes
};

// Parsed and checked against the spec; asking for a flag that the spec lacks is a failed check.
class Args {
 public:
  bool has(std::string_view flag) const;
  std::optional<std::string> text(std::string_view flag) const;
  std::optional<double> number(std::string_view flag) const;
  std::optional<std::int64_t> integer(std::string_view flag) const;
  std::optional<std::int64_t> duration_ns(std::string_view flag) const;
  const std::vector<std::string>& positional(std::string_view name) const;

  std::map<std::string, std::vector<std::string>, std::less<>> values;  // filled by the parser
};

// Where a command reads and writes, so that tests run it in-process.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;
  std::string_view example;  // one command line that works
  std::string_view help;     // longer text; may be empty
  std::span<const FlagSpec> flags;
  std::span<const PositionalSpec> positionals;
  bool is_hidden = false;  // internal processes of ours
  Result<int> (*run)(const Args& args, Streams& streams) = nullptr;
};

}  // namespace hotlap
