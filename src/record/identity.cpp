#include "record/identity.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "collect/process_files.h"
#include "model/launchers.h"
#include "store/home.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  utsname found{};
  return ::uname(&found) == 0 ? std::string(found.nodename) : std::string("unknown");
}

constexpr std::size_t kNodeFileBytesMax = 4096;

fs::path node_file(const fs::path& home) { return home / "node"; }

std::string shown_name(std::string_view untrusted) { return strip_control(to_valid_utf8(untrusted.substr(0, 255))); }

// By the environment or the cloud; empty when neither says.
std::string given_node_name(const Host& host) {
  const EnvironmentView environment(environ);
  for (const std::string_view name : {"HOTLAP_NODE", "SLURMD_NODENAME", "SM_CURRENT_HOST"}) {
    if (const std::string_view given = environment.get(name); !given.empty()) return shown_name(given);
  }
  // EC2 puts its instance id there, readable by all.
  const std::string tag(trim(host.read_text("/sys/class/dmi/id/board_asset_tag").value_or(std::string())));
  return tag.starts_with("i-") ? tag : std::string();
}

std::string remembered_node_name(const fs::path& home) {
  if (is_network_filesystem(home)) return {};
  const std::string text = read_regular_file(node_file(home), kNodeFileBytesMax).value_or(std::string());
  return shown_name(trim(text));
}

std::int32_t number_or(std::string_view text, std::int32_t fallback) {
  const auto number = parse_i64(text);
  return number && *number >= 0 && *number <= INT32_MAX ? static_cast<std::int32_t>(*number) : fallback;
}

constexpr std::array<std::string_view, 13> kJoinVariables{
    "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID",         "SLURM_STEP_ID",     "SLURM_RESTART_COUNT",
    "SLURM_ARRAY_JOB_ID",  "SLURM_ARRAY_TASK_ID",  "PMIX_NAMESPACE",    "OMPI_MCA_ess_base_jobid",
    "FLUX_JOB_ID",         "SM_TRAINING_JOB_NAME", "TRAINING_JOB_NAME", "MASTER_ADDR",
    "MASTER_PORT"};

bool is_python(std::string_view program) {
  if (const auto slash = program.rfind('/'); slash != std::string_view::npos) program.remove_prefix(slash + 1);
  return program.starts_with("python") || program.starts_with("pypy");
}

}  // namespace

std::string new_ulid(const Clock& clock) {
  std::array<std::uint64_t, 2> random{};
  if (::getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    random = {static_cast<std::uint64_t>(clock.mono_ns()), static_cast<std::uint64_t>(::getpid())};
  }
  return make_ulid(clock.read().wall_ns, random[0], random[1]);
}

std::string_view EnvironmentView::get(std::string_view name) const {
  for (const char* const* entry = entries_; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name)) {
      return text.substr(name.size() + 1);
    }
  }
  return {};
}

