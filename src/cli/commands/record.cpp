// Record what already runs: a process tree, or the machine.
#include <array>
#include <filesystem>
#include <ostream>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "record/identity.h"
#include "record/recorder_process.h"
#include "record/run_plan.h"
#include "store/home.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{FlagSpec{.name = "--pid",
                                     .type = FlagType::kInteger,
                                     .placeholder = "P",
                                     .help = "a process and its children",
                                     .min = 1,
                                     .max = 4194304},
                            FlagSpec{.name = "--host", .help = "the machine alone"},
                            kNameFlag,
                            kIntervalFlag,
                            kPriceFlag,
                            kInstanceFlag,
                            kConfigFlag,
                            kQuietFlag};

// Nobody else would: a run that says "running" and is not.
void note_failure(RunFolder& folder) {
  folder.reload().ok();
  RunInfo info = folder.info();
  info.status = RunStatus::kUnknown;
  info.end_wall_ns = system_clock().read().wall_ns;
  folder.update(info).ok();
}

Result<int> run(const Args& args, Streams& streams) {
  const auto pid = args.integer("--pid");
  if (pid.has_value() == args.has("--host")) {
    return Error{ErrorCode::kInvalidInput, "give either --pid P or --host"};
  }
  HOTLAP_TRY_ASSIGN(const Config config, config_of(args));
  HOTLAP_TRY_ASSIGN(const RunOptions options, run_options(args, config));
  const std::int64_t interval_ns = options.interval_ns;
  RunInfo info;
  if (pid) {
    HOTLAP_TRY_ASSIGN(info, describe_process(static_cast<std::int32_t>(*pid), interval_ns));
  } else {
    info = describe_run({}, interval_ns);
    info.name = "host";
  }
  take_options(options, info);
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::create(home, info));
  remember_node_name(system_host(), home);
  const bool is_quiet = options.is_quiet;
  if (!is_quiet) {
    streams.err << format("hotlap: recording {} as {}; Ctrl-C ends it\n",
                          pid ? format("process {} ({})", *pid, strip_control(info.name)) : "this machine", info.id);
  }
  RecorderTask task;
  task.run_folder = folder.path();
  task.job_pid = info.job_pid;
  task.interval_ns = interval_ns;
  task.ends_by_signal = true;
  const Result<RecorderReport> report = record_until_end(task);
  if (!report.ok()) {
    note_failure(folder);
    return Error(report.error());
  }
  if (!is_quiet && !report->note.empty()) streams.err << format("hotlap: {}\n", strip_control(report->note));
  if (!is_quiet) streams.err << format("hotlap: recorded {}\n", report->folder.native());
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_record{
    .name = "record",
    .summary = "Record a process that already runs, or the machine.",
    .example = "hotlap record --pid 4711",
    .help =
        "Without the hook: what the machine and the processes did, not what the steps did. Ends with the process, or "
        "by Ctrl-C.",
    .flags = kFlags,
    .run = run};

}  // namespace hotlap
