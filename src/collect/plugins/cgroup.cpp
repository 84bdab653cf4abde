// The control group that the job lives in (v2, v1 or both): what it may use, what it uses, and when it was held back.
//
// A group's limit binds all groups below it, so each limit is the tightest from the job's own group up to the top
// of what is visible here, and memory and throttling are read where that limit is: there it is decided. CPU time is
// the own group's. Without a job (recording of a host) the top of what is visible is meant: inside a container, the
// container.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"
#include "collect/cgroup_places.h"
#include "collect/collector.h"
#include "collect/pressure_file.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::int64_t kSlowPeriodNs = 2 * kNsPerS;               // ten files, and memory.stat adds up all cores
constexpr std::int64_t kLimitPeriodNs = 5 * kNsPerS;              // limits change when somebody changes them
constexpr std::uint64_t kNoLimitBytes = std::uint64_t{1} << 60U;  // v1 says "none" with a number near 2^63
constexpr std::size_t kMountsMax = 512;

enum Metric : std::uint16_t {
  kUsableCores,
  kCpuLimit,
  kCpuUsage,
  kPeriods,
  kThrottledPeriods,
  kThrottledTime,
  kMemoryLimit,
  kMemoryCurrent,
  kMemoryWorkingSet,
  kMemoryAnon,
  kMemoryFile,
  kMemoryShmem,
  kEventsHigh,
  kEventsMax,
  kEventsOom,
  kEventsOomKill,
  kIoReadBytes,
  kIoWriteBytes,
  kIoReads,
  kIoWrites,
  kPressureCpuSome,
  kPressureIoSome,
  kPressureIoFull,
  kPressureMemorySome,
  kPressureMemoryFull,
  kMetricCount,
};

constexpr MetricDesc level(std::string_view name, std::string_view unit, std::int64_t period_ns, std::string_view help,
                           MetricAliases aliases = {}) {
  return {.name = name, .unit = unit, .help = help, .min_period_ns = period_ns, .aliases = aliases};
}
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
constexpr double kMicrosecond = 1e-6;

