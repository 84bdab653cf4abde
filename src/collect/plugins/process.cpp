// The processes of the job: CPU, memory, I/O, threads and the mounts that they have files open on, per slot.
//
// Costs are graded: CPU time at every tick by one system call; /proc/PID/stat five times a second; I/O, context
// switches and the main thread's waits once a second; PSS, hottest threads and open files seconds apart, only where
// they tell something, and each within its share of a core. With more processes than kManyProcesses /proc/PID/stat
// is read once a second. Descriptors are kept for the first kKeptProcesses, so that we stay far below the usual
// limit of 1,024.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "collect/collector.h"
#include "collect/cost_gate.h"
#include "collect/hot_threads.h"
#include "collect/mounts.h"
#include "collect/open_mounts.h"
#include "collect/process_files.h"
#include "collect/sample.h"

namespace hotlap {
namespace {

constexpr std::size_t kProcessesMax = 512;
constexpr std::size_t kKeptProcesses = 64;
constexpr std::size_t kManyProcesses = 64;
constexpr std::size_t kMountsMax = 512;
constexpr std::size_t kThreadLooksMax = 4;  // processes whose threads are looked at in one round
constexpr std::size_t kMountLooksMax = 8;   // processes whose descriptors are looked at in one round
constexpr std::uint64_t kPssRssBytesMax = std::uint64_t{4} << 30U;  // beyond, the walk would hold up the process itself
constexpr std::uint64_t kMountLookBytesMin = std::uint64_t{1} << 20U;

constexpr std::int64_t kStatPeriodNs = 200 * kNsPerMs;
constexpr std::int64_t kSlowPeriodNs = kNsPerS;
constexpr std::int64_t kThreadPeriodNs = 2 * kNsPerS;
constexpr std::int64_t kPssPeriodNs = 10 * kNsPerS;  // for one process
constexpr std::int64_t kPssGapNs = kNsPerS;          // between two of them
constexpr std::int64_t kMountPeriodNs = 10 * kNsPerS;
// Shares of a core: PSS 0.02 %, threads 0.05 %, open files 0.02 %.
constexpr std::int64_t kPssCostFactor = 5'000;
constexpr std::int64_t kThreadCostFactor = 2'000;
constexpr std::int64_t kMountCostFactor = 5'000;

enum Metric : std::uint16_t {
  kCount,
  kCpu,
  kUser,
  kSystem,
  kRss,
  kThreads,
  kState,
  kMajorFaults,
  kReadChars,
  kWrittenChars,
  kReadBytes,
  kWrittenBytes,
  kVoluntary,
  kInvoluntary,
  kMainCpu,
  kMainWait,
  kPss,
  kThreadCpu,
  kOpenFiles,
};
constexpr std::size_t kSlotSeries = kPss - kCpu + 1;

constexpr MetricDesc count(std::string_view name, std::string_view unit, double scale, std::int64_t period_ns,
                           std::string_view help, MetricAliases aliases = {}) {
  return {.name = name,
          .unit = unit,
          .kind = MetricKind::kCounter,
          .help = help,
          .min_period_ns = period_ns,
          .aliases = aliases,
          .scale = scale};
}
constexpr MetricDesc level(std::string_view name, std::string_view unit, std::int64_t period_ns, std::string_view help,
                           MetricAliases aliases = {}) {
  return {.name = name, .unit = unit, .help = help, .min_period_ns = period_ns, .aliases = aliases};
}

constexpr std::array kMetrics{
    level("process.count", "{process}", 0, "Live processes of the job.", {"procstat_lookup_pid_count", "", ""}),
    count("process.cpu.seconds", "s", 1e-9, 0, "CPU time of all threads; its rate is cores in use.",
          {"procstat_cpu_time", "process.cpu.time", "process_cpu_seconds_total"}),
    count("process.cpu.user.seconds", "s", 0.01, kStatPeriodNs, "CPU time in user code.",
          {"procstat_cpu_time_user", "process.cpu.time{cpu.mode=\"user\"}", ""}),
    count("process.cpu.system.seconds", "s", 0.01, kStatPeriodNs, "CPU time in the kernel.",
          {"procstat_cpu_time_system", "process.cpu.time{cpu.mode=\"system\"}", ""}),
    level("process.memory.rss.bytes", "By", kStatPeriodNs, "Memory in RAM, shared pages counted in full.",
          {"procstat_memory_rss", "process.memory.usage", "process_resident_memory_bytes"}),
    level("process.threads", "{thread}", kStatPeriodNs, "Threads that exist.",
          {"procstat_num_threads", "process.thread.count", "process_threads"}),
    level("process.state", "1", kStatPeriodNs,
          "State of the main thread: 1 runs or could run, 2 sleeps, 3 waits for I/O, 4 stopped, 5 traced, 6 zombie, 7 "
          "idle."),
    count("process.major_faults", "{fault}", 1, kStatPeriodNs, "Page faults that had to read from disk.",
          {"", "process.paging.faults{process.paging.fault_type=\"major\"}", ""}),
    count("process.io.rchar.bytes", "By", 1, kSlowPeriodNs,
          "Bytes asked for by read calls, whether from disk or cache."),
    count("process.io.wchar.bytes", "By", 1, kSlowPeriodNs, "Bytes handed to write calls."),
    count("process.io.read.bytes", "By", 1, kSlowPeriodNs, "Bytes that really came from storage.",
          {"procstat_read_bytes", "process.disk.io{disk.io.direction=\"read\"}", ""}),
    count("process.io.write.bytes", "By", 1, kSlowPeriodNs, "Bytes that really go to storage.",
          {"procstat_write_bytes", "process.disk.io{disk.io.direction=\"write\"}", ""}),
    count("process.context_switches.voluntary", "{switch}", 1, kSlowPeriodNs,
          "Times that the main thread gave up its core to wait.",
          {"procstat_voluntary_context_switches", "process.context_switches{process.context_switch_type=\"voluntary\"}",
           ""}),
    count("process.context_switches.involuntary", "{switch}", 1, kSlowPeriodNs,
          "Times that the main thread's core was taken from it.",
          {"procstat_involuntary_context_switches",
           "process.context_switches{process.context_switch_type=\"involuntary\"}", ""}),
    count("process.main_thread.cpu.seconds", "s", 1e-9, kSlowPeriodNs, "CPU time of the main thread alone."),
    count("process.main_thread.wait.seconds", "s", 1e-9, kSlowPeriodNs,
          "Time that the main thread could run, but had no core."),
    level("process.memory.pss.bytes", "By", kPssPeriodNs,
          "Memory in RAM with shared pages divided among those who share; missing for processes of more than 4 GiB."),
    count("process.thread.cpu.seconds", "s", 1e-9, kThreadPeriodNs,
          "CPU time of one of the hottest threads of a busy process."),
    level("process.mount.open_files", "{file}", kMountPeriodNs,
          "Files that a process which does I/O has open on a mount."),
};
static_assert(kMetrics.size() == kOpenFiles + 1);

struct Process {
  std::int32_t pid = 0;
  std::string slot;
  std::uint64_t start_ticks = 0;
  bool is_gone = false;  // its files say that it ended; the job's list has not caught up
  bool keeps_files = false;
  bool is_listed = false;  // in this tick's list
  KeptFile stat, io, status, schedstat;
  SeriesSet<kSlotSeries> series;
  HotThreads threads;
  OpenMounts open_mounts;
  std::uint64_t cpu_ns = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t thread_count = 0;
  std::uint64_t io_chars = 0;
  std::uint64_t cpu_ns_at_thread_look = 0;
  std::uint64_t io_chars_at_mount_look = 0;
  Due pss_due{kPssPeriodNs};
};

class ProcessCollector final : public Collector {
 public:
  explicit ProcessCollector(const Host& host) : host_(host), page_bytes_(host.page_bytes()) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (tick.job.root_pid == 0 && tick.job.processes.empty() && processes_.empty()) return Outcome::kNoData;
    match(tick.job.processes, out);
    if (!count_.valid()) count_ = out.series(kCount, {});
    out.add(count_, Value::of(static_cast<std::uint64_t>(tick.job.processes.size())));
    const bool slow_is_due = slow_due_.at(tick.t_ns);
    stat_due_.set_period(processes_.size() > kManyProcesses ? kSlowPeriodNs : kStatPeriodNs);
    const bool stat_is_due = stat_due_.at(tick.t_ns) || slow_is_due;
    for (const auto& process : processes_) sample_process(*process, stat_is_due, slow_is_due, out);
    thread_gate_.run(tick.t_ns, [&] { look_at_threads(tick.t_ns, out); });
    mount_gate_.run(tick.t_ns, [&] { look_at_mounts(tick.job.root_pid, out); });
    pss_gate_.run(tick.t_ns, [&] { sample_one_pss(tick.t_ns, out); });
    return Outcome::kSampled;
  }

