// Record what already runs: a process tree, or the machine.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "record/recorder.h"
#include "record/recorder_process.h"
#include "record/run_plan.h"
#include "store/home.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--pid",
             .type = FlagType::kInteger,
             .placeholder = "P",
             .help = "a process and its children",
             .min = 1,
             .max = 4194304},
    FlagSpec{.name = "--host", .help = "the machine alone"},
    FlagSpec{.name = "--name", .type = FlagType::kText, .placeholder = "NAME", .help = "name of the run"},
    FlagSpec{.name = "--interval",
             .type = FlagType::kDuration,
             .placeholder = "500ms",
             .help = "between samples",
             .min = static_cast<double>(kIntervalNsMin),
             .max = static_cast<double>(kIntervalNsMax)},
    FlagSpec{.name = "--price",
             .type = FlagType::kNumber,
             .placeholder = "USD/H",
             .help = "what the machine costs per hour",
             .min = 0,
             .max = 1e6},
    FlagSpec{.name = "--quiet", .help = "print nothing"}};

Result<int> run(const Args& args, Streams& streams) {
  const auto pid = args.integer("--pid");
  if (pid.has_value() == args.has("--host")) {
    return Error{ErrorCode::kInvalidInput, "give either --pid P or --host"};
  }
  const std::int64_t interval_ns = args.duration_ns("--interval").value_or(kIntervalNsDefault);
  RunInfo info;
  if (pid) {
    HOTLAP_TRY_ASSIGN(info, describe_process(static_cast<std::int32_t>(*pid), interval_ns));
  } else {
    info = describe_run({}, interval_ns);
    info.name = "host";
  }
  if (const auto name = args.text("--name")) info.name = *name;
  if (const auto price = args.number("--price")) info.price = Price{.per_hour = *price, .source = "--price"};
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::create(home, info));
  remember_node_name(system_host(), home);
  const bool is_quiet = args.has("--quiet");
  if (!is_quiet) {
    streams.err << format("hotlap: recording {} as {}; Ctrl-C ends it\n",
                          pid ? format("process {} ({})", *pid, strip_control(info.name)) : "this machine", info.id);
  }
  RecorderTask task;
  task.run_folder = folder.path();
  task.job_pid = info.job_pid;
  task.interval_ns = interval_ns;
  task.ends_by_signal = true;
  HOTLAP_TRY_ASSIGN(const RecorderReport report, record_until_end(task));
  if (!is_quiet && !report.note.empty()) streams.err << format("hotlap: {}\n", strip_control(report.note));
  if (!is_quiet) streams.err << format("hotlap: recorded {}\n", report.folder.native());
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