std::uint64_t hash_on(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

std::string node_name(const Host& host) {
  if (std::string given = given_node_name(host); !given.empty()) return given;
  const Result<fs::path> home = hotlap_home();
  std::string remembered = home.ok() ? remembered_node_name(*home) : std::string();
  return remembered.empty() ? host_name() : remembered;
}

void remember_node_name(const Host& host, const fs::path& home) {
  if (!given_node_name(host).empty() || is_network_filesystem(home) || !remembered_node_name(home).empty()) return;
  if (make_private_folders(home).ok()) static_cast<void>(write_private_file(node_file(home), host_name() + "\n").ok());
}

std::string boot_id(const Host& host) {
  return std::string(trim(host.read_text("/proc/sys/kernel/random/boot_id").value_or(std::string())));
}

void note_job(const Host& host, std::int32_t pid, RunInfo& info) {
  info.job_pid = pid;
  info.boot_id = boot_id(host);
  info.job_start_ticks.reset();
  if (const auto stat = read_process_stat(host, pid))
    info.job_start_ticks = static_cast<std::int64_t>(stat->start_ticks);
}

bool is_job_alive(const Host& host, const RunInfo& info) {
  if (info.job_pid <= 0 || (!info.boot_id.empty() && info.boot_id != boot_id(host))) return false;
  const std::optional<ProcessStat> stat = read_process_stat(host, info.job_pid);
  // Another user's may be hidden from us.
  if (!stat) return ::kill(info.job_pid, 0) == 0 || errno == EPERM;
  return stat->state != ProcessState::kZombie &&
         (!info.job_start_ticks || stat->start_ticks == static_cast<std::uint64_t>(*info.job_start_ticks));
}

std::map<std::string, std::string> host_facts(const Host& host) {
  std::map<std::string, std::string> facts;
  std::size_t cores = 0;
  const std::string cpuinfo = host.read_text("/proc/cpuinfo", std::size_t{16} << 20).value_or(std::string());
  std::string_view rest(cpuinfo);
  std::string_view line;
  while (next_line(rest, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, colon));
    if (key == "processor") ++cores;
    if (key == "model name") facts.emplace("cpu.model", strip_control(to_valid_utf8(trim(line.substr(colon + 1)))));
  }
  if (cores > 0) facts["cpu.count"] = format("{}", cores);
  const std::string meminfo = host.read_text("/proc/meminfo").value_or(std::string());
  std::string_view total(meminfo);
  if (next_word(total) == "MemTotal:") {
    if (const auto kib = parse_u64(next_word(total))) facts["memory.bytes"] = format("{}", *kib * 1024);
  }
  const std::string kernel(trim(host.read_text("/proc/sys/kernel/osrelease").value_or(std::string())));
  if (!kernel.empty()) facts["kernel"] = kernel;
  // AMD's are not counted here: with its driver the number stays unknown rather than 0.
  const Result<std::vector<std::string>> gpus = host.list("/proc/driver/nvidia/gpus");
  if (gpus.ok()) {
    facts["gpu.count"] = format("{}", gpus->size());
  } else if (!host.exists("/sys/class/kfd")) {
    facts["gpu.count"] = "0";
  }
  return facts;
}

LauncherPlace launcher_place(const EnvironmentView& environment) {
  LauncherPlace place;
  for (const Launcher& launcher : kLaunchers) {
    if (environment.get(launcher.proof).empty()) continue;
    place.rank = number_or(environment.get(launcher.rank), -1);
    if (place.rank < 0) continue;
    place.launcher = launcher.name;
    place.local_rank = number_or(environment.get(launcher.local_rank), -1);
    place.world_size = number_or(environment.get(launcher.world_size), -1);
    break;
  }
  for (const std::string_view name : kJoinVariables) {
    if (const std::string_view value = environment.get(name); !value.empty()) place.join_keys.emplace(name, value);
  }
  for (const std::string_view name : {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT", "SM_RESTART_COUNT"}) {
    if (const auto count = number_or(environment.get(name), -1); count >= 0) place.attempt = count + 1;
  }
  if (place.rank >= 0) {
    std::string key;
    for (const auto& [name, value] : place.join_keys) key += format("{}={}\n", name, value);
    // Without any of them two jobs on one node could not be told apart.
    if (!key.empty()) place.election_key = format("{}{} {}", key, place.launcher, place.world_size);
  }
  return place;
}

std::string script_of(std::span<const std::string> command, std::string_view working_directory) {
  if (command.empty()) return {};
  const auto absolute = [&](const std::string& path) {
    const std::filesystem::path given(path);
    if (given.is_absolute()) return given.lexically_normal().native();
    return (std::filesystem::path(working_directory) / given).lexically_normal().native();
  };
  // The first script that is named, whatever launches it: torchrun --nproc 2 train.py, env X=1 python train.py.
  for (const std::string& word : command) {
    if (word.ends_with(".py") && !word.starts_with("-")) return absolute(word);
  }
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    if (command[i] == "-m" && i > 0) return format("-m {}", command[i + 1]);
  }
  if (is_python(command[0])) {
    for (std::size_t i = 1; i < command.size(); ++i) {
      if (command[i] == "-c") return "-c";
      if (!command[i].starts_with("-")) return absolute(command[i]);
    }
  }
  return command[0].find('/') == std::string::npos ? command[0] : absolute(command[0]);
}

std::string short_name_of(std::string_view script) {
  if (script.starts_with("-m ")) return std::string(script.substr(3));
  if (script == "-c") return "python -c";
  const auto slash = script.rfind('/');
  return std::string(slash == std::string_view::npos ? script : script.substr(slash + 1));
}

}  // namespace hotlap