 private:
  // Brings `processes_` (sorted by pid, as the list is) in line with the job's.
  void match(std::span<const JobProcess> listed, SampleSink& out) {
    for (const auto& process : processes_) process->is_listed = false;
    std::size_t at = 0;
    std::uint64_t refused = 0;
    bool has_new = false;
    for (const JobProcess& job_process : listed) {
      while (at < processes_.size() && processes_[at]->pid < job_process.pid) ++at;
      if (at < processes_.size() && processes_[at]->pid == job_process.pid) {
        processes_[at]->is_listed = true;
        if (processes_[at]->slot != job_process.slot) change_slot(*processes_[at], job_process.slot, out);
        continue;
      }
      if (processes_.size() >= kProcessesMax) {
        ++refused;
        continue;
      }
      auto added = std::make_unique<Process>();
      added->pid = job_process.pid;
      added->slot = job_process.slot;
      added->is_listed = true;
      processes_.insert(processes_.begin() + static_cast<std::ptrdiff_t>(at), std::move(added));
      has_new = true;
    }
    if (refused > refused_max_) {
      out.count_loss("record.processes_refused", refused - refused_max_);
      refused_max_ = refused;
    }
    std::erase_if(processes_, [&](const auto& process) {
      if (!process->is_listed) lose(*process, out);
      return !process->is_listed;
    });
    for (std::size_t i = 0; has_new && i < processes_.size(); ++i) processes_[i]->keeps_files |= i < kKeptProcesses;
  }

