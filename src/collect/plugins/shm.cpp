// Fill of /dev/shm, through which loader workers hand over their batches: when it is full, they die with "bus error".
#include <array>

#include "collect/collector.h"
#include "collect/sample.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = 1'000'000'000;
constexpr std::string_view kFolder = "/dev/shm";

constexpr MetricDesc level(std::string_view name, std::string_view help, MetricAliases aliases) {
  return {.name = name, .unit = "By", .help = help, .min_period_ns = kPeriodNs, .aliases = aliases};
}
constexpr std::array kMetrics{
    level("shm.total.bytes", "Size of /dev/shm.",
          {"disk_total{path=\"/dev/shm\"}", "", "node_filesystem_size_bytes{mountpoint=\"/dev/shm\"}"}),
    level("shm.used.bytes", "Used in /dev/shm.",
          {"disk_used{path=\"/dev/shm\"}",
           "system.filesystem.usage{system.filesystem.mountpoint=\"/dev/shm\",system.filesystem.state=\"used\"}", ""}),
    level("shm.available.bytes", "Left in /dev/shm.",
          {"disk_free{path=\"/dev/shm\"}", "", "node_filesystem_avail_bytes{mountpoint=\"/dev/shm\"}"}),
};

class ShmCollector final : public Collector {
 public:
  explicit ShmCollector(const Host& host) : host_(host) {}

  Result<Outcome> sample(const TickInfo&, SampleSink& out) override {
    if (!series_.is_registered()) series_.register_at(out, 0, {});
    // A tmpfs answers from memory: this does not block.
    HOTLAP_TRY_ASSIGN(const FilesystemUsage usage, host_.filesystem_usage(kFolder));
    out.add(series_[0], Value::of(usage.total_bytes));
    out.add(series_[1], usage.free_bytes <= usage.total_bytes ? Value::of(usage.total_bytes - usage.free_bytes)
                                                              : Value::missing(MissingReason::kReadFailed));
    out.add(series_[2], Value::of(usage.available_bytes));
    return Outcome::kSampled;
  }

 private:
  const Host& host_;
  SeriesSet<kMetrics.size()> series_;
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY(host.filesystem_usage(kFolder));
  return std::unique_ptr<Collector>(std::make_unique<ShmCollector>(host));
}

}  // namespace

extern constinit const CollectorSpec collector_shm{
    .name = "shm", .summary = "Fill of /dev/shm.", .metrics = kMetrics, .min_period_ns = kPeriodNs, .open = open};

}  // namespace hotlap
