// Change how a live run is recorded, and have it look into its steps.
#include <array>
#include <optional>
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "record/control.h"
#include "record/profile_plan.h"
#include "record/recorder.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{FlagSpec{.name = "--interval",
                                     .type = FlagType::kDuration,
                                     .placeholder = "100ms",
                                     .help = "between samples, from now on",
                                     .min = static_cast<double>(kIntervalNsMin),
                                     .max = static_cast<double>(kIntervalNsMax)},
                            FlagSpec{.name = "--profile",
                                     .type = FlagType::kText,
                                     .placeholder = "WHEN",
                                     .help = "look into steps: now, now,steps=5, every=10min, on-outlier, "
                                             "functions=20hz or off (docs/reference/profile.md)"}};
constexpr std::array kPositionals{
    PositionalSpec{.name = "RUN", .help = "id, start of an id, name, path or last", .names_runs = true}};

Result<int> run(const Args& args, Streams& streams) {
  const auto interval_ns = args.duration_ns("--interval");
  std::optional<std::uint64_t> profile;
  if (const auto when = args.text("--profile")) {
    HOTLAP_TRY_ASSIGN(const ProfilePlan plan, parse_profile_plan(*when, true));
    profile = profile_argument(plan);
  }
  if (!interval_ns && !profile) return Error{ErrorCode::kInvalidInput, "nothing to set: give --interval or --profile"};
  const std::vector<std::string>& named = args.positional("RUN");
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, named.empty() ? "last" : named[0]));
  if (interval_ns) {
    if (Result<void> done = request_interval(folder.path(), *interval_ns); !done.ok()) {
      return std::move(done).error().with_context(folder.info().id);
    }
    streams.err << format("hotlap: {} is sampled every {} from now on\n", folder.info().id,
                          format_duration(*interval_ns));
  }
  if (profile) {
    if (Result<void> done = request_profile(folder.path(), *profile); !done.ok()) {
      return std::move(done).error().with_context(folder.info().id);
    }
    streams.err << format("hotlap: {} is asked; what became of it: hotlap show {}\n", folder.info().id,
                          folder.info().id);
  }
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_set{.name = "set",
                                               .summary = "Change how a live run is recorded.",
                                               .example = "hotlap set last --interval 100ms",
                                               .flags = kFlags,
                                               .positionals = kPositionals,
                                               .run = run};

}  // namespace hotlap
