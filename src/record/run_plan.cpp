#include "record/run_plan.h"

#include <unistd.h>

#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "base/version.h"
#include "collect/process_files.h"
#include "record/hook_files.h"
#include "record/redact.h"
#include "store/home.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

void plan_runtime(RunPlan& plan, const LauncherPlace& place) {
  Result<fs::path> home = runtime_home();
  if (!home.ok()) {
    plan.notes.push_back(format("no hook: {}", home.error().message));
    return;
  }
  sweep_runtime_home(*home);
  const std::string name =
      place.is_one_of_many() ? format("job-{:016x}", hash_on(kHashStart, place.election_key)) : "run-" + plan.info.id;
  Result<RuntimeFolder> folder = RuntimeFolder::claim(*home, name, plan.info.id);
  if (!folder.ok()) {
    plan.notes.push_back(format("no hook: {}", folder.error().message));
    return;
  }
  plan.runtime = std::move(*folder);
  plan.info.id = plan.runtime->run_id();
  plan.records = plan.runtime->leads();
}

// Told once per home: what is recorded there may be gone before anybody reads it.
void note_ephemeral_home(RunPlan& plan) {
  const FilesystemKind kind = filesystem_kind(plan.home);
  if (kind != FilesystemKind::kMemory && kind != FilesystemKind::kOverlay) return;
  const fs::path told = plan.home / "told-ephemeral";
  if (system_host().exists(told.native())) return;
  // Where nothing can be kept that is the news, not how long it would stay.
  if (!make_private_folders(plan.home).ok() || !write_private_file(told, "").ok()) return;
  plan.notes.push_back(format("runs are kept in {}, which goes away with {}: set HOTLAP_HOME to a folder that stays",
                              plan.home.native(),
                              kind == FilesystemKind::kMemory ? "the machine's memory" : "this container"));
}

void plan_hook(RunPlan& plan, bool wants_hook, const std::string& profile) {
  plan.delivery.run_id = plan.info.id;
  const bool is_off = EnvironmentView(environ).get("HOTLAP") == "0";
  if (!wants_hook || is_off || !plan.runtime) return;
  Result<fs::path> folder = lay_out_hook(plan.home);
  // The home may be read-only; the package is small enough for the runtime folder.
  if (!folder.ok()) folder = lay_out_hook(plan.runtime->path());
  if (!folder.ok()) {
    plan.notes.push_back(format("no hook: {}", folder.error().message));
    return;
  }
  plan.delivery.hook_folder = folder->native();
  plan.delivery.ring_folder = plan.runtime->rings().native();
  plan.delivery.profile = profile;
  if (!plan.home.empty()) plan.delivery.profile_folder = plan.home / "runs" / plan.info.id / kProfileFolder;
}

// A variable that is set already belongs to another tool (Nsight Systems), which goes first.
void plan_observers(RunPlan& plan, const std::vector<const ObserverSpec*>& observers) {
  const EnvironmentView environment(environ);
  if (observers.empty() || environment.get("HOTLAP") == "0") return;
  if (!plan.runtime) {
    plan.notes.push_back("no native observers: there is no folder for their rings");
    return;
  }
  for (const ObserverSpec* observer : observers) {
    const Result<fs::path> library = find_observer(*observer);
    if (!library.ok()) {
      plan.notes.push_back(format("no observer {}: {}", observer->name, library.error().message));
    } else if (!environment.get(observer->variable).empty()) {
      plan.notes.push_back(
          format("no observer {}: {} is set already, to another tool", observer->name, observer->variable));
    } else if (observer->needs_hook && plan.delivery.ring_folder.empty()) {
      plan.notes.push_back(format("no observer {}: it is loaded by the hook, which is off", observer->name));
    } else {
      plan.delivery.observer_folder = plan.runtime->rings().native();
      plan.delivery.observer_variables.emplace_back(observer->variable, library->native());
    }
  }
}

