// The machine, and what a job may use of it: container, scheduler, permissions, clocks.
#include <sys/timex.h>
#include <sys/utsname.h>

#include <array>
#include <optional>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/doctor/doctor.h"
#include "record/identity.h"

namespace hotlap {
namespace {

constexpr std::string_view kMachine = "machine";
constexpr std::string_view kClocks = "clocks";

std::optional<double> reading(const Readings& readings, std::string_view name) {
  const auto found = readings.find(std::string(name));
  return found == readings.end() ? std::nullopt : found->second.number();
}

std::string line_of(const Host& host, std::string_view file) {
  const Result<std::string> text = host.read_text(file, 4096);
  return text.ok() ? strip_control(trim(*text)) : std::string();
}

// Which kind of container this is, as far as it shows; empty: none.
std::string container(const Host& host, const EnvironmentView& environment) {
  if (!environment.get("KUBERNETES_SERVICE_HOST").empty()) return "Kubernetes";
  if (host.exists("/.dockerenv")) return "Docker";
  if (host.exists("/run/.containerenv")) return "Podman";
  if (!environment.get("APPTAINER_NAME").empty()) return "Apptainer";
  if (!environment.get("SINGULARITY_NAME").empty()) return "Singularity";
  return line_of(host, "/run/systemd/container");
}

void check_cores(const Readings& readings, Checks& out) {
  const auto online = reading(readings, "cpu.count");
  const auto usable = reading(readings, "cpu.usable.cores");
  const auto quota = reading(readings, "cgroup.cpu.limit.cores");
  if (!online) return;
  std::string text = format("{:.0f} online", *online);
  if (usable && *usable < *online) text += format(", {:.3g} usable", *usable);
  if (quota) text += format(" (quota {:.3g})", *quota);
  Check check{.area = kMachine, .name = "cores", .health = Health::kGood, .text = text, .mend = {}};
  if (usable && *usable < *online) {
    check.health = Health::kNote;
    check.mend = "\"busy\" is of what is usable; size loader workers and threads by that, not by the machine";
  }
  out.push_back(std::move(check));
}

void check_memory(const Readings& readings, Checks& out) {
  const auto total = reading(readings, "memory.total.bytes");
  const auto limit = reading(readings, "cgroup.memory.limit.bytes");
  if (!total && !limit) return;
  std::string text = total ? format_bytes(*total) : "size not known";
  if (limit) text += format(", limit {}", format_bytes(*limit));
  out.push_back({.area = kMachine, .name = "memory", .health = Health::kGood, .text = text, .mend = {}});
}

void check_shm(const Host& host, const std::string& container_kind, Checks& out) {
  constexpr std::uint64_t kSmallBytes = std::uint64_t{1} << 30U;
  const Result<FilesystemUsage> usage = host.filesystem_usage("/dev/shm");
  if (!usage.ok()) {
    out.push_back({.area = kMachine,
                   .name = "/dev/shm",
                   .health = Health::kWarning,
                   .text = "not there: PyTorch's loader workers pass batches through it",
                   .mend = "mount -t tmpfs tmpfs /dev/shm"});
    return;
  }
  Check check{.area = kMachine,
              .name = "/dev/shm",
              .health = Health::kGood,
              .text = format("{} of {} free", format_bytes(static_cast<double>(usage->available_bytes)),
                             format_bytes(static_cast<double>(usage->total_bytes))),
              .mend = {}};
  if (usage->total_bytes < kSmallBytes) {
    check.health = Health::kWarning;
    check.text += ": small for PyTorch's loader workers, which pass batches through it";
    check.mend = container_kind.empty()           ? "mount -o remount,size=8g /dev/shm"
                 : container_kind == "Kubernetes" ? "mount an emptyDir with medium: Memory at /dev/shm"
                                                  : "start the container with --shm-size=8g";
  }
  out.push_back(std::move(check));
}

void check_slurm(const EnvironmentView& environment, const Readings& readings, Checks& out) {
  const std::string_view job = environment.get("SLURM_JOB_ID");
  if (job.empty()) return;
  Check check{.area = kMachine,
              .name = "SLURM",
              .health = Health::kNote,
              .text = format("job {}", strip_control(job)),
              .mend = {}};
  const auto usable = reading(readings, "cpu.usable.cores");
  const auto promised = parse_f64(environment.get("SLURM_CPUS_PER_TASK"));
  if (usable && promised && *usable < *promised) {
    check.health = Health::kWarning;
    check.text += format(": {:.3g} cores are usable, {:.0f} were asked for per task", *usable, *promised);
    check.mend = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK before srun (srun no longer inherits it)";
  }
  out.push_back(std::move(check));
}

void check_permissions(const Host& host, Checks& out) {
  const std::string mounts = host.read_text("/proc/self/mounts").value_or(std::string());
  std::string_view rest = mounts;
  std::string_view line;
  while (next_line(rest, line)) {
    const std::string_view device = next_word(line);
    const std::string_view place = next_word(line);
    if (device != "proc" || place != "/proc") continue;
    if (line.find("hidepid=") == std::string_view::npos || line.find("hidepid=0") != std::string_view::npos) continue;
    out.push_back({.area = kMachine,
                   .name = "/proc",
                   .health = Health::kNote,
                   .text = "mounted with hidepid: processes of other users cannot be recorded",
                   .mend = "record as the user that runs the job, or as root"});
  }
  const std::string paranoid = line_of(host, "/proc/sys/kernel/perf_event_paranoid");
  if (paranoid.empty()) return;
  out.push_back({.area = kMachine,
                 .name = "perf",
                 .health = Health::kNote,
                 .text = format("perf_event_paranoid is {}; nothing that hotlap records needs it", paranoid),
                 .mend = {}});
}

// Time of one reading of the clock that the hook reads several times a step.
double clock_read_ns() {
  constexpr int kReads = 20'000;
  const std::int64_t begin_ns = system_clock().mono_ns();
  for (int i = 0; i < kReads; ++i) (void)system_clock().mono_ns();
  return static_cast<double>(system_clock().mono_ns() - begin_ns) / kReads;
}

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::kGood: return "ok";
    case Health::kNote: return "note";
    case Health::kAbsent: return "none";
    case Health::kWarning: return "warning";
    case Health::kBroken: return "broken";
  }
  return {};
}

