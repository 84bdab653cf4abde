// Block devices from /proc/diskstats: each whole device that did something, and the total of the physical ones.
//
// Partitions are part of their disk; device-mapper, md and loop devices pass their I/O on to disks. So partitions
// are left out, and the stacked ones are recorded but not in the total. /sys/block tells which is which.
#include <array>

#include "base/format.h"
#include "collect/collector.h"
#include "collect/instances.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::size_t kDevicesMax = 128;
constexpr double kSectorBytes = 512;  // of diskstats, whatever the device's own sector is
constexpr double kMillisecond = 1e-3;

enum Metric : std::uint16_t {
  kReads,
  kReadBytes,
  kReadTime,
  kWrites,
  kWriteBytes,
  kWriteTime,
  kInFlight,
  kBusyTime,
  kWeightedTime,
  kTotalReads,
  kTotalReadBytes,
  kTotalReadTime,
  kTotalWrites,
  kTotalWriteBytes,
  kTotalWriteTime,
  kTotalInFlight,
};
constexpr std::size_t kDeviceSeries = kWeightedTime + 1;
constexpr std::size_t kTotalSeries = kTotalInFlight - kTotalReads + 1;

constexpr MetricDesc count(std::string_view name, std::string_view unit, double scale, std::string_view help,
                           MetricAliases aliases) {
  return {.name = name, .unit = unit, .kind = MetricKind::kCounter, .help = help, .aliases = aliases, .scale = scale};
}
constexpr std::array kMetrics{
    count("disk.reads", "{operation}", 1, "Reads completed.",
          {"diskio_reads", "system.disk.operations{disk.io.direction=\"read\"}", "node_disk_reads_completed_total"}),
    count("disk.read.bytes", "By", kSectorBytes, "Bytes read.",
          {"diskio_read_bytes", "system.disk.io{disk.io.direction=\"read\"}", "node_disk_read_bytes_total"}),
    count("disk.read.seconds", "s", kMillisecond, "Time that reads took, added up; over reads it is the mean wait.",
          {"diskio_read_time", "system.disk.operation_time{disk.io.direction=\"read\"}",
           "node_disk_read_time_seconds_total"}),
    count("disk.writes", "{operation}", 1, "Writes completed.",
          {"diskio_writes", "system.disk.operations{disk.io.direction=\"write\"}", "node_disk_writes_completed_total"}),
    count("disk.write.bytes", "By", kSectorBytes, "Bytes written.",
          {"diskio_write_bytes", "system.disk.io{disk.io.direction=\"write\"}", "node_disk_written_bytes_total"}),
    count("disk.write.seconds", "s", kMillisecond, "Time that writes took, added up; over writes it is the mean wait.",
          {"diskio_write_time", "system.disk.operation_time{disk.io.direction=\"write\"}",
           "node_disk_write_time_seconds_total"}),
    MetricDesc{.name = "disk.in_flight",
               .unit = "{operation}",
               .help = "Operations begun and not completed.",
               .aliases = {"diskio_iops_in_progress", "", "node_disk_io_now"}},
    count("disk.busy.seconds", "s", kMillisecond, "Time with at least one operation in flight.",
          {"diskio_io_time", "system.disk.io_time", "node_disk_io_time_seconds_total"}),
    count("disk.weighted.seconds", "s", kMillisecond,
          "Time weighted by operations in flight; its rate is the mean queue.",
          {"", "", "node_disk_io_time_weighted_seconds_total"}),
    count("disk.total.reads", "{operation}", 1, "Reads completed on all physical disks since recording began.", {}),
    count("disk.total.read.bytes", "By", kSectorBytes, "Bytes read from all physical disks since recording began.", {}),
    count("disk.total.read.seconds", "s", kMillisecond,
          "Time that reads of all physical disks took since recording began.", {}),
    count("disk.total.writes", "{operation}", 1, "Writes completed on all physical disks since recording began.", {}),
    count("disk.total.write.bytes", "By", kSectorBytes, "Bytes written to all physical disks since recording began.",
          {}),
    count("disk.total.write.seconds", "s", kMillisecond,
          "Time that writes of all physical disks took since recording began.", {}),
    MetricDesc{
        .name = "disk.total.in_flight", .unit = "{operation}", .help = "Operations in flight on all physical disks."},
};
static_assert(kMetrics.size() == kTotalInFlight + 1);

// Fields of a line after the name. Kernels append more (discards, flushes).
enum Field : std::size_t {
  kFReads,
  kFReadsMerged,
  kFReadSectors,
  kFReadMs,
  kFWrites,
  kFWritesMerged,
  kFWriteSectors,
  kFWriteMs,
  kFInFlight,
  kFBusyMs,
  kFWeightedMs,
  kFieldCount,
};
using Fields = std::array<std::uint64_t, kFieldCount>;
constexpr std::array<Field, kDeviceSeries> kFieldOfMetric{
    kFReads, kFReadSectors, kFReadMs, kFWrites, kFWriteSectors, kFWriteMs, kFInFlight, kFBusyMs, kFWeightedMs};