// Horovod's coordinator opens the file when it is initialised; the run's folder is there by then.
void plan_horovod(RunPlan& plan) {
  constexpr std::string_view kVariable = "HOROVOD_TIMELINE";
  if (!EnvironmentView(environ).get(kVariable).empty()) {
    plan.notes.push_back(format("{} is set already: its file is left where the job wants it", kVariable));
  } else if (!plan.home.empty()) {
    const fs::path file = plan.home / "runs" / plan.info.id / "horovod_timeline.json";
    plan.environment.push_back(format("{}={}", kVariable, file.native()));
  }
}

}  // namespace

void take_options(const RunOptions& options, RunInfo& info) {
  if (options.name) info.name = to_valid_utf8(*options.name);
  if (options.run_id) info.join_keys["run-id"] = *options.run_id;
  if (options.instance_type) info.join_keys["instance"] = *options.instance_type;
  info.price = options.price;
}

RunInfo describe_run(const std::vector<std::string>& command, std::int64_t interval_ns) {
  RunInfo info;
  info.id = new_ulid(system_clock());
  info.status = RunStatus::kRunning;
  info.command = redact_words(command);
  std::error_code failed;
  info.working_directory = fs::current_path(failed).native();
  info.script = redact_text(script_of(command, info.working_directory));
  info.name = short_name_of(info.script);
  info.node = node_name(system_host());
  info.boot_id = boot_id(system_host());
  info.hotlap_version = hotlap_version();
  info.start_wall_ns = system_clock().read().wall_ns;
  info.interval_ns = interval_ns;
  return info;
}

Result<RunInfo> describe_process(std::int32_t pid, std::int64_t interval_ns) {
  const Host& host = system_host();
  const Result<std::string> words = host.read_text(format("/proc/{}/cmdline", pid));
  if (!words.ok()) return Error{ErrorCode::kNotFound, format("there is no process {}", pid)};
  const auto stat = read_process_stat(host, pid);
  if (stat && stat->state == ProcessState::kZombie) {
    return Error{ErrorCode::kNotFound, format("process {} has ended; its parent has not asked how", pid)};
  }
  std::vector<std::string> command;
  for (const std::string_view word : split(*words, '\0')) command.emplace_back(word);
  while (!command.empty() && command.back().empty()) command.pop_back();
  RunInfo info = describe_run(command, interval_ns);
  note_job(host, pid, info);
  Result<std::string> folder = host.read_link(format("/proc/{}/cwd", pid));
  if (folder.ok()) {
    info.working_directory = *folder;
    info.script = redact_text(script_of(command, *folder));
  }
  info.name = command.empty() ? format("process {}", pid) : short_name_of(info.script);
  return info;
}

RunPlan plan_run(const RunOptions& options) {
  RunPlan plan;
  plan.info = describe_run(options.command, options.interval_ns);
  plan.info.environment = recorded_environment(environ);
  const LauncherPlace place = launcher_place(EnvironmentView(environ));
  plan.info.join_keys = place.join_keys;
  plan.info.attempt = place.attempt;
  take_options(options, plan.info);
  if (options.steps_total) plan.info.environment[std::string(kStepsVariable)] = format("{}", *options.steps_total);

  Result<fs::path> home = hotlap_home();
  if (home.ok()) {
    plan.home = std::move(*home);
  } else {
    plan.records = false;
    plan.notes.push_back(format("not recorded: {}", home.error().message));
  }
  if (plan.records) {
    remember_node_name(system_host(), plan.home);
    note_ephemeral_home(plan);
  }
  const bool could_record = plan.records;
  plan_runtime(plan, place);
  plan.records = plan.records && could_record;
  plan_hook(plan, options.wants_hook, options.profile);
  plan_observers(plan, options.observers);
  plan.environment = job_environment(environ, plan.delivery);
  if (options.wants_horovod_timeline) plan_horovod(plan);
  return plan;
}

}  // namespace hotlap
