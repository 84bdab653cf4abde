// Record a job: the main command.
#include <array>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/rule_flags.h"
#include "record/observers.h"
#include "record/profile_plan.h"
#include "record/supervisor.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    kNameFlag,
    kIntervalFlag,
    kPriceFlag,
    FlagSpec{.name = "--steps",
             .type = FlagType::kInteger,
             .placeholder = "N",
             .help = "training steps of the whole job, for the time and money that are left",
             .min = 1,
             .max = 1e12},
    kInstanceFlag,
    FlagSpec{
        .name = "--grace",
        .type = FlagType::kDuration,
        .placeholder = "30s",
        .help = "kill the job when it has not ended so long after SIGTERM, or at a second SIGTERM; default: never"},
    FlagSpec{.name = "--download",
             .type = FlagType::kText,
             .placeholder = "CMD",
             .help = "run CMD (by /bin/sh) before the job, as a phase of its own; if it fails the job is not started"},
    FlagSpec{.name = "--upload",
             .type = FlagType::kText,
             .placeholder = "CMD",
             .help = "run CMD (by /bin/sh) after the job, as a phase of its own"},
    FlagSpec{.name = "--profile",
             .type = FlagType::kText,
             .placeholder = "WHEN",
             .help = "look into some steps with the framework's profiler: steps=10:3, every=10min,steps=2, on-outlier, "
                     "functions=20hz or off (docs/reference/profile.md); default: only when asked by hotlap set"},
    FlagSpec{.name = "--run-id", .type = FlagType::kText, .placeholder = "ID", .help = "noted with the run"},
    kConfigFlag,
    kRuleFlag,
    kRuleConfigFlag,
    FlagSpec{.name = "--horovod-timeline",
             .help = "have Horovod write its timeline into the run's folder (HOROVOD_TIMELINE)"},
    FlagSpec{.name = "--observe",
             .type = FlagType::kText,
             .placeholder = "WHAT",
             .help = "have native observers loaded into the job: nvtx, nccl, kernels, operators "
                     "(docs/reference/observers.md)"},
    FlagSpec{.name = "--no-hook", .help = "record the machine only, nothing inside Python"},
    kQuietFlag};
constexpr std::array kPositionals{
    PositionalSpec{.name = "COMMAND", .help = "the job's own command line", .is_required = true, .takes_rest = true}};

// What the watcher takes over from our own command line: it runs in the same folder, but that may change.
std::vector<std::string> watcher_words(const Args& args) {
  std::vector<std::string> words;
  for (const std::string_view flag : {kConfigFlag.name, kRuleConfigFlag.name}) {
    if (const auto file = args.text(flag)) {
      std::error_code unknown;
      words.insert(words.end(), {std::string(flag), std::filesystem::absolute(*file, unknown).string()});
    }
  }
  if (const auto given = args.values.find(kRuleFlag.name); given != args.values.end()) {
    for (const std::string& one : given->second) words.insert(words.end(), {std::string(kRuleFlag.name), one});
  }
  return words;
}

Result<int> run(const Args& args, Streams&) {
  HOTLAP_TRY_ASSIGN(const Config config, config_with_rules(args));
  HOTLAP_TRY_ASSIGN(RunOptions options, run_options(args, config));
  options.command = args.positional("COMMAND");
  options.wants_hook &= !args.has("--no-hook");
  options.wants_horovod_timeline |= args.has("--horovod-timeline");
  options.watcher_words = watcher_words(args);
  if (const auto when = args.text("--profile")) {
    HOTLAP_TRY_ASSIGN(const ProfilePlan plan, parse_profile_plan(*when, false));
    options.profile = profile_text(plan);
  }
  if (const auto observers = args.text("--observe")) {
    HOTLAP_TRY_ASSIGN(options.observers, parse_observers(*observers));
    for (const ObserverSpec* observer : options.observers) {
      if (observer->excludes_profile && args.text("--profile").value_or("off") != "off") {
        return Error{ErrorCode::kInvalidInput,
                     format("--observe {} does not go together with --profile: both need CUPTI", observer->name)};
      }
      Result<std::filesystem::path> library = find_observer(*observer);
      if (!library.ok()) return std::move(library).error().with_context(format("--observe {}", observer->name));
    }
  }
  options.run_id = args.text("--run-id");
  options.steps_total = args.integer("--steps");
  options.grace_ns = args.duration_ns("--grace");
  options.download = args.text("--download");
  options.upload = args.text("--upload");
  return run_supervised(options);
}

}  // namespace

extern constinit const CommandSpec command_run{
    .name = "run",
    .summary = "Run a training job and record it.",
    .example = "hotlap run -- python train.py --epochs 3",
    .help =
        "The job's exit code, output, terminal and signals stay its own. What hotlap says goes to stderr, marked "
        "\"hotlap:\". A mistake on the command line or in a configuration file is told before the job starts, with "
        "exit "
        "code 2.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
