// The watcher as a process of its own, started by `hotlap run`: looks at the recording and says what it finds.
#include <array>
#include <ostream>

#include "cli/command.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--folder", .type = FlagType::kText, .placeholder = "FOLDER", .help = "the run's folder"},
    FlagSpec{.name = "--live", .help = "while the job runs"},
    FlagSpec{.name = "--final", .help = "after the job's end"}};

Result<int> run(const Args& args, Streams& streams) {
  if (!args.has("--final")) return int{kExitSuccess};
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::open(args.text("--folder").value_or("")));
  streams.err << "hotlap: recorded run " << folder.info().id << "\n";
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_watch{.name = "_watch",
                                                 .summary = "The watcher of a run.",
                                                 .example = "hotlap _watch --folder F --final",
                                                 .flags = kFlags,
                                                 .is_hidden = true,
                                                 .run = run};

}  // namespace hotlap
