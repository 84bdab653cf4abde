// Memory of the machine from /proc/meminfo; page faults, swapping and OOM kills, once a second, from /proc/vmstat.
#include <array>

#include "collect/collector.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::int64_t kVmstatPeriodNs = 1'000'000'000;  // 10 µs to read: it adds up all cores
constexpr double kKibibyte = 1024;                       // meminfo's "kB"

enum Metric : std::uint16_t {
  // One per key of kMeminfoKeys, in its order.
  kTotal,
  kFree,
  kAvailable,
  kBuffers,
  kCached,
  kInactiveFile,
  kSwapTotal,
  kSwapFree,
  kDirty,
  kWriteback,
  kAnon,
  kMapped,
  kShmem,
  kSlab,
  kSlabReclaimable,
  kWorkingSet,
  // One per key of kVmstatKeys, in its order.
  kSwapIn,
  kSwapOut,
  kFaults,
  kMajorFaults,
  kOomKills,
};
constexpr std::size_t kMeminfoSeries = kWorkingSet;
constexpr std::size_t kVmstatSeries = kOomKills - kSwapIn + 1;

constexpr std::array<std::string_view, kMeminfoSeries> kMeminfoKeys{
    "MemTotal", "MemFree",   "MemAvailable", "Buffers", "Cached", "Inactive(file)", "SwapTotal",   "SwapFree",
    "Dirty",    "Writeback", "AnonPages",    "Mapped",  "Shmem",  "Slab",           "SReclaimable"};
constexpr std::array<std::string_view, kVmstatSeries> kVmstatKeys{"pswpin", "pswpout", "pgfault", "pgmajfault",
                                                                  "oom_kill"};

constexpr MetricDesc level(std::string_view name, std::string_view help, MetricAliases aliases) {
  return {.name = name, .unit = "By", .help = help, .aliases = aliases, .scale = kKibibyte};
}
constexpr MetricDesc count(std::string_view name, std::string_view unit, std::string_view help, MetricAliases aliases) {
  return {.name = name,
          .unit = unit,
          .kind = MetricKind::kCounter,
          .help = help,
          .min_period_ns = kVmstatPeriodNs,
          .aliases = aliases};
}

constexpr std::array kMetrics{
    level("memory.total.bytes", "Memory that the kernel manages.",
          {"mem_total", "system.memory.limit", "node_memory_MemTotal_bytes"}),
    level("memory.free.bytes", "Memory used for nothing.",
          {"mem_free", "system.memory.usage{system.memory.state=\"free\"}", "node_memory_MemFree_bytes"}),
    level("memory.available.bytes", "What programs could still get without swapping, by the kernel's estimate.",
          {"mem_available", "system.linux.memory.available", "node_memory_MemAvailable_bytes"}),
    level("memory.buffers.bytes", "Cache of block devices.",
          {"", "system.memory.usage{system.memory.state=\"buffers\"}", "node_memory_Buffers_bytes"}),
    level("memory.cached.bytes", "Page cache, shared memory included.",
          {"mem_cached", "system.memory.usage{system.memory.state=\"cached\"}", "node_memory_Cached_bytes"}),
    level("memory.inactive_file.bytes", "Page cache not used lately, the first to be given back.",
          {"", "", "node_memory_Inactive_file_bytes"}),
    level("memory.swap_total.bytes", "Size of all swap.", {"", "", "node_memory_SwapTotal_bytes"}),
    level("memory.swap_free.bytes", "Swap not in use.",
          {"swap_free", "system.paging.usage{system.paging.state=\"free\"}", "node_memory_SwapFree_bytes"}),
    level("memory.dirty.bytes", "Changed file pages that wait to be written.", {"", "", "node_memory_Dirty_bytes"}),
    level("memory.writeback.bytes", "File pages being written.", {"", "", "node_memory_Writeback_bytes"}),
    level("memory.anon.bytes", "Pages of programs that belong to no file.", {"", "", "node_memory_AnonPages_bytes"}),
    level("memory.mapped.bytes", "File pages mapped into programs.", {"", "", "node_memory_Mapped_bytes"}),
    level("memory.shmem.bytes", "Shared memory and tmpfs, /dev/shm included.",
          {"mem_shared", "system.memory.linux.shared", "node_memory_Shmem_bytes"}),
    level("memory.slab.bytes", "The kernel's own structures.", {"", "", "node_memory_Slab_bytes"}),
    level("memory.slab_reclaimable.bytes", "The part of slab that can be given back.",
          {"", "system.linux.memory.slab.usage{system.memory.linux.slab.state=\"reclaimable\"}",
           "node_memory_SReclaimable_bytes"}),
    level("memory.working_set.bytes",
          "Memory in use without page cache that was not used lately: total - free - inactive_file.", {}),
    count("memory.swap_in.pages", "{page}", "Pages read from swap.",
          {"", "system.paging.operations{system.paging.direction=\"in\"}", "node_vmstat_pswpin"}),
    count("memory.swap_out.pages", "{page}", "Pages written to swap.",
          {"", "system.paging.operations{system.paging.direction=\"out\"}", "node_vmstat_pswpout"}),
    count("memory.page_faults", "{fault}", "Page faults, major ones included.",
          {"", "system.paging.faults", "node_vmstat_pgfault"}),
    count("memory.major_faults", "{fault}", "Page faults that had to read from disk or swap.",
          {"", "system.paging.faults{system.paging.type=\"major\"}", "node_vmstat_pgmajfault"}),
    count("memory.oom_kills", "{process}", "Processes killed on this machine because memory ran out.",
          {"", "", "node_vmstat_oom_kill"}),
};
static_assert(kMetrics.size() == kOomKills + 1);

