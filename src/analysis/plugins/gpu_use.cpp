// How busy each GPU was during the typical steps: the distribution of its utilisation with the source's own window, how
// much of it a kernel really used, and the stretches in which it did nothing.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/level_profile.h"
#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"
#include "analysis/time_profile.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"name", "text", "what it is"},
    FactField{"is_of_job", "1", "1: the job uses it, 0: it does not; absent: not known"},
    FactField{"observed_s", "s", "time with a figure of its use"},
    FactField{"missing_pct", "%", "share of samples without one: MIG, no permission, lost"},
    FactField{"steps_only", "1", "1: during typical steps; 0: nobody saw a step, during all that was recorded"},
    FactField{"sample_period_s", "s", "from one sample to the next, mean"},
    FactField{"source_window_s", "s", "the source averages over this time: shorter stretches do not show"},
    FactField{"mean_pct", "%", "share of time in which any kernel ran, mean"},
    FactField{"first_pct", "%", "mean of the first quarter"},
    FactField{"last_pct", "%", "mean of the last quarter"},
    FactField{"p5_pct", "%", ""},
    FactField{"p50_pct", "%", ""},
    FactField{"p95_pct", "%", ""},
    FactField{"max_pct", "%", ""},
    FactField{"ever_pct", "%", "highest in the whole recording, start-up and tail included"},
    FactField{"idle_pct", "%", "share of time below 5 %"},
    FactField{"idle_count", "{stretch}", "stretches of it"},
    FactField{"idle_mean_s", "s", "length of one"},
    FactField{"idle_longest_s", "s", ""},
    FactField{"memory_controller_pct", "%", "share of time in which device memory was read or written"},
    FactField{"sm_active_pct", "%", "share of the streaming multiprocessors that were busy"},
    FactField{"sm_occupancy_pct", "%", "warps in flight of what fits"},
    FactField{"tensor_active_pct", "%", "share of time with tensor cores at work"},
    FactField{"dram_active_pct", "%", "device memory bandwidth in use"},
    FactField{"power_w", "W", "mean power"},
    FactField{"power_limit_w", "W", "limit that is enforced"},
};
constexpr std::array kSchemas{FactSchema{"gpu.use", "how busy one GPU was", kFields}};
constexpr std::array<std::string_view, 10> kMetrics{
    "gpu.busy.percent",
    "gpu.memory_controller.busy.percent",
    "gpu.sm_active.percent",
    "gpu.sm_occupancy.percent",
    "gpu.tensor_active.percent",
    "gpu.dram_active.percent",
    "gpu.power.watts",
    "gpu.power.limit.watts",
    "gpu.power.limit_requested.watts",
    "gpu.is_of_job",
};
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kMeans{{
    {"gpu.memory_controller.busy.percent", "memory_controller_pct"},
    {"gpu.sm_active.percent", "sm_active_pct"},
    {"gpu.sm_occupancy.percent", "sm_occupancy_pct"},
    {"gpu.tensor_active.percent", "tensor_active_pct"},
    {"gpu.dram_active.percent", "dram_active_pct"},
    {"gpu.power.watts", "power_w"},
}};

constexpr std::array<std::string_view, 1> kInFull{"gpu.busy.percent"};  // how it is spread, and when it is idle
constexpr std::size_t kGpusMax = 128;                                   // instances of MIG among them
constexpr double kIdleBelow = 5;
constexpr std::int64_t kGapNs = 15 * kNsPerS;          // a longer one between two samples is time that was not observed
constexpr std::int64_t kRarestNs = 15 * 60 * kNsPerS;  // but where samples are as rare as that all the time
constexpr std::size_t kStretchesMax = 4096;

struct Gpu {
  LevelProfile levels;
  TimeProfile idle_s{2048};
  TimeProfile idle_begins{2048};
  std::vector<std::pair<std::int64_t, std::int64_t>> idle;  // begin and length of the longest ones
  std::map<std::string, GaugeProfile, std::less<>> means;
  std::optional<double> is_of_job;
  double ever = -1;
  std::int64_t window_ns = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  std::int64_t gap_ns = 0;                 // between the last two
  std::int64_t idle_since_ns = INT64_MIN;  // INT64_MIN: it is not idle
  TimeProfile samples{2048};
  TimeProfile missing{2048};
};

