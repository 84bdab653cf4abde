// CPU time of the machine and of each core, context switches and the run queue, from /proc/stat.
//
// "busy" is what ran here: user + nice + system + irq + softirq. Guests are inside user and nice; steal is time
// that the hypervisor gave to others; idle and iowait are time without work. The kernel lets idle and iowait shrink
// by a tick now and then: the integer is kept as it is, readers take a decrease for a reset.
#include <array>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "collect/collector.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr double kTickSeconds = 0.01;  // USER_HZ is 100 on every machine that we build for; open() checks
constexpr std::size_t kCoresRecorded = 1024;
constexpr std::uint64_t kCoreIdMax = 8192;  // the kernel's own bound on core ids

enum Metric : std::uint16_t {
  // In the order of the fields of /proc/stat.
  kUser,
  kNice,
  kSystem,
  kIdle,
  kIowait,
  kIrq,
  kSoftirq,
  kSteal,
  kGuest,
  kGuestNice,
  kBusy,
  kCount,
  kSwitches,
  kForks,
  kRunnable,
  kBlocked,
  kCoreBusy,
  kCoreIowait,
  kCoreSteal,
};
constexpr std::size_t kFields = kGuestNice + 1;
constexpr std::size_t kTotalSeries = kCoreBusy;
constexpr std::size_t kCoreSeries = 3;

constexpr MetricDesc cpu_time(std::string_view name, std::string_view help, MetricAliases aliases) {
  return {
      .name = name, .unit = "s", .kind = MetricKind::kCounter, .help = help, .aliases = aliases, .scale = kTickSeconds};
}

constexpr std::array kMetrics{
    cpu_time("cpu.user.seconds", "Time of all cores in user code, guests included.",
             {"cpu_time_user", "system.cpu.time{cpu.mode=\"user\"}", "node_cpu_seconds_total{mode=\"user\"}"}),
    cpu_time("cpu.nice.seconds", "Time of all cores in user code of lowered priority.",
             {"cpu_time_nice", "system.cpu.time{cpu.mode=\"nice\"}", "node_cpu_seconds_total{mode=\"nice\"}"}),
    cpu_time("cpu.system.seconds", "Time of all cores in the kernel.",
             {"cpu_time_system", "system.cpu.time{cpu.mode=\"system\"}", "node_cpu_seconds_total{mode=\"system\"}"}),
    cpu_time("cpu.idle.seconds", "Time of all cores without work.",
             {"cpu_time_idle", "system.cpu.time{cpu.mode=\"idle\"}", "node_cpu_seconds_total{mode=\"idle\"}"}),
    cpu_time("cpu.iowait.seconds", "Idle time of all cores while a task that last ran there waited for I/O.",
             {"cpu_time_iowait", "system.cpu.time{cpu.mode=\"iowait\"}", "node_cpu_seconds_total{mode=\"iowait\"}"}),
    cpu_time("cpu.irq.seconds", "Time of all cores in interrupt handlers.",
             {"cpu_time_irq", "system.cpu.time{cpu.mode=\"interrupt\"}", "node_cpu_seconds_total{mode=\"irq\"}"}),
    cpu_time("cpu.softirq.seconds", "Time of all cores in deferred interrupt work.",
             {"cpu_time_softirq", "system.cpu.time{cpu.mode=\"softirq\"}", "node_cpu_seconds_total{mode=\"softirq\"}"}),
    cpu_time("cpu.steal.seconds", "Time that the hypervisor gave to others while work was waiting here.",
             {"cpu_time_steal", "system.cpu.time{cpu.mode=\"steal\"}", "node_cpu_seconds_total{mode=\"steal\"}"}),
    cpu_time("cpu.guest.seconds", "Time of all cores running guests; part of user.",
             {"cpu_time_guest", "", "node_cpu_guest_seconds_total{mode=\"user\"}"}),
    cpu_time("cpu.guest_nice.seconds", "Time of all cores running guests of lowered priority; part of nice.",
             {"cpu_time_guest_nice", "", "node_cpu_guest_seconds_total{mode=\"nice\"}"}),
    cpu_time("cpu.busy.seconds",
             "Time of all cores at work: user, nice, system, irq and softirq; its rate is cores in use.",
             {"cpu_time_active", "", ""}),
    MetricDesc{.name = "cpu.count",
               .unit = "{core}",
               .help = "Cores that are online on the machine; see cpu.usable.cores for what the job may use.",
               .aliases = {"", "system.cpu.logical.count", ""}},
    MetricDesc{.name = "cpu.context_switches",
               .unit = "{switch}",
               .kind = MetricKind::kCounter,
               .help = "Context switches on all cores.",
               .aliases = {"", "", "node_context_switches_total"}},
    MetricDesc{.name = "cpu.forks",
               .unit = "{task}",
               .kind = MetricKind::kCounter,
               .help = "Processes and threads started.",
               .aliases = {"", "system.process.created", "node_forks_total"}},
    MetricDesc{.name = "cpu.runnable",
               .unit = "{task}",
               .help = "Tasks that run or wait for a core.",
               .aliases = {"processes_running", "", "node_procs_running"}},
    MetricDesc{.name = "cpu.blocked",
               .unit = "{task}",
               .help = "Tasks that wait for I/O to end.",
               .aliases = {"processes_blocked", "", "node_procs_blocked"}},
    cpu_time("cpu.core.busy.seconds", "Time of one core at work: user, nice, system, irq and softirq.",
             {"cpu_time_active{cpu}", "", ""}),
    cpu_time("cpu.core.iowait.seconds", "Idle time of one core while a task that last ran there waited for I/O.",
             {"cpu_time_iowait{cpu}", "system.cpu.time{cpu.mode=\"iowait\",cpu.logical_number}",
              "node_cpu_seconds_total{mode=\"iowait\",cpu}"}),
    cpu_time("cpu.core.steal.seconds", "Time of one core that the hypervisor gave to others while work was waiting.",
             {"cpu_time_steal{cpu}", "system.cpu.time{cpu.mode=\"steal\",cpu.logical_number}",
              "node_cpu_seconds_total{mode=\"steal\",cpu}"}),
};