void check_machine(const Host& host, const Readings& readings, const char* const* environment, Checks& out) {
  const EnvironmentView variables(environment);
  utsname system{};
  if (::uname(&system) == 0) {
    out.push_back({.area = kMachine,
                   .name = "system",
                   .health = Health::kGood,
                   .text = format("{}, Linux {}, {}", node_name(host), system.release, system.machine),
                   .mend = {}});
  }
  check_cores(readings, out);
  check_memory(readings, out);
  const std::string kind = container(host, variables);
  if (!kind.empty()) {
    out.push_back({.area = kMachine, .name = "container", .health = Health::kNote, .text = kind, .mend = {}});
  }
  check_slurm(variables, readings, out);
  check_shm(host, kind, out);
  check_permissions(host, out);
}

void check_clocks(const Host& host, Checks& out) {
  constexpr double kSlowNs = 500;
  const std::string source = line_of(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const double read_ns = clock_read_ns();
  Check check{.area = kClocks,
              .name = "source",
              .health = Health::kGood,
              .text = format("{}, {:.0f} ns a reading", source.empty() ? "not known" : source, read_ns),
              .mend = {}};
  if (read_ns > kSlowNs) {
    check.health = Health::kWarning;
    check.text += ": slow, which the hook pays several times a step";
    check.mend = "boot with clocksource=tsc if the processor's counter is reliable";
  }
  out.push_back(std::move(check));
  timex state{};
  if (::adjtimex(&state) < 0) return;
  const bool is_synchronised = (state.status & STA_UNSYNC) == 0;
  out.push_back({.area = kClocks,
                 .name = "wall clock",
                 .health = is_synchronised ? Health::kGood : Health::kNote,
                 .text = is_synchronised ? "synchronised"
                                         : "not known to be synchronised: several nodes are lined up only as well as "
                                           "their clocks agree",
                 .mend = is_synchronised ? "" : "timedatectl set-ntp true (or ask who runs the machine)"});
}

}  // namespace hotlap
