// What the job reads: bytes asked for and bytes that really came from storage, by role, and the mounts behind them.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/node_analyzer.h"
#include "analysis/time_profile.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"read_calls_bytes_per_s", "By/s", "asked for by the job, from storage or cache"},
    FactField{"read_storage_bytes_per_s", "By/s", "that came from storage"},
    FactField{"read_bytes_per_step", "By", "asked for, per step"},
    FactField{"written_bytes_per_s", "By/s", "that went to storage"},
    FactField{"io_pressure_pct", "%", "share of time in which some task waited for I/O"},
    FactField{"busiest_disk", "text", ""},
    FactField{"busiest_disk_pct", "%", "share of time in which it had something to do"},
    FactField{"data_mount", "text", "mount with the most files open by loader workers or the training process"},
    FactField{"data_mount_type", "text", "its file system"},
};
constexpr std::array kSchemas{FactSchema{"storage.summary", "what the job reads and writes", kFields}};
constexpr std::array<std::string_view, 6> kMetrics{
    "process.io.rchar.bytes",   "process.io.read.bytes", "process.io.write.bytes",
    "process.mount.open_files", "disk.busy.seconds",     "pressure.io.some.seconds",
};
constexpr std::size_t kSeriesMax = 4096;

class StorageAnalyzer final : public NodeAnalyzer<StorageAnalyzer> {
 public:
  explicit StorageAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  void on_event(const Event& event) override {
    // "mount /data: nfs4 server:/export"
    if (event.kind != EventKind::kNote || !event.text.starts_with("mount ")) return;
    const std::size_t colon = event.text.find(": ");
    if (colon == std::string::npos || types_.size() >= kSeriesMax) return;
    const std::string rest = event.text.substr(colon + 2);
    types_[event.text.substr(6, colon - 6)] = rest.substr(0, rest.find(' '));
  }

  // Of two recordings of a node, that which saw more steps: its rates are of them.
  std::int64_t seen_ns() const {
    const auto entries = table_->entries();
    return entries.empty() || rates_.empty() ? 0 : entries.front().steps->span_ns();
  }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto entries = table_->entries();
    if (entries.empty() || rates_.empty()) return;
    const SteadySteps& steady = entries.front().steps->steady();
    const double window_s = static_cast<double>(steady.to_ns - steady.from_ns) / static_cast<double>(kNsPerS);
    if (steady.sums.steps == 0 || window_s <= 1) return;
    Fact fact{.kind = "storage.summary"};
    fact.where.node = node;
    const auto read = total("process.io.rchar.bytes", steady);
    if (read) {
      fact.set("read_calls_bytes_per_s", *read / window_s);
      fact.set("read_bytes_per_step", *read / static_cast<double>(steady.sums.steps));
    }
    if (const auto bytes = total("process.io.read.bytes", steady))
      fact.set("read_storage_bytes_per_s", *bytes / window_s);
    if (const auto bytes = total("process.io.write.bytes", steady)) fact.set("written_bytes_per_s", *bytes / window_s);
    if (const auto found = rates_.find({"pressure.io.some.seconds", ""}); found != rates_.end()) {
      if (const auto share = found->second.rate(steady.from_ns, steady.to_ns))
        fact.set("io_pressure_pct", 100 * *share);
    }
    set_busiest(steady, fact);
    out.add(std::move(fact));
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (series.metric == "process.mount.open_files") {
      // "loader 0/mount /data"
      const std::size_t at = series.instance.find("/mount ");
      if (at != std::string::npos && mounts_.size() < kSeriesMax) {
        mounts_[series.instance.substr(at + 7)].add(points, series.scale);
      }
      return;
    }
    const auto key = std::pair(series.metric, series.instance);
    if (rates_.size() >= kSeriesMax && !rates_.contains(key)) return;
    rates_[key].add(points, series.scale);
  }

  std::optional<double> total(std::string_view metric, const SteadySteps& steady) const {
    std::optional<double> sum;
    for (const auto& [key, profile] : rates_) {
      if (key.first == metric) sum = sum.value_or(0) + profile.amount(steady.from_ns, steady.to_ns);
    }
    return sum;
  }

  void set_busiest(const SteadySteps& steady, Fact& fact) const {
    double most = -1;
    for (const auto& [key, profile] : rates_) {
      if (key.first != "disk.busy.seconds" || key.second.empty()) continue;
      const auto share = profile.rate(steady.from_ns, steady.to_ns);
      if (!share || *share <= most) continue;
      most = *share;
      fact.set_text("busiest_disk", key.second).set("busiest_disk_pct", std::min(100 * *share, 100.0));
    }
    double files = 0;
    for (const auto& [mount, profile] : mounts_) {
      const double mean = profile.mean(INT64_MIN / 4, INT64_MAX / 4).value_or(0);
      if (mean <= files) continue;
      files = mean;
      fact.set_text("data_mount", mount);
      if (const auto type = types_.find(mount); type != types_.end()) fact.set_text("data_mount_type", type->second);
    }
  }

  std::map<std::pair<std::string, std::string>, RateProfile> rates_;
  std::map<std::string, GaugeProfile> mounts_;
  std::map<std::string, std::string> types_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<StorageAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_storage{.id = "storage",
                                                     .summary = "What the job reads and writes, and from which mount.",
                                                     .produces = kSchemas,
                                                     .metrics = kMetrics,
                                                     .spans = {},
                                                     .takes_minutes = true,
                                                     .open = open};

}  // namespace hotlap
