// Which hotlap this is.
#include <array>
#include <ostream>

#include "base/json_writer.h"
#include "base/version.h"
#include "cli/command.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{FlagSpec{.name = "--json", .help = "as JSON"}};

Result<int> run(const Args& args, Streams& streams) {
  if (!args.has("--json")) {
    streams.out << "hotlap " << hotlap_version() << '\n';
    return int{kExitSuccess};
  }
  JsonWriter json;
  json.begin_object().field("schema", 1).field("version", hotlap_version()).end_object();
  streams.out << json.take() << '\n';
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_version{.name = "version",
                                                   .summary = "Print the version of this program.",
                                                   .example = "hotlap version --json",
                                                   .flags = kFlags,
                                                   .run = run};

}  // namespace hotlap
