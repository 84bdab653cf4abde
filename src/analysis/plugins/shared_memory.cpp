// Fill of /dev/shm, through which loader workers hand over their batches: when it is full, they die with a bus error.
#include <array>

#include "analysis/growth.h"
#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"total_bytes", "By", "size of /dev/shm"},
    FactField{"used_bytes", "By", "now"},
    FactField{"peak_bytes", "By", "the most"},
    FactField{"peak_pct", "%", "the same, of its size"},
    FactField{"shape", "text", "flat, leak, stairs, step, pool or spikes; absent: too short to say"},
    FactField{"growth_bytes_per_s", "By/s", "slope of the floor, of a leak or stairs"},
    FactField{"to_limit_s", "s", "time until it is full, if it goes on like this"},
};
constexpr std::array kSchemas{FactSchema{"shared_memory.summary", "fill of /dev/shm", kFields}};
constexpr std::array<std::string_view, 2> kMetrics{"shm.total.bytes", "shm.used.bytes"};
constexpr double kNoiseShare = 0.02;  // of its size

class SharedMemoryAnalyzer final : public NodeAnalyzer<SharedMemoryAnalyzer> {
 public:
  explicit SharedMemoryAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  std::int64_t seen_ns() const { return used_.end_ns() - used_.begin_ns(); }

  void snapshot_node(const std::string& node, FactTable& out) const {
    if (used_.is_empty() || !total_ || *total_ <= 0) return;
    Fact fact{.kind = "shared_memory.summary"};
    fact.where.node = node;
    const auto peak = used_.peak(INT64_MIN / 2, INT64_MAX);
    fact.set("total_bytes", total_).set("used_bytes", used_.last()).set("peak_bytes", peak);
    fact.set("peak_pct", 100 * *peak / *total_);
    if (const auto window = steady_or_observed(*table_, used_.begin_ns(), used_.end_ns())) {
      if (const auto growth = used_.growth(window->from_ns, window->to_ns, kNoiseShare * *total_)) {
        fact.set_text("shape", std::string(to_string(growth->shape)));
        if (growth->per_s > 0) {
          fact.set("growth_bytes_per_s", growth->per_s);
          fact.set("to_limit_s", std::max(*total_ - growth->last, 0.0) / growth->per_s);
        }
      }
    }
    out.add(std::move(fact));
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    for (const Point& point : points) {
      const auto number = last_value(point);
      if (!number) continue;
      if (series.metric == "shm.total.bytes") {
        total_ = *number * series.scale;
      } else {
        used_.add(point, series.scale);
      }
    }
  }

  LevelTrack used_;
  std::optional<double> total_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<SharedMemoryAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_shared_memory{.id = "shared_memory",
                                                           .summary = "Fill of /dev/shm.",
                                                           .produces = kSchemas,
                                                           .metrics = kMetrics,
                                                           .spans = {},
                                                           .takes_minutes = true,
                                                           .open = open};

}  // namespace hotlap
