// Change how a live run is recorded.
#include <array>
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "record/control.h"
#include "record/recorder.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{FlagSpec{.name = "--interval",
                                     .type = FlagType::kDuration,
                                     .placeholder = "100ms",
                                     .help = "between samples, from now on",
                                     .min = static_cast<double>(kIntervalNsMin),
                                     .max = static_cast<double>(kIntervalNsMax)}};
constexpr std::array kPositionals{
    PositionalSpec{.name = "RUN", .help = "id, start of an id, name, path or last", .names_runs = true}};

Result<int> run(const Args& args, Streams& streams) {
  const auto interval_ns = args.duration_ns("--interval");
  if (!interval_ns) return Error{ErrorCode::kInvalidInput, "nothing to set: give --interval"};
  const std::vector<std::string>& named = args.positional("RUN");
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, named.empty() ? "last" : named[0]));
  if (Result<void> done = request_interval(folder.path(), *interval_ns); !done.ok()) {
    return std::move(done).error().with_context(folder.info().id);
  }
  streams.err << format("hotlap: {} is sampled every {} from now on\n", folder.info().id,
                        format_duration(*interval_ns));
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_set{.name = "set",
                                               .summary = "Change the sampling interval of a live run.",
                                               .example = "hotlap set last --interval 100ms",
                                               .flags = kFlags,
                                               .positionals = kPositionals,
                                               .run = run};

}  // namespace hotlap