constexpr std::array kMetrics{
    level("cpu.usable.cores", "{core}", kLimitPeriodNs,
          "Cores that the job may use: the least of its affinity, its cpuset and its CPU quota."),
    level("cgroup.cpu.limit.cores", "{core}", kLimitPeriodNs, "CPU quota in cores; missing when there is none.",
          {"", "", "kube_pod_container_resource_limits{resource=\"cpu\"}"}),
    count("cgroup.cpu.usage.seconds", "s", kMicrosecond, 0, "CPU time of all processes in the group.",
          {"", "container.cpu.time", "container_cpu_usage_seconds_total"}),
    count("cgroup.cpu.periods", "{period}", 1, kSlowPeriodNs, "Periods of the quota in which the group had work.",
          {"", "", "container_cpu_cfs_periods_total"}),
    count("cgroup.cpu.throttled.periods", "{period}", 1, kSlowPeriodNs,
          "Periods in which the group used up its quota and had to stop.",
          {"", "", "container_cpu_cfs_throttled_periods_total"}),
    count("cgroup.cpu.throttled.seconds", "s", kMicrosecond, kSlowPeriodNs,
          "Time for which the group was stopped, added up over its cores.",
          {"", "", "container_cpu_cfs_throttled_seconds_total"}),
    level("cgroup.memory.limit.bytes", "By", kLimitPeriodNs, "Memory limit; missing when there is none.",
          {"", "", "container_spec_memory_limit_bytes"}),
    level("cgroup.memory.current.bytes", "By", 0, "Memory of the group, page cache included.",
          {"", "container.memory.usage", "container_memory_usage_bytes"}),
    level("cgroup.memory.working_set.bytes", "By", kSlowPeriodNs, "Memory without page cache that was not used lately.",
          {"", "container.memory.working_set", "container_memory_working_set_bytes"}),
    level("cgroup.memory.anon.bytes", "By", kSlowPeriodNs, "Pages that belong to no file.",
          {"", "container.memory.rss", "container_memory_rss"}),
    level("cgroup.memory.file.bytes", "By", kSlowPeriodNs, "Page cache, shared memory included.",
          {"", "", "container_memory_cache"}),
    level("cgroup.memory.shmem.bytes", "By", kSlowPeriodNs, "Shared memory and tmpfs."),
    count("cgroup.memory.events.high", "{event}", 1, kSlowPeriodNs,
          "Times that the group was slowed down for exceeding memory.high."),
    count("cgroup.memory.events.max", "{event}", 1, kSlowPeriodNs,
          "Times that the group was about to exceed its limit.", {"", "", "container_memory_failcnt"}),
    count("cgroup.memory.events.oom", "{event}", 1, kSlowPeriodNs,
          "Times that memory could not be had within the limit."),
    count("cgroup.memory.events.oom_kills", "{process}", 1, kSlowPeriodNs,
          "Processes of the group killed because memory ran out.", {"", "", "container_oom_events_total"}),
    count("cgroup.io.read.bytes", "By", 1, kSlowPeriodNs, "Bytes read from block devices by the group.",
          {"", "container.disk.io{disk.io.direction=\"read\"}", "container_fs_reads_bytes_total"}),
    count("cgroup.io.write.bytes", "By", 1, kSlowPeriodNs, "Bytes written to block devices by the group.",
          {"", "container.disk.io{disk.io.direction=\"write\"}", "container_fs_writes_bytes_total"}),
    count("cgroup.io.reads", "{operation}", 1, kSlowPeriodNs, "Reads of block devices by the group.",
          {"", "", "container_fs_reads_total"}),
    count("cgroup.io.writes", "{operation}", 1, kSlowPeriodNs, "Writes to block devices by the group.",
          {"", "", "container_fs_writes_total"}),
    count("cgroup.pressure.cpu.some.seconds", "s", kMicrosecond, kSlowPeriodNs,
          "Time in which a task of the group waited for a core.",
          {"", "", "container_pressure_cpu_waiting_seconds_total"}),
    count("cgroup.pressure.io.some.seconds", "s", kMicrosecond, kSlowPeriodNs,
          "Time in which a task of the group waited for I/O.", {"", "", "container_pressure_io_waiting_seconds_total"}),
    count("cgroup.pressure.io.full.seconds", "s", kMicrosecond, kSlowPeriodNs,
          "Time in which every task of the group that had work waited for I/O.",
          {"", "", "container_pressure_io_stalled_seconds_total"}),
    count("cgroup.pressure.memory.some.seconds", "s", kMicrosecond, kSlowPeriodNs,
          "Time in which a task of the group waited for memory.",
          {"", "", "container_pressure_memory_waiting_seconds_total"}),
    count("cgroup.pressure.memory.full.seconds", "s", kMicrosecond, kSlowPeriodNs,
          "Time in which every task of the group that had work waited for memory.",
          {"", "", "container_pressure_memory_stalled_seconds_total"}),
};
static_assert(kMetrics.size() == kMetricCount);

constexpr std::array<std::string_view, 4> kCpuStatKeys{"usage_usec", "nr_periods", "nr_throttled", "throttled_usec"};
constexpr std::array<std::string_view, 3> kCpuStatKeysV1{"nr_periods", "nr_throttled", "throttled_time"};
constexpr std::array<std::string_view, 4> kMemoryStatKeys{"inactive_file", "anon", "file", "shmem"};
constexpr std::array<std::string_view, 4> kMemoryStatKeysV1{"total_inactive_file", "total_rss", "total_cache",
                                                            "total_shmem"};
constexpr std::array<std::string_view, 4> kEventKeys{"high", "max", "oom", "oom_kill"};
constexpr std::array<std::string_view, 1> kOomControlKeys{"oom_kill"};