using Fields = std::array<std::uint64_t, kFields>;

std::uint64_t total_ticks(const Fields& f) {
  return std::accumulate(f.begin() + kUser, f.begin() + kGuest, std::uint64_t{0});
}
std::uint64_t busy_ticks(const Fields& f) { return f[kUser] + f[kNice] + f[kSystem] + f[kIrq] + f[kSoftirq]; }

class CpuCollector final : public Collector {
 public:
  explicit CpuCollector(KeptFile file) : file_(std::move(file)) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (!total_.is_registered()) total_.register_at(out, kUser, {});
    HOTLAP_TRY_ASSIGN(const std::string_view text, file_.read_record());
    TextCursor cursor(text);
    if (!cursor.accept("cpu "))
      return Error{ErrorCode::kIo, file_.path() + ": does not start with the line of all cores"};
    Fields fields{};
    const std::size_t found = cursor.numbers(fields);
    cursor.skip_line();
    const bool has_changed = sample_cores(cursor, tick.number, out);
    sample_totals(fields, found, has_changed && has_leapt(fields, tick.t_ns), out);
    last_total_ticks_ = total_ticks(fields);
    last_ns_ = tick.t_ns;
    sample_tasks(cursor, out);
    return Outcome::kSampled;
  }

 private:
  void sample_totals(const Fields& fields, std::size_t found, bool is_reset, SampleSink& out) {
    const auto put = [&](Metric metric, bool is_there, std::uint64_t ticks) {
      out.add(total_[metric], !is_there  ? Value::missing(MissingReason::kNotSupported)
                              : is_reset ? Value::missing(MissingReason::kCounterReset)
                                         : Value::of(ticks));
    };
    for (std::uint16_t m = kUser; m <= kGuestNice; ++m) put(static_cast<Metric>(m), m < found, fields[m]);
    put(kBusy, found > kSoftirq, busy_ticks(fields));
  }

  // Where the totals are of the cores online only (as containers have them), a core that comes brings all its past.
  bool has_leapt(const Fields& fields, std::int64_t t_ns) const {
    const double passed_s = static_cast<double>(t_ns - last_ns_) / static_cast<double>(kNsPerS);
    const double most_ticks = (passed_s / kTickSeconds + 1) * static_cast<double>(cores_.size());
    return static_cast<double>(total_ticks(fields)) - static_cast<double>(last_total_ticks_) > 2 * most_ticks;
  }

  struct Core {
    SeriesSet<kCoreSeries> series;
    std::uint64_t pass = 0;  // of the last sighting; 0: never
    bool is_online = false;
    bool is_refused = false;  // beyond the bound
  };

  // Whether others are online than at the tick before.
  bool sample_cores(TextCursor& cursor, std::uint64_t tick_number, SampleSink& out) {
    ++pass_;
    bool has_changed = false;
    std::uint64_t online = 0;
    for (; cursor.accept("cpu"); cursor.skip_line()) {
      std::uint64_t id = 0;
      Fields fields{};
      if (!cursor.number(id) || id > kCoreIdMax) continue;
      const std::size_t found = cursor.numbers(fields);
      ++online;
      if (id >= cores_.size()) cores_.resize(id + 1);
      Core& core = cores_[id];
      core.pass = pass_;
      has_changed |= !core.is_online && tick_number > 0;
      if (!core.is_online) come_online(core, id, tick_number, out);
      if (core.is_refused) continue;
      out.add(core.series[0],
              found > kSoftirq ? Value::of(busy_ticks(fields)) : Value::missing(MissingReason::kNotSupported));
      out.add(core.series[1],
              found > kIowait ? Value::of(fields[kIowait]) : Value::missing(MissingReason::kNotSupported));
      out.add(core.series[2],
              found > kSteal ? Value::of(fields[kSteal]) : Value::missing(MissingReason::kNotSupported));
    }
    if (online == 0) {  // no machine is without a core: the text is not what it should be
      out.add(total_[kCount], Value::missing(MissingReason::kReadFailed));
      return false;
    }
    out.add(total_[kCount], Value::of(online));
    for (std::size_t id = 0; id < cores_.size(); ++id) {
      Core& core = cores_[id];
      if (!core.is_online || core.pass == pass_) continue;
      core.is_online = false;
      has_changed = true;
      out.event(EventKind::kCpuOffline, static_cast<std::int64_t>(id), {});
      if (!core.is_refused) core.series.add_missing(out, MissingReason::kSourceLost);
    }
    return has_changed;
  }

  void come_online(Core& core, std::uint64_t id, std::uint64_t tick_number, SampleSink& out) {
    core.is_online = true;
    if (tick_number > 0) out.event(EventKind::kCpuOnline, static_cast<std::int64_t>(id), {});
    if (core.series.is_registered() || core.is_refused) return;
    if (cores_recorded_ == kCoresRecorded) {
      core.is_refused = true;
      out.count_loss("record.series_refused", kCoreSeries);
      return;
    }
    ++cores_recorded_;
    core.series.register_at(out, kCoreBusy, format("core {}", id));
  }

  void sample_tasks(TextCursor& cursor, SampleSink& out) {
    struct Line {
      std::string_view key;
      Metric metric;
    };
    constexpr std::array kLines{Line{"ctxt ", kSwitches}, Line{"processes ", kForks}, Line{"procs_running ", kRunnable},
                                Line{"procs_blocked ", kBlocked}};
    std::array<std::optional<std::uint64_t>, kLines.size()> values;
    while (!cursor.at_end()) {
      for (std::size_t i = 0; i < kLines.size(); ++i) {
        std::uint64_t number = 0;
        if (cursor.accept(kLines[i].key) && cursor.number(number)) values[i] = number;
      }
      cursor.skip_line();
    }
    for (std::size_t i = 0; i < kLines.size(); ++i) out.add(total_[kLines[i].metric], value_or_missing(values[i]));
  }

  KeptFile file_;
  SeriesSet<kTotalSeries> total_;
  std::vector<Core> cores_;  // by id
  std::size_t cores_recorded_ = 0;
  std::uint64_t pass_ = 0;
  std::uint64_t last_total_ticks_ = 0;
  std::int64_t last_ns_ = 0;
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  if (host.clock_ticks_per_s() != 100)
    return Error{ErrorCode::kUnsupported, "/proc/stat: clock ticks are not 10 ms here"};
  HOTLAP_TRY_ASSIGN(KeptFile file, KeptFile::open(host, "/proc/stat"));
  return std::unique_ptr<Collector>(std::make_unique<CpuCollector>(std::move(file)));
}

}  // namespace

extern constinit const CollectorSpec collector_cpu{
    .name = "cpu",
    .summary = "CPU time of the machine and of each core, context switches and the run queue.",
    .metrics = kMetrics,
    .open = open};

}  // namespace hotlap
