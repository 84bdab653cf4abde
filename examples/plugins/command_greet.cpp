// Skeleton of a command: flags are data, output goes to the streams given. Copy it to src/cli/commands/<name>.cpp.
#include <array>
#include <ostream>

#include "cli/command.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{FlagSpec{.name = "--loud", .help = "with an exclamation mark"}};
constexpr std::array kPositionals{PositionalSpec{.name = "NAME", .help = "whom to greet", .is_required = true}};

Result<int> run(const Args& args, Streams& streams) {
  const std::string& name = args.positional("NAME").front();
  if (name.empty()) return Error{ErrorCode::kInvalidInput, "NAME is empty; give one, as in: hotlap greet Ada"};
  streams.out << "hello " << name << (args.has("--loud") ? "!\n" : "\n");
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_greet{.name = "greet",
                                                 .summary = "Say hello.",
                                                 .example = "hotlap greet Ada --loud",
                                                 .flags = kFlags,
                                                 .positionals = kPositionals,
                                                 .run = run};

}  // namespace hotlap
