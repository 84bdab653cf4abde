// Fill of file systems: what is left for users, and whether that shrinks.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/growth.h"
#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"total_bytes", "By", "its size"},
    FactField{"available_bytes", "By", "left for programs of users, now"},
    FactField{"first_available_bytes", "By", "and at the begin"},
    FactField{"fill_pct", "%", "what is not left, of its size"},
    FactField{"window_s", "s", "time over which it was seen"},
    FactField{"shape", "text", "of what is taken: flat, leak, stairs, step, pool or spikes; absent: too short to say"},
    FactField{"growth_bytes_per_s", "By/s", "slope of what is taken, of a leak or stairs"},
    FactField{"to_limit_s", "s", "time until nothing is left, if it goes on like this"},
};
constexpr std::array kSchemas{FactSchema{"filesystem.summary", "fill of one file system, by its mount", kFields}};
constexpr std::array<std::string_view, 2> kMetrics{"filesystem.total.bytes", "filesystem.available.bytes"};
constexpr std::size_t kMountsMax = 256;
constexpr double kNoiseBytesMin = 64 * 1024 * 1024.0;
constexpr double kNoiseShare = 0.001;  // of its size

struct Mount {
  LevelTrack available;
  std::optional<double> first;
  std::optional<double> total;
};

class FilesystemAnalyzer final : public NodeAnalyzer<FilesystemAnalyzer> {
 public:
  explicit FilesystemAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  std::int64_t seen_ns() const {
    std::int64_t most = 0;
    for (const auto& [name, mount] : mounts_)
      most = std::max(most, mount.available.end_ns() - mount.available.begin_ns());
    return most;
  }

  void snapshot_node(const std::string& node, FactTable& out) const {
    for (const auto& [name, mount] : mounts_) {
      if (mount.available.is_empty() || !mount.total || *mount.total <= 0) continue;
      Fact fact{.kind = "filesystem.summary"};
      fact.where.node = node;
      fact.where.device = name;
      fill(mount, fact);
      out.add(std::move(fact));
    }
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (mounts_.size() >= kMountsMax && !mounts_.contains(series.instance)) return;
    Mount& mount = mounts_[series.instance];
    for (const Point& point : points) {
      const auto number = last_value(point);
      if (!number) continue;
      if (series.metric == kMetrics[0]) {
        mount.total = *number * series.scale;
        continue;
      }
      if (!mount.first) mount.first = *number * series.scale;
      mount.available.add(point, series.scale);
    }
  }

  // All that was seen and not the typical steps alone: checkpoints and logs are written between them.
  static void fill(const Mount& mount, Fact& fact) {
    const double total = *mount.total;
    const double left = mount.available.last().value_or(0);
    fact.set("total_bytes", total).set("available_bytes", left).set("first_available_bytes", mount.first);
    fact.set("fill_pct", 100 * (1 - std::clamp(left / total, 0.0, 1.0)));
    const std::int64_t from_ns = mount.available.begin_ns();
    const std::int64_t to_ns = mount.available.end_ns();
    fact.set("window_s", static_cast<double>(to_ns - from_ns) / static_cast<double>(kNsPerS));
    const LevelTrack taken = mount.available.taken_of(total);
    const auto growth = taken.growth(from_ns, to_ns + 1, std::max(kNoiseBytesMin, kNoiseShare * total));
    if (!growth) return;
    fact.set_text("shape", std::string(to_string(growth->shape)));
    if (growth->per_s <= 0) return;
    fact.set("growth_bytes_per_s", growth->per_s).set("to_limit_s", left / growth->per_s);
  }

  std::map<std::string, Mount> mounts_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<FilesystemAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_filesystem{.id = "filesystem",
                                                        .summary = "Fill of file systems, and when they are full.",
                                                        .produces = kSchemas,
                                                        .metrics = kMetrics,
                                                        .spans = {},
                                                        .takes_minutes = true,
                                                        .open = open};

}  // namespace hotlap