  void change_slot(Process& process, std::string_view slot, SampleSink& out) {
    process.threads.forget(out, false);
    process.open_mounts.forget(out, false);
    process.series = {};
    process.slot = slot;
  }

  // Says once that the process ended, unless another one has its slot by now.
  void lose(Process& process, SampleSink& out) {
    if (process.is_gone) return;
    process.is_gone = true;
    bool slot_is_free = true;
    for (const auto& other : processes_) {
      slot_is_free &= other.get() == &process || !other->is_listed || other->is_gone || other->slot != process.slot;
    }
    if (slot_is_free && process.series.is_registered()) process.series.add_missing(out, MissingReason::kSourceLost);
    process.threads.forget(out, slot_is_free);
    process.open_mounts.forget(out, slot_is_free);
    for (KeptFile* file : {&process.stat, &process.io, &process.status, &process.schedstat}) *file = KeptFile{};
  }

  void sample_process(Process& process, bool stat_is_due, bool slow_is_due, SampleSink& out) {
    // A pid may be used again before the job's list says that its old process is gone.
    if (process.is_gone && !slow_is_due) return;
    const bool reads_stat = stat_is_due || process.start_ticks == 0;
    if (reads_stat) {
      Result<std::string_view> text = read(process, process.stat, "stat");
      const auto stat = text.ok() ? parse_process_stat(*text) : std::nullopt;
      if (!stat) return text.ok() ? void() : lose(process, out);
      if (process.start_ticks != 0 && process.start_ticks != stat->start_ticks) {
        process.start_ticks = 0;  // another process: its counters begin anew at the next tick
        return lose(process, out);
      }
      process.is_gone = false;
      process.start_ticks = stat->start_ticks;
      add_stat(process, *stat, out);
    }
    const Result<std::uint64_t> cpu_ns = host_.process_cpu_ns(process.pid);
    if (!cpu_ns.ok() && cpu_ns.error().code == ErrorCode::kNotFound && !reads_stat) return lose(process, out);
    if (cpu_ns.ok()) process.cpu_ns = *cpu_ns;
    add(process, kCpu, cpu_ns.ok() ? Value::of(*cpu_ns) : Value::missing(missing_reason(cpu_ns.error())), out);
    if (slow_is_due) sample_slow(process, out);
  }

