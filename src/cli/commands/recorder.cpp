// The recorder as a process of its own, started by `hotlap run`.
#include <array>
#include <ostream>

#include "cli/command.h"
#include "record/recorder_process.h"

namespace hotlap {
namespace {

constexpr int kChannelFd = 3;  // record/spawn.h hands descriptors over from 3 on

constexpr std::array kFlags{
    FlagSpec{.name = "--folder", .type = FlagType::kText, .placeholder = "FOLDER", .help = "the run's folder"},
    FlagSpec{
        .name = "--rings", .type = FlagType::kText, .placeholder = "FOLDER", .help = "where hooks put their rings"},
    FlagSpec{.name = "--no-hook", .help = "those rings are of native observers"},
    FlagSpec{.name = "--job", .type = FlagType::kInteger, .placeholder = "PID", .help = "the job; 0: told later"},
    FlagSpec{.name = "--supervisor", .type = FlagType::kInteger, .placeholder = "PID", .help = "who started us"},
    FlagSpec{.name = "--interval-ns", .type = FlagType::kInteger, .placeholder = "NS", .help = "between samples"},
    FlagSpec{.name = "--gap-from", .type = FlagType::kInteger, .placeholder = "NS", .help = "another recorder's end"}};

Result<int> run(const Args& args, Streams&) {
  RecorderTask task;
  task.run_folder = args.text("--folder").value_or("");
  task.ring_folder = args.text("--rings").value_or("");
  task.has_hook = !args.has("--no-hook");
  task.job_pid = static_cast<std::int32_t>(args.integer("--job").value_or(0));
  task.supervisor_pid = static_cast<std::int32_t>(args.integer("--supervisor").value_or(0));
  task.interval_ns = args.integer("--interval-ns").value_or(0);
  task.gap_from_mono_ns = args.integer("--gap-from").value_or(-1);
  task.channel_fd = kChannelFd;
  const Result<RecorderReport> report = record_until_end(task);
  if (!report.ok()) return Error(report.error());
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_recorder{.name = "_recorder",
                                                    .summary = "The recorder of a run.",
                                                    .example = "hotlap _recorder --folder F",
                                                    .flags = kFlags,
                                                    .is_hidden = true,
                                                    .run = run};

}  // namespace hotlap