struct Device {
  bool is_whole = false;
  bool is_physical = false;
  SeriesSet<kDeviceSeries> series;  // registered when it first did something
  std::array<SumMember, kTotalSeries - 1> members;
};

class DiskCollector final : public Collector {
 public:
  DiskCollector(const Host& host, KeptFile file) : host_(host), file_(std::move(file)) {
    has_sysfs_ = host_.exists("/sys/block");
  }

  Result<Outcome> sample(const TickInfo&, SampleSink& out) override {
    HOTLAP_TRY_ASSIGN(const std::string_view text, file_.read_list());
    devices_.begin();
    std::uint64_t in_flight = 0;
    bool has_physical = false;
    for (TextCursor line(text); !line.at_end(); line.skip_line()) {
      std::uint64_t major = 0;
      std::uint64_t minor = 0;
      if (!line.number(major) || !line.number(minor)) continue;
      const std::string_view name = line.word();
      Fields fields{};
      if (name.empty() || line.numbers(fields) < kFieldCount) continue;
      auto* const slot = devices_.find_or_add(name);
      if (slot == nullptr) continue;
      if (slot->is_new) classify(slot->name, slot->entry);
      if (!slot->entry.is_whole) continue;
      sample_device(*slot, fields, out);
      if (!slot->entry.is_physical) continue;
      has_physical = true;
      in_flight += fields[kFInFlight];
    }
    devices_.end(out, kDeviceSeries, [&](auto& slot) {
      for (SumMember& member : slot.entry.members) member.forget();
      if (slot.entry.series.is_registered()) slot.entry.series.add_missing(out, MissingReason::kSourceLost);
    });
    if (has_physical) add_total(in_flight, out);
    return has_physical || !devices_.slots().empty() ? Outcome::kSampled : Outcome::kNoData;
  }

 private:
  void classify(const std::string& name, Device& device) const {
    // Names in sysfs have '!' where the device has '/' ("cciss!c0d0").
    std::string folder = "/sys/block/" + name;
    for (std::size_t i = sizeof("/sys/block/") - 1; i < folder.size(); ++i) {
      if (folder[i] == '/') folder[i] = '!';
    }
    if (has_sysfs_) {
      device.is_whole = host_.exists(folder);
      device.is_physical = device.is_whole && host_.exists(folder + "/device");
      return;
    }
    // A container without /sys: partitions can't be told for sure, so devices whose name ends as partitions' do are
    // left out.
    const bool ends_in_digit = name.back() >= '0' && name.back() <= '9';
    const bool is_nvme_disk = name.starts_with("nvme") && name.find('p') == std::string::npos;
    const bool is_stacked = name.starts_with("dm-") || name.starts_with("md") || name.starts_with("loop") ||
                            name.starts_with("ram") || name.starts_with("zram");
    device.is_whole = is_nvme_disk || !ends_in_digit || is_stacked;
    device.is_physical = device.is_whole && !is_stacked;
  }

  void sample_device(InstanceTable<Device>::Slot& slot, const Fields& fields, SampleSink& out) {
    Device& device = slot.entry;
    if (!device.series.is_registered()) {
      if (fields[kFReads] == 0 && fields[kFWrites] == 0 && !device.is_physical) return;
      device.series.register_at(out, kReads, slot.name);
    }
    for (std::size_t m = 0; m < kDeviceSeries; ++m) out.add(device.series[m], Value::of(fields[kFieldOfMetric[m]]));
    if (!device.is_physical) return;
    for (std::size_t m = 0; m < device.members.size(); ++m)
      device.members[m].add_to(sums_[m], fields[kFieldOfMetric[m]]);
  }

  void add_total(std::uint64_t in_flight, SampleSink& out) {
    if (!total_.is_registered()) total_.register_at(out, kTotalReads, {});
    for (std::size_t m = 0; m < sums_.size(); ++m) out.add(total_[m], Value::of(sums_[m]));
    out.add(total_[kTotalInFlight - kTotalReads], Value::of(in_flight));
  }

  const Host& host_;
  KeptFile file_;
  bool has_sysfs_ = false;
  InstanceTable<Device> devices_{kDevicesMax};
  std::array<std::uint64_t, kTotalSeries - 1> sums_{};
  SeriesSet<kTotalSeries> total_;
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY_ASSIGN(KeptFile file, KeptFile::open(host, "/proc/diskstats"));
  return std::unique_ptr<Collector>(std::make_unique<DiskCollector>(host, std::move(file)));
}

}  // namespace

extern constinit const CollectorSpec collector_disk{
    .name = "disk",
    .summary = "Reads, writes, waits and queue of each block device, and the total of the physical ones.",
    .metrics = kMetrics,
    .open = open};

}  // namespace hotlap