class GpuUseAnalyzer final : public NodeAnalyzer<GpuUseAnalyzer> {
 public:
  explicit GpuUseAnalyzer(const RunDescription& run)
      : NodeAnalyzer(run), attributes_(run.recording == nullptr ? nullptr : &run.recording->attributes) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    if (gpus_.size() >= kGpusMax && !gpus_.contains(series.instance)) return;
    Gpu& gpu = gpus_[series.instance];
    if (series.metric == "gpu.busy.percent") {
      gpu.window_ns = series.window_ns;
      for (const SamplePoint& point : points) add_busy(gpu, point, series.scale);
      return;
    }
    take(gpu, series, points);
  }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override {
    if (gpus_.size() < kGpusMax || gpus_.contains(series.instance)) take(gpus_[series.instance], series, minutes);
  }

  std::int64_t seen_ns() const {
    std::int64_t most = 0;
    for (const auto& [name, gpu] : gpus_) {
      if (gpu.last_ns > gpu.first_ns) most = std::max(most, gpu.last_ns - gpu.first_ns);
    }
    return most;
  }

  void snapshot_node(const std::string& node, FactTable& out) const {
    std::int64_t from_ns = INT64_MAX;
    std::int64_t to_ns = INT64_MIN;
    for (const auto& [name, gpu] : gpus_) {
      from_ns = std::min(from_ns, gpu.first_ns);
      to_ns = std::max(to_ns, gpu.last_ns);
    }
    const auto window = steady_or_observed(*table_, from_ns, to_ns);
    if (!window) return;
    for (const auto& [name, gpu] : gpus_) {
      if (gpu.last_ns == INT64_MIN) continue;
      Fact fact{.kind = "gpu.use"};
      fact.where.node = node;
      fact.where.device = name;
      fill(gpu, *window, fact);
      if (attributes_ != nullptr) {
        if (const auto found = attributes_->find(name + ".name"); found != attributes_->end())
          fact.set_text("name", found->second);
      }
      out.add(std::move(fact));
    }
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  static void take(Gpu& gpu, const StoredSeries& series, std::span<const Point> points) {
    if (series.metric != "gpu.is_of_job") {
      gpu.means[series.metric].add(points, series.scale);
      return;
    }
    for (const Point& point : points) {
      if (const auto is = largest_value(point)) gpu.is_of_job = std::max(gpu.is_of_job.value_or(0), *is);
    }
  }

  static void add_busy(Gpu& gpu, const SamplePoint& point, double scale) {
    gpu.first_ns = std::min(gpu.first_ns, point.t_ns);
    const std::int64_t before_ns = gpu.last_ns;
    gpu.last_ns = point.t_ns;
    gpu.samples.add(point.t_ns, point.t_ns, 1);
    const auto number = point.value.number();
    const std::int64_t gap_ns = before_ns == INT64_MIN ? 0 : point.t_ns - before_ns;
    const std::int64_t longest_ns = std::max(kGapNs, std::min(gpu.gap_ns + gpu.gap_ns / 2, kRarestNs));
    const bool follows = gap_ns > 0 && gap_ns <= longest_ns;
    gpu.gap_ns = gap_ns;
    if (!number || !follows) end_idle(gpu, before_ns);
    if (!number) {
      gpu.missing.add(point.t_ns, point.t_ns, 1);
      return;
    }
    const double busy = *number * scale;
    gpu.ever = std::max(gpu.ever, busy);
    if (!follows) return;
    // A sample speaks for the time since the one before it.
    gpu.levels.add(point.t_ns, busy, static_cast<double>(point.t_ns - before_ns) / static_cast<double>(kNsPerS));
    if (busy >= kIdleBelow) {
      end_idle(gpu, before_ns);
      return;
    }
    gpu.idle_s.add(before_ns, point.t_ns, static_cast<double>(point.t_ns - before_ns) / static_cast<double>(kNsPerS));
    if (gpu.idle_since_ns == INT64_MIN) {
      gpu.idle_since_ns = before_ns;
      gpu.idle_begins.add(before_ns, before_ns, 1);
    }
  }

  static void end_idle(Gpu& gpu, std::int64_t t_ns) {
    if (gpu.idle_since_ns == INT64_MIN) return;
    gpu.idle.emplace_back(gpu.idle_since_ns, t_ns - gpu.idle_since_ns);
    gpu.idle_since_ns = INT64_MIN;
    if (gpu.idle.size() < kStretchesMax) return;
    std::ranges::stable_sort(gpu.idle, std::greater{}, &std::pair<std::int64_t, std::int64_t>::second);
    gpu.idle.resize(kStretchesMax / 2);
  }

  static void fill(const Gpu& gpu, const SteadyWindow& window, Fact& fact) {
    const std::int64_t from = window.from_ns;
    const std::int64_t to = window.to_ns;
    fact.set("steps_only", window.is_of_steps ? 1 : 0).set("is_of_job", gpu.is_of_job);
    const double samples = gpu.samples.sum(from, to);
    if (samples > 0.5) fact.set("missing_pct", std::min(100 * gpu.missing.sum(from, to) / samples, 100.0));
    for (const auto& [metric, field] : kMeans) {
      if (const auto found = gpu.means.find(metric); found != gpu.means.end())
        fact.set(field, found->second.mean(from, to));
    }
    // What is enforced, else what was asked for: a query may have asked for that one only.
    for (const std::string_view metric : {"gpu.power.limit_requested.watts", "gpu.power.limit.watts"}) {
      if (const auto found = gpu.means.find(metric); found != gpu.means.end())
        fact.set("power_limit_w", found->second.last());
    }
    const double observed = gpu.levels.weight(from, to);
    if (gpu.ever >= 0) fact.set("ever_pct", gpu.ever);
    if (observed <= 0) return;
    if (samples > 1) fact.set("sample_period_s", observed / samples);
    fact.set("observed_s", observed)
        .set("source_window_s", static_cast<double>(gpu.window_ns) / static_cast<double>(kNsPerS))
        .set("mean_pct", gpu.levels.mean(from, to))
        .set("first_pct", gpu.levels.mean(from, from + (to - from) / 4))
        .set("last_pct", gpu.levels.mean(to - (to - from) / 4, to))
        .set("p5_pct", gpu.levels.quantile(0.05, from, to))
        .set("p50_pct", gpu.levels.quantile(0.5, from, to))
        .set("p95_pct", gpu.levels.quantile(0.95, from, to))
        .set("max_pct", gpu.levels.quantile(1, from, to));
    const double idle_s = gpu.idle_s.sum(from, to);
    fact.set("idle_pct", std::min(100 * idle_s / observed, 100.0));
    const double count = std::round(gpu.idle_begins.sum(from, to));
    fact.set("idle_count", count);
    if (count >= 1) fact.set("idle_mean_s", idle_s / count);
    std::int64_t longest_ns = 0;
    const auto inside = [&](std::int64_t begin_ns, std::int64_t end_ns) {
      longest_ns = std::max(longest_ns, std::min(end_ns, to) - std::max(begin_ns, from));
    };
    for (const auto& [begin_ns, length_ns] : gpu.idle) inside(begin_ns, begin_ns + length_ns);
    if (gpu.idle_since_ns != INT64_MIN) inside(gpu.idle_since_ns, gpu.last_ns);
    fact.set("idle_longest_s", static_cast<double>(longest_ns) / static_cast<double>(kNsPerS));
  }

  const std::map<std::string, std::string>* attributes_;
  std::map<std::string, Gpu> gpus_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<GpuUseAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_gpu_use{.id = "gpu_use",
                                                     .summary = "How busy each GPU was, and when it was idle.",
                                                     .produces = kSchemas,
                                                     .metrics = kMetrics,
                                                     .spans = {},
                                                     .takes_minutes = true,
                                                     .in_full = kInFull,
                                                     .open = open};

}  // namespace hotlap