std::optional<std::uint64_t> read_number(const Host& host, const std::string& path) {
  const Result<std::string> text = host.read_text(path);
  std::uint64_t number = 0;
  return text.ok() && TextCursor(*text).number(number) ? std::optional(number) : std::nullopt;
}

// The quota of one group in cores; nothing when it has none.
std::optional<double> cpu_quota_cores(const Host& host, const std::string& folder, bool is_v2) {
  std::uint64_t quota = 0;
  std::uint64_t period = 0;
  if (is_v2) {
    const Result<std::string> text = host.read_text(folder + "/cpu.max");  // "max 100000" or "200000 100000"
    if (!text.ok()) return std::nullopt;
    TextCursor cursor(*text);
    if (!cursor.number(quota) || !cursor.number(period)) return std::nullopt;
  } else {
    quota = read_number(host, folder + "/cpu.cfs_quota_us").value_or(0);  // -1: none
    period = read_number(host, folder + "/cpu.cfs_period_us").value_or(0);
  }
  if (quota == 0 || period == 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::optional<std::uint64_t> memory_limit(const Host& host, const std::string& folder, bool is_v2) {
  const auto limit = read_number(host, folder + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  return limit && *limit < kNoLimitBytes ? limit : std::nullopt;
}

struct IoTotals {
  std::uint64_t read_bytes = 0, written_bytes = 0, reads = 0, writes = 0;
};

// v2: "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0".
IoTotals read_io_stat(std::string_view text) {
  IoTotals totals;
  for (TextCursor line(text); !line.at_end(); line.skip_line()) {
    for (std::string_view word = line.word(); !word.empty(); word = line.word()) {
      std::uint64_t number = 0;
      TextCursor field(word);
      if (field.accept("rbytes=") && field.number(number))
        totals.read_bytes += number;
      else if (field.accept("wbytes=") && field.number(number))
        totals.written_bytes += number;
      else if (field.accept("rios=") && field.number(number))
        totals.reads += number;
      else if (field.accept("wios=") && field.number(number))
        totals.writes += number;
    }
  }
  return totals;
}

struct ReadWrite {
  std::uint64_t read = 0, written = 0;
};
// v1: "8:0 Read 123" lines, of bytes or of operations. Nothing without such a line: that is so before the first
// I/O, and for ever in the top group, which the kernel does not count.
std::optional<ReadWrite> read_blkio(std::string_view text) {
  ReadWrite totals;
  bool has_device = false;
  for (TextCursor line(text); !line.at_end(); line.skip_line()) {
    (void)line.word();
    const std::string_view direction = line.word();
    std::uint64_t number = 0;
    if (!line.number(number)) continue;
    has_device = true;
    if (direction == "Read") totals.read += number;
    if (direction == "Write") totals.written += number;
  }
  return has_device ? std::optional(totals) : std::nullopt;
}

class CgroupCollector final : public Collector {
 public:
  explicit CgroupCollector(const Host& host) : host_(host) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (limit_due_.at(tick.t_ns) || tick.job.root_pid != root_pid_) {
      root_pid_ = tick.job.root_pid;
      find_places();
      sample_limits(out);
    }
    const bool slow_is_due = slow_due_.at(tick.t_ns) || tick.is_last;  // memory events: what may have killed the job
    sample_cpu(slow_is_due, out);
    const std::optional<std::uint64_t> current = sample_memory_current(out);
    if (!slow_is_due) return Outcome::kSampled;
    sample_memory_details(current, out);
    sample_memory_events(out);
    sample_io(out);
    sample_pressure(0, kPressureCpuSome, kMetricCount, out);
    sample_pressure(1, kPressureIoSome, kPressureIoFull, out);
    sample_pressure(2, kPressureMemorySome, kPressureMemoryFull, out);
    return Outcome::kSampled;
  }

 private:
  std::string process_folder() const {
    return root_pid_ > 0 ? format("/proc/{}", root_pid_) : std::string("/proc/self");
  }

  // Looks again where the job is: launchers move it after it started.
  void find_places() {
    std::string text;
    if (root_pid_ > 0) {
      Result<std::string> found = host_.read_text(process_folder() + "/cgroup");
      if (!found.ok()) return;  // the job's root ended: its group stays the last one known
      text = std::move(found).value();
    }
    if (has_places_ && text == cgroup_text_) return;
    Result<std::string> mountinfo = host_.read_text("/proc/self/mountinfo");
    if (!mountinfo.ok()) return;
    places_ = find_cgroups(text, parse_mountinfo(*mountinfo, kMountsMax),
                           [&](const std::string& folder) { return host_.exists(folder); });
    cgroup_text_ = std::move(text);
    has_places_ = true;
    cpu_folder_.clear();
    memory_folder_.clear();
    open_fixed_files();
  }

  // Files of the own group; those of the limiting groups are opened when these are known.
  void open_fixed_files() {
    usage_ = {};
    io_bytes_ = {};
    io_operations_ = {};
    if (places_.cpuacct.exists())
      usage_ = open(places_.cpuacct.own() + (places_.cpuacct.is_v2 ? "/cpu.stat" : "/cpuacct.usage"));
    if (places_.io.exists() && places_.io.is_v2) io_bytes_ = open(places_.io.own() + "/io.stat");
    if (places_.io.exists() && !places_.io.is_v2) {
      io_bytes_ = open(places_.io.own() + "/blkio.throttle.io_service_bytes_recursive");
      io_operations_ = open(places_.io.own() + "/blkio.throttle.io_serviced_recursive");
    }
    constexpr std::array<std::string_view, 3> kNames{"/cpu.pressure", "/io.pressure", "/memory.pressure"};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      pressure_[i] = {};
      if (places_.unified.exists()) pressure_[i] = open(places_.unified.own() + std::string(kNames[i]));
      // Switched off, it exists and can't be read.
      if (pressure_[i].is_open() && !pressure_[i].read_record().ok()) pressure_[i] = {};
    }
  }

  void sample_limits(SampleSink& out) {
    std::optional<double> quota;
    std::string quota_folder = places_.cpu.exists() ? places_.cpu.own() : std::string();
    for (std::size_t i = 0; i < places_.cpu.folders.size(); ++i) {
      const std::string& folder = places_.cpu.folders[i];
      const auto cores = cpu_quota_cores(host_, folder, places_.cpu.is_v2);
      if (!cores || (quota && *cores >= *quota)) continue;
      quota = cores;
      quota_folder = folder;
    }
    std::optional<std::uint64_t> limit;
    std::string limit_folder = places_.memory.exists() ? places_.memory.own() : std::string();
    for (std::size_t i = 0; i < places_.memory.folders.size(); ++i) {
      const std::string& folder = places_.memory.folders[i];
      const auto bytes = memory_limit(host_, folder, places_.memory.is_v2);
      if (!bytes || (limit && *bytes >= *limit)) continue;
      limit = bytes;
      limit_folder = folder;
    }
    add(kCpuLimit, quota ? Value::of(*quota) : Value::missing(MissingReason::kNotSupported), out);
    add(kMemoryLimit, value_or_missing(limit), out);
    sample_usable_cores(quota, out);
    open_limiting_files(quota_folder, limit_folder);
  }

  void sample_usable_cores(std::optional<double> quota, SampleSink& out) {
    if (auto allowed = allowed_cores()) allowed_ = *allowed;  // stays when the job's root has ended
    std::optional<CpuSet> usable = allowed_;
    const auto restrict_to = [&](const std::string& path) {
      const Result<std::string> text = host_.read_text(path);
      const auto cores = text.ok() ? parse_cpu_list(*text) : std::nullopt;
      if (cores && cores->any()) usable = usable ? *usable & *cores : *cores;
    };
    // The affinity names cores that could exist; only those online can be used.
    restrict_to("/sys/devices/system/cpu/online");
    if (places_.cpuset.exists()) {
      const std::string& folder = places_.cpuset.own();
      restrict_to(folder + (places_.cpuset.is_v2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus"));
    }
    if (!usable || usable->none()) return add(kUsableCores, Value::missing(MissingReason::kReadFailed), out);
    const auto cores = static_cast<double>(usable->count());
    add(kUsableCores, Value::of(quota ? std::min(cores, *quota) : cores), out);
  }

  std::optional<CpuSet> allowed_cores() const {
    const Result<std::string> status = host_.read_text(process_folder() + "/status");
    if (!status.ok()) return std::nullopt;
    for (TextCursor line(*status); !line.at_end(); line.skip_line()) {
      if (line.accept("Cpus_allowed_list:")) return parse_cpu_list(line.rest());
    }
    return std::nullopt;
  }

  void open_limiting_files(const std::string& cpu_folder, const std::string& memory_folder) {
    if (cpu_folder != cpu_folder_) {
      cpu_folder_ = cpu_folder;
      // In v2 one file has both the usage and the throttling, when they are of the same group.
      const bool is_same = places_.cpu.is_v2 && usage_.is_open() && usage_.path() == cpu_folder + "/cpu.stat";
      throttling_ = is_same ? KeptFile{} : open(cpu_folder + "/cpu.stat");
    }
    if (memory_folder == memory_folder_) return;
    memory_folder_ = memory_folder;
    const bool is_v2 = places_.memory.is_v2;
    memory_current_ = open(memory_folder + (is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    memory_stat_ = open(memory_folder + "/memory.stat");
    memory_events_ = open(memory_folder + (is_v2 ? "/memory.events" : "/memory.oom_control"));
    memory_failures_ = is_v2 ? KeptFile{} : open(memory_folder + "/memory.failcnt");
    kills_before_.reset();
  }

  void sample_cpu(bool with_throttling, SampleSink& out) {
    if (usage_.is_open()) {
      const Result<std::string_view> text = usage_.read_record();
      if (!places_.cpuacct.is_v2) {
        std::uint64_t ns = 0;
        const bool is_read = text.ok() && TextCursor(*text).number(ns);
        add(kCpuUsage, is_read ? Value::of(ns / 1'000) : Value::missing(reason_of(text)), out);
      } else {
        if (text.ok()) cpu_stat_.scan(*text);
        add(kCpuUsage, keyed(text, cpu_stat_, 0), out);
        if (with_throttling && !throttling_.is_open()) add_throttling(text, cpu_stat_, out);
      }
    }
    if (!with_throttling || !throttling_.is_open()) return;
    const Result<std::string_view> text = throttling_.read_record();
    if (places_.cpu.is_v2) {
      if (text.ok()) cpu_stat_limiting_.scan(*text);
      return add_throttling(text, cpu_stat_limiting_, out);
    }
    if (text.ok()) cpu_stat_v1_.scan(*text);
    add_known(kPeriods, text, cpu_stat_v1_.value(0), out);
    add_known(kThrottledPeriods, text, cpu_stat_v1_.value(1), out);
    const auto ns = cpu_stat_v1_.value(2);
    add_known(kThrottledTime, text, ns ? std::optional(*ns / 1'000) : std::nullopt, out);
  }

  void add_throttling(const Result<std::string_view>& text, const KeyedNumbers& numbers, SampleSink& out) {
    add_known(kPeriods, text, numbers.value(1), out);
    add_known(kThrottledPeriods, text, numbers.value(2), out);
    add_known(kThrottledTime, text, numbers.value(3), out);
  }

  std::optional<std::uint64_t> sample_memory_current(SampleSink& out) {
    if (!memory_current_.is_open()) return std::nullopt;
    const Result<std::string_view> text = memory_current_.read_record();
    std::uint64_t bytes = 0;
    if (!text.ok() || !TextCursor(*text).number(bytes)) {
      add(kMemoryCurrent, Value::missing(reason_of(text)), out);
      return std::nullopt;
    }
    add(kMemoryCurrent, Value::of(bytes), out);
    return bytes;
  }

  void sample_memory_details(std::optional<std::uint64_t> current, SampleSink& out) {
    if (!memory_stat_.is_open()) return;
    KeyedNumbers& numbers = places_.memory.is_v2 ? memory_numbers_ : memory_numbers_v1_;
    const Result<std::string_view> text = memory_stat_.read_record();
    if (text.ok()) numbers.scan(*text);
    // Read a moment after the current size, the cache may be larger than it: then all of it can be given back.
    const auto inactive = text.ok() ? numbers.value(0) : std::nullopt;
    const auto working_set =
        current && inactive ? std::optional(*current - std::min(*inactive, *current)) : std::nullopt;
    if (memory_current_.is_open()) add(kMemoryWorkingSet, value_or_missing(working_set), out);
    add(kMemoryAnon, keyed(text, numbers, 1), out);
    add(kMemoryFile, keyed(text, numbers, 2), out);
    add(kMemoryShmem, keyed(text, numbers, 3), out);
  }

  void sample_memory_events(SampleSink& out) {
    if (!memory_events_.is_open()) return;
    const Result<std::string_view> text = memory_events_.read_record();
    std::optional<std::uint64_t> kills;
    if (places_.memory.is_v2) {
      if (text.ok()) event_numbers_.scan(*text);
      for (std::uint16_t i = 0; i < kEventKeys.size(); ++i) {
        add(static_cast<Metric>(kEventsHigh + i), keyed(text, event_numbers_, i), out);
      }
      kills = text.ok() ? event_numbers_.value(3) : std::nullopt;
    } else {
      if (text.ok()) oom_control_numbers_.scan(*text);
      kills = text.ok() ? oom_control_numbers_.value(0) : std::nullopt;
      add_known(kEventsOomKill, text, kills, out);
      std::uint64_t failures = 0;
      const Result<std::string_view> count = memory_failures_.is_open() ? memory_failures_.read_record() : text;
      if (memory_failures_.is_open() && count.ok() && TextCursor(*count).number(failures)) {
        add(kEventsMax, Value::of(failures), out);
      }
    }
    if (kills && kills_before_ && *kills > *kills_before_) {
      out.event(EventKind::kOomKill, static_cast<std::int64_t>(*kills - *kills_before_), "cgroup");
    }
    if (kills) kills_before_ = kills;
  }

  void sample_io(SampleSink& out) {
    if (!io_bytes_.is_open()) return;
    const Result<std::string_view> text = io_bytes_.read_list();
    if (!text.ok()) return add_missing_io(missing_reason(text.error()), out);
    if (places_.io.is_v2) {
      const IoTotals totals = read_io_stat(*text);
      add(kIoReadBytes, Value::of(totals.read_bytes), out);
      add(kIoWriteBytes, Value::of(totals.written_bytes), out);
      add(kIoReads, Value::of(totals.reads), out);
      add(kIoWrites, Value::of(totals.writes), out);
      return;
    }
    const std::optional<ReadWrite> bytes = read_blkio(*text);
    add_known(kIoReadBytes, text, bytes ? std::optional(bytes->read) : std::nullopt, out);
    add_known(kIoWriteBytes, text, bytes ? std::optional(bytes->written) : std::nullopt, out);
    if (!io_operations_.is_open()) return;
    const Result<std::string_view> count = io_operations_.read_list();
    const auto operations = count.ok() ? read_blkio(*count) : std::nullopt;
    add_known(kIoReads, count, operations ? std::optional(operations->read) : std::nullopt, out);
    add_known(kIoWrites, count, operations ? std::optional(operations->written) : std::nullopt, out);
  }

  void add_missing_io(MissingReason reason, SampleSink& out) {
    for (const Metric m : {kIoReadBytes, kIoWriteBytes, kIoReads, kIoWrites}) add(m, Value::missing(reason), out);
  }

  void sample_pressure(std::size_t index, Metric some, Metric full, SampleSink& out) {
    if (!pressure_[index].is_open()) return;
    const Result<std::string_view> text = pressure_[index].read_record();
    const PressureTotals totals = text.ok() ? read_pressure(*text) : PressureTotals{};
    add(some, value_or_missing(totals.some_us, reason_of(text)), out);
    if (full != kMetricCount) add(full, value_or_missing(totals.full_us, reason_of(text)), out);
  }

  KeptFile open(const std::string& path) const {
    Result<KeptFile> file = KeptFile::open(host_, path);
    return file.ok() ? std::move(file).value() : KeptFile{};
  }
  static MissingReason reason_of(const Result<std::string_view>& text) {
    return text.ok() ? MissingReason::kNotSupported : missing_reason(text.error());
  }
  static Value keyed(const Result<std::string_view>& text, const KeyedNumbers& numbers, std::size_t key) {
    return text.ok() ? value_or_missing(numbers.value(key)) : Value::missing(missing_reason(text.error()));
  }
  // A key that this kernel or this group does not have (no quota: no periods) makes no series.
  void add_known(Metric metric, const Result<std::string_view>& text, std::optional<std::uint64_t> value,
                 SampleSink& out) {
    if (text.ok() && !value && !series_[metric].valid()) return;
    add(metric, text.ok() ? value_or_missing(value) : Value::missing(missing_reason(text.error())), out);
  }
  void add(Metric metric, Value value, SampleSink& out) {
    if (!series_[metric].valid()) series_[metric] = out.series(metric, {});
    out.add(series_[metric], value);
  }

  const Host& host_;
  std::int32_t root_pid_ = 0;
  CgroupPlaces places_;
  bool has_places_ = false;
  std::string cgroup_text_;
  std::string cpu_folder_;     // where the tightest quota is
  std::string memory_folder_;  // where the tightest limit is
  KeptFile usage_, throttling_, memory_current_, memory_stat_, memory_events_, memory_failures_, io_bytes_,
      io_operations_;
  std::array<KeptFile, 3> pressure_;
  KeyedNumbers cpu_stat_{kCpuStatKeys};
  KeyedNumbers cpu_stat_limiting_{kCpuStatKeys};
  KeyedNumbers cpu_stat_v1_{kCpuStatKeysV1};
  KeyedNumbers memory_numbers_{kMemoryStatKeys};
  KeyedNumbers memory_numbers_v1_{kMemoryStatKeysV1};
  KeyedNumbers event_numbers_{kEventKeys};
  KeyedNumbers oom_control_numbers_{kOomControlKeys};
  std::optional<CpuSet> allowed_;  // the affinity
  std::optional<std::uint64_t> kills_before_;
  Due slow_due_{kSlowPeriodNs};
  Due limit_due_{kLimitPeriodNs};
  std::array<SeriesHandle, kMetricCount> series_{};
};

Result<std::unique_ptr<Collector>> open_collector(const Host& host) {
  if (!host.exists("/proc/self/status")) return Error{ErrorCode::kUnsupported, "/proc is not mounted"};
  return std::unique_ptr<Collector>(std::make_unique<CgroupCollector>(host));
}

}  // namespace

extern constinit const CollectorSpec collector_cgroup{
    .name = "cgroup",
    .summary = "What the job may use of the machine, what its control group uses, and when it was held back.",
    .metrics = kMetrics,
    .sees_end = true,
    .open = open_collector};

}  // namespace hotlap
