// How full the file systems are that hold data: local disks, NFS and other network mounts, FUSE. A mount whose
// server does not answer is reported as stuck, once, and its values are missing until it answers again; the others
// go on.
#include <algorithm>
#include <array>
#include <set>

#include "base/clock.h"
#include "collect/collector.h"
#include "collect/instances.h"
#include "collect/mount_prober.h"
#include "collect/mounts.h"
#include "collect/sample.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = 10 * kNsPerS;
constexpr std::int64_t kDeadlineNs = 500 * kNsPerMs;  // for one mount; a healthy NFS server answers within a few ms
constexpr std::size_t kMountsRead = 4096;
constexpr std::size_t kMountsMax = 64;

enum Metric : std::uint16_t { kTotal, kFree, kAvailable, kInodesTotal, kInodesFree, kMetricCount };

constexpr MetricDesc level(std::string_view name, std::string_view unit, std::string_view help, MetricAliases aliases) {
  return {.name = name, .unit = unit, .help = help, .min_period_ns = kPeriodNs, .aliases = aliases};
}
constexpr std::array kMetrics{
    level("filesystem.total.bytes", "By", "Size of the file system.",
          {"disk_total", "system.filesystem.limit", "node_filesystem_size_bytes"}),
    level("filesystem.free.bytes", "By", "Free, what is reserved for root included.",
          {"", "system.filesystem.usage{system.filesystem.state=\"free\"}", "node_filesystem_free_bytes"}),
    level("filesystem.available.bytes", "By", "Free for programs of users.",
          {"disk_free", "", "node_filesystem_avail_bytes"}),
    level("filesystem.inodes_total", "{inode}", "Files that there can be; 0 where there is no such limit.",
          {"disk_inodes_total", "", "node_filesystem_files"}),
    level("filesystem.inodes_free", "{inode}", "Files that can still be made.",
          {"disk_inodes_free", "", "node_filesystem_files_free"}),
};
static_assert(kMetrics.size() == kMetricCount);

struct MountSeries {
  SeriesSet<kMetricCount> series;
  bool is_stuck = false;
};

class FilesystemCollector final : public Collector {
 public:
  FilesystemCollector(const Host& host, KeptFile mountinfo)
      : mountinfo_(std::move(mountinfo)), prober_(host, kDeadlineNs) {}

  Result<Outcome> sample(const TickInfo&, SampleSink& out) override {
    HOTLAP_TRY_ASSIGN(const std::string_view text, mountinfo_.read());
    mounts_.begin();
    for (const Mount& mount : data_mounts(text)) {
      auto* const slot = mounts_.find_or_add(mount.point);
      if (slot != nullptr) sample_mount(*slot, out);
    }
    mounts_.end(out, kMetricCount, [&](auto& slot) {
      if (slot.entry.series.is_registered()) slot.entry.series.add_missing(out, MissingReason::kSourceLost);
    });
    return Outcome::kSampled;
  }

 private:
  // One mount per file system: bind mounts (a container's /etc/hosts) show the same one again. The mount of the whole
  // comes before one of a part, then the first.
  static std::vector<Mount> data_mounts(std::string_view mountinfo) {
    std::vector<Mount> mounts = parse_mountinfo(mountinfo, kMountsRead);
    std::erase_if(mounts,
                  [](const Mount& mount) { return is_pseudo_filesystem(mount.type) || mount.type == "squashfs"; });
    std::ranges::stable_partition(mounts, [](const Mount& mount) { return mount.root == "/"; });
    std::set<std::uint64_t> devices;
    std::set<std::string> points;
    std::erase_if(mounts, [&](const Mount& mount) {
      return !devices.insert(mount.device).second || !points.insert(mount.point).second;
    });
    return mounts;
  }

  void sample_mount(InstanceTable<MountSeries>::Slot& slot, SampleSink& out) {
    MountSeries& mount = slot.entry;
    if (!mount.series.is_registered()) mount.series.register_at(out, kTotal, slot.name);
    const std::optional<Result<FilesystemUsage>> usage = prober_.ask(slot.name);
    if (!usage) {
      if (!mount.is_stuck) out.event(EventKind::kMountStuck, 0, slot.name);
      mount.is_stuck = true;
      return mount.series.add_missing(out, MissingReason::kTimedOut);
    }
    mount.is_stuck = false;
    if (!usage->ok()) return mount.series.add_missing(out, missing_reason(usage->error()));
    const FilesystemUsage& found = **usage;
    out.add(mount.series[kTotal], Value::of(found.total_bytes));
    out.add(mount.series[kFree], Value::of(found.free_bytes));
    out.add(mount.series[kAvailable], Value::of(found.available_bytes));
    out.add(mount.series[kInodesTotal], Value::of(found.inodes_total));
    out.add(mount.series[kInodesFree], Value::of(found.inodes_free));
  }

  KeptFile mountinfo_;
  MountProber prober_;
  InstanceTable<MountSeries> mounts_{kMountsMax};
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY_ASSIGN(KeptFile mountinfo, KeptFile::open(host, "/proc/self/mountinfo"));
  return std::unique_ptr<Collector>(std::make_unique<FilesystemCollector>(host, std::move(mountinfo)));
}

}  // namespace

extern constinit const CollectorSpec collector_filesystem{
    .name = "filesystem",
    .summary = "How full the file systems are that hold data, network mounts included.",
    .metrics = kMetrics,
    .min_period_ns = kPeriodNs,
    .lane = Lane::kMayBlock,
    .open = open};

}  // namespace hotlap