  void add_stat(Process& process, const ProcessStat& stat, SampleSink& out) {
    if (!process.series.is_registered()) process.series.register_at(out, kCpu, process.slot);
    process.thread_count = stat.threads;
    process.rss_bytes = stat.rss_pages * page_bytes_;
    add(process, kUser, Value::of(stat.user_ticks), out);
    add(process, kSystem, Value::of(stat.system_ticks), out);
    add(process, kRss, Value::of(process.rss_bytes), out);
    add(process, kThreads, Value::of(stat.threads), out);
    add(process, kState, Value::of(static_cast<std::uint64_t>(stat.state)), out);
    add(process, kMajorFaults, Value::of(stat.major_faults), out);
  }

  void sample_slow(Process& process, SampleSink& out) {
    Result<std::string_view> text = read(process, process.io, "io");
    const auto io = text.ok() ? parse_process_io(*text) : std::nullopt;
    if (io) {
      add(process, kReadChars, Value::of(io->read_chars), out);
      add(process, kWrittenChars, Value::of(io->written_chars), out);
      add(process, kReadBytes, Value::of(io->read_bytes), out);
      add(process, kWrittenBytes, Value::of(io->written_bytes), out);
      process.io_chars = io->read_chars + io->written_chars;
    } else {
      add_missing(process, kReadChars, kWrittenBytes, text, out);
    }

    text = read(process, process.status, "status");
    if (const auto switches = text.ok() ? parse_context_switches(*text) : std::nullopt) {
      add(process, kVoluntary, Value::of(switches->voluntary), out);
      add(process, kInvoluntary, Value::of(switches->involuntary), out);
    } else {
      add_missing(process, kVoluntary, kInvoluntary, text, out);
    }

    text = read(process, process.schedstat, "schedstat");
    if (const auto times = text.ok() ? parse_schedstat(*text) : std::nullopt) {
      add(process, kMainCpu, Value::of(times->run_ns), out);
      add(process, kMainWait, Value::of(times->wait_ns), out);
    } else {
      add_missing(process, kMainCpu, kMainWait, text, out);
    }
  }

  // The threads of the busiest processes that used at least half a core since the round before.
  void look_at_threads(std::int64_t t_ns, SampleSink& out) {
    const auto busy_ns = static_cast<std::uint64_t>((t_ns - thread_look_ns_) / 2);
    thread_look_ns_ = t_ns;
    std::vector<std::pair<std::uint64_t, Process*>> busy;
    for (const auto& process : processes_) {
      const std::uint64_t before = process->cpu_ns_at_thread_look;
      process->cpu_ns_at_thread_look = process->cpu_ns;
      if (process->is_gone || process->thread_count < 2 || before == 0 || process->cpu_ns < before + busy_ns) continue;
      busy.emplace_back(process->cpu_ns - before, process.get());
    }
    std::ranges::sort(busy, std::greater{});
    if (busy.size() > kThreadLooksMax) busy.resize(kThreadLooksMax);
    for (const auto& [used, process] : busy) {
      process->threads.look(host_, process->pid, process->slot, t_ns, kThreadCpu, out);
    }
  }

  // The descriptors of processes that read or wrote something since the round before, most first.
  void look_at_mounts(std::int32_t root_pid, SampleSink& out) {
    std::vector<std::pair<std::uint64_t, Process*>> active;
    for (const auto& process : processes_) {
      const std::uint64_t moved = process->io_chars - std::min(process->io_chars, process->io_chars_at_mount_look);
      process->io_chars_at_mount_look = process->io_chars;
      if (!process->is_gone && moved >= kMountLookBytesMin) active.emplace_back(moved, process.get());
    }
    if (active.empty()) return;
    std::ranges::sort(active, std::greater{});
    if (active.size() > kMountLooksMax) active.resize(kMountLooksMax);
    Result<std::string> text = host_.read_text(format("/proc/{}/mountinfo", root_pid));
    if (!text.ok()) text = host_.read_text("/proc/self/mountinfo");
    if (!text.ok()) return;
    const std::vector<Mount> mounts = parse_mountinfo(*text, kMountsMax);
    for (const auto& [moved, process] : active) {
      for (const Mount* mount :
           process->open_mounts.look(host_, process->pid, process->slot, mounts, kOpenFiles, out)) {
        note_mount(*mount, out);
      }
    }
  }