class MemoryCollector final : public Collector {
 public:
  MemoryCollector(KeptFile meminfo, KeptFile vmstat) : meminfo_(std::move(meminfo)), vmstat_(std::move(vmstat)) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (!series_.is_registered()) series_.register_at(out, kTotal, {});
    HOTLAP_TRY_ASSIGN(const std::string_view text, meminfo_.read_record());
    levels_.scan(text);
    for (std::uint16_t m = kTotal; m < kWorkingSet; ++m) out.add(series_[m], value_or_missing(levels_.value(m)));
    const auto total = levels_.value(kTotal);
    const auto free = levels_.value(kFree);
    const auto inactive = levels_.value(kInactiveFile);
    const bool is_known = total && free && inactive && *total >= *free + *inactive;
    out.add(series_[kWorkingSet],
            is_known ? Value::of(*total - *free - *inactive) : Value::missing(MissingReason::kNotSupported));
    if (vmstat_.is_open() && vmstat_due_.at(tick.t_ns)) sample_vmstat(out);
    return Outcome::kSampled;
  }

 private:
  void sample_vmstat(SampleSink& out) {
    const Result<std::string_view> text = vmstat_.read_list();
    if (text.ok()) counts_.scan(*text);
    const MissingReason reason = text.ok() ? MissingReason::kNotSupported : missing_reason(text.error());
    for (std::uint16_t m = kSwapIn; m <= kOomKills; ++m) {
      out.add(series_[m], value_or_missing(text.ok() ? counts_.value(m - kSwapIn) : std::nullopt, reason));
    }
    const auto kills = text.ok() ? counts_.value(kOomKills - kSwapIn) : std::nullopt;
    if (kills && kills_before_ && *kills > *kills_before_) {
      out.event(EventKind::kOomKill, static_cast<std::int64_t>(*kills - *kills_before_), "host");
    }
    if (kills) kills_before_ = kills;
  }

  KeptFile meminfo_;
  KeptFile vmstat_;
  KeyedNumbers levels_{kMeminfoKeys};
  KeyedNumbers counts_{kVmstatKeys};
  Due vmstat_due_{kVmstatPeriodNs};
  std::optional<std::uint64_t> kills_before_;
  SeriesSet<kMetrics.size()> series_;
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY_ASSIGN(KeptFile meminfo, KeptFile::open(host, "/proc/meminfo"));
  Result<KeptFile> vmstat = KeptFile::open(host, "/proc/vmstat");
  KeptFile counts = vmstat.ok() ? std::move(vmstat).value() : KeptFile{};
  return std::unique_ptr<Collector>(std::make_unique<MemoryCollector>(std::move(meminfo), std::move(counts)));
}

}  // namespace

extern constinit const CollectorSpec collector_memory{
    .name = "memory",
    .summary = "Memory of the machine, page faults, swapping and OOM kills.",
    .metrics = kMetrics,
    .open = open};

}  // namespace hotlap