  // Tells the reader of the recording once what kind of mount it is.
  void note_mount(const Mount& mount, SampleSink& out) {
    if (mounts_noted_.size() >= kMountsMax || std::ranges::find(mounts_noted_, mount.point) != mounts_noted_.end())
      return;
    mounts_noted_.push_back(mount.point);
    out.event(EventKind::kNote, 0, format("mount {}: {} {}", mount.point, mount.type, mount.source));
  }

  // One at a time: reading it walks the process's page tables, about 10 ms for each GB of small pages.
  void sample_one_pss(std::int64_t t_ns, SampleSink& out) {
    for (std::size_t n = 0; n < processes_.size(); ++n) {
      Process& process = *processes_[(pss_next_ + n) % processes_.size()];
      if (process.is_gone || !process.series.is_registered() || !process.pss_due.at(t_ns)) continue;
      pss_next_ = (pss_next_ + n + 1) % processes_.size();
      if (process.rss_bytes > kPssRssBytesMax) {
        add(process, kPss, Value::missing(MissingReason::kNotMeasured), out);
        return;
      }
      const Result<std::string> text = host_.read_text(format("/proc/{}/smaps_rollup", process.pid));
      const auto pss = text.ok() ? parse_pss_kib(*text) : std::nullopt;
      const MissingReason reason = text.ok() ? MissingReason::kNotSupported : missing_reason(text.error());
      add(process, kPss, pss ? Value::of(*pss * 1024) : Value::missing(reason), out);
      return;
    }
  }

  // The view is valid until the next read of a process.
  Result<std::string_view> read(const Process& process, KeptFile& kept, std::string_view name) {
    KeptFile& file = process.keeps_files ? kept : scratch_;
    if (!file.is_open() || !process.keeps_files) {
      HOTLAP_TRY_ASSIGN(file, KeptFile::open(host_, format("/proc/{}/{}", process.pid, name)));
    }
    return file.read_record();
  }

  static void add(const Process& process, Metric metric, Value value, SampleSink& out) {
    if (process.series.is_registered()) out.add(process.series[metric - kCpu], value);
  }

  // For the metrics first … last, of which a file gave nothing.
  static void add_missing(const Process& process, Metric first, Metric last, const Result<std::string_view>& text,
                          SampleSink& out) {
    const MissingReason reason = text.ok() ? MissingReason::kReadFailed : missing_reason(text.error());
    for (std::uint16_t m = first; m <= last; ++m) add(process, static_cast<Metric>(m), Value::missing(reason), out);
  }

  const Host& host_;
  std::uint64_t page_bytes_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::string> mounts_noted_;
  KeptFile scratch_;
  SeriesHandle count_;
  std::uint64_t refused_max_ = 0;
  std::size_t pss_next_ = 0;
  std::int64_t thread_look_ns_ = 0;
  Due stat_due_{kStatPeriodNs};
  Due slow_due_{kSlowPeriodNs};
  CostGate thread_gate_{kThreadPeriodNs, kThreadCostFactor};
  CostGate mount_gate_{kMountPeriodNs, kMountCostFactor};
  CostGate pss_gate_{kPssGapNs, kPssCostFactor};
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  if (!host.exists("/proc/self/stat")) return Error{ErrorCode::kUnsupported, "/proc is not mounted"};
  return std::unique_ptr<Collector>(std::make_unique<ProcessCollector>(host));
}

}  // namespace

extern constinit const CollectorSpec collector_process{
    .name = "process",
    .summary = "The processes of the job, per slot: CPU, memory, I/O, threads, and mounts with open files.",
    .metrics = kMetrics,
    .open = open};

}  // namespace hotlap
