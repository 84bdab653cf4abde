// Memory of each GPU: used against total, what is left, and whether it grows. What the framework's allocator says of
// its own part tells a leak from fragmentation.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/growth.h"
#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"

namespace hotlap {
namespace {

constexpr std::array kMemoryFields{
    FactField{"is_of_job", "1", "1: the job uses this GPU, 0: it does not; absent: not known"},
    FactField{"total_bytes", "By", "size of the device memory"},
    FactField{"used_bytes", "By", "allocated now, by all"},
    FactField{"mean_bytes", "By", "during typical steps"},
    FactField{"peak_bytes", "By", "highest in the whole recording"},
    FactField{"peak_pct", "%", "the same, of total"},
    FactField{"mean_pct", "%", "mean of total during typical steps"},
    FactField{"headroom_bytes", "By", "total minus peak"},
    FactField{"steps_only", "1", "1: growth is that during typical steps"},
    FactField{"window_s", "s", "time over which growth was judged"},
    FactField{"shape", "text", "flat, leak, stairs, step, pool or spikes; absent: too short to say"},
    FactField{"first_bytes", "By", "its floor at the window's begin"},
    FactField{"last_bytes", "By", "and at its end"},
    FactField{"growth_bytes_per_s", "By/s", "slope of the floor, of a leak or stairs"},
    FactField{"growth_half_width", "By/s", "half of its 95 % interval"},
    FactField{"growth_bytes_per_step", "By", "the same per step"},
    FactField{"growth_from_s", "s", "when it began, or the step was, from the window's begin"},
    FactField{"rises", "{rise}", "of steps and stairs"},
    FactField{"rise_bytes", "By", "size of one"},
    FactField{"to_limit_s", "s", "time until it is full, if it goes on like this"},
    FactField{"spike_bytes", "By", "of spikes: peak above the floor"},
    FactField{"job_bytes", "By", "of processes of the job, as the driver tells"},
    FactField{"other_bytes", "By", "of other processes"},
    FactField{"job_processes", "{process}", "of the job that hold memory on it"},
    FactField{"processes", "{process}", "with a context on it, of the job or not"},
};
constexpr std::array kAllocatorFields{
    FactField{"process", "text", "label of the process"},
    FactField{"device", "text", "as the framework names it: cuda:0"},
    FactField{"allocated_bytes", "By", "in tensors, now"},
    FactField{"allocated_peak_bytes", "By", "the most at any time"},
    FactField{"reserved_bytes", "By", "taken from the driver, now"},
    FactField{"reserved_peak_bytes", "By", "the most at any time"},
    FactField{"gap_bytes", "By", "reserved and not allocated, now"},
    FactField{"gap_first_bytes", "By", "at the window's begin"},
    FactField{"gap_shape", "text", "as of gpu.memory"},
    FactField{"gap_bytes_per_s", "By/s", "slope"},
    FactField{"allocated_shape", "text", "as of gpu.memory"},
    FactField{"allocated_first_bytes", "By", "at the window's begin"},
    FactField{"allocated_bytes_per_s", "By/s", "slope"},
    FactField{"allocated_half_width", "By/s", "half of its 95 % interval"},
    FactField{"maximum_only", "1", "1: only the most so far is told: allocated is that"},
    FactField{"allocated_bytes_per_step", "By", "the same per step"},
    FactField{"retries", "{retry}", "times that cached memory had to be given back to get a block"},
    FactField{"ooms", "{error}", "times that no block could be had"},
    FactField{"window_s", "s", "time over which growth was judged"},
};
constexpr std::array kSchemas{
    FactSchema{"gpu.memory", "memory of one GPU", kMemoryFields},
    FactSchema{"gpu.allocator", "memory of one GPU as the framework's allocator sees it", kAllocatorFields}};
constexpr std::array<std::string_view, 7> kMetrics{
    "gpu.memory.used.bytes", "gpu.memory.total.bytes", "gpu.process.memory.bytes",
    "gpu.processes",         "gpu.is_of_job",          "allocator.",
    "hook.allocator.",
};
// Those of one look are put together by their time.
constexpr std::array<std::string_view, 2> kInFull{"allocator.", "hook.allocator."};
constexpr std::size_t kSeriesMax = 1024;
constexpr double kNoiseBytesMin = 64 * 1024 * 1024.0;
constexpr double kNoiseShare = 0.005;

struct Held {
  double bytes = 0;  // last
  std::int64_t t_ns = 0;
};
constexpr std::int64_t kGoneNs = 60 * kNsPerS;  // a process of a list that was not in it for so long has ended

struct Gpu {
  LevelTrack used;
  std::optional<double> total;
  std::optional<double> processes;
  std::optional<double> is_of_job;
  std::map<std::string, Held> by_process;
};
struct Allocator {
  LevelTrack allocated;
  LevelTrack allocated_max;  // over time, where that is all that is told: it never falls
  LevelTrack reserved;
  LevelTrack gap;
  std::map<std::int64_t, double> allocated_now;  // those whose reserved is still to come
  std::optional<double> allocated_peak;
  std::optional<double> reserved_peak;
  std::optional<double> retries_first;
  std::optional<double> retries;
  std::optional<double> ooms;
  std::map<std::int64_t, double> reserved_now;
};

// "gpu0/rank 0", "gpu0/mig1/rank 0": the device and who holds memory on it.
std::pair<std::string, std::string> device_and_process(const std::string& instance) {
  const std::size_t slash = instance.rfind('/');
  if (slash == std::string::npos) return {instance, {}};
  return {instance.substr(0, slash), instance.substr(slash + 1)};
}

class GpuMemoryAnalyzer final : public NodeAnalyzer<GpuMemoryAnalyzer> {
 public:
  explicit GpuMemoryAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    if (series.metric.find("allocator.") != std::string::npos) {
      on_allocator(series, points);
    } else {
      take(series, points);
    }
  }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  std::int64_t seen_ns() const {
    std::int64_t most = 0;
    for (const auto& [name, gpu] : gpus_) most = std::max(most, gpu.used.end_ns() - gpu.used.begin_ns());
    return most;
  }

  void snapshot_node(const std::string& node, FactTable& out) const {
    std::int64_t from_ns = INT64_MAX;
    std::int64_t to_ns = INT64_MIN;
    for (const auto& [name, gpu] : gpus_) {
      // A list of processes alone says who holds how much.
      for (const auto& [process, held] : gpu.by_process) {
        if (!gpu.used.is_empty()) break;
        from_ns = std::min(from_ns, held.t_ns - kGoneNs);
        to_ns = std::max(to_ns, held.t_ns);
      }
      if (gpu.used.is_empty()) continue;
      from_ns = std::min(from_ns, gpu.used.begin_ns());
      to_ns = std::max(to_ns, gpu.used.end_ns());
    }
    for (const auto& [key, allocator] : allocators_) {
      const LevelTrack& told = told_of(allocator);
      if (told.is_empty()) continue;
      from_ns = std::min(from_ns, told.begin_ns());
      to_ns = std::max(to_ns, told.end_ns());
    }
    const auto window = steady_or_observed(*table_, from_ns, to_ns);
    if (!window) return;
    const double steps_per_s = steps_per_second(*window);
    for (const auto& [name, gpu] : gpus_) {
      if (gpu.used.is_empty() && gpu.by_process.empty()) continue;
      Fact fact{.kind = "gpu.memory"};
      fact.where.node = node;
      fact.where.device = name;
      fill(gpu, *window, steps_per_s, fact);
      out.add(std::move(fact));
    }
    for (const auto& [key, allocator] : allocators_) {
      if (told_of(allocator).is_empty()) continue;
      Fact fact{.kind = "gpu.allocator"};
      fact.where.node = node;
      fact.set_text("process", key.first).set_text("device", key.second);
      fill(allocator, *window, steps_per_s, fact);
      out.add(std::move(fact));
    }
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    const bool is_of_process = series.metric == "gpu.process.memory.bytes";
    const auto [device, process] =
        is_of_process ? device_and_process(series.instance) : std::pair(series.instance, std::string());
    if (gpus_.size() >= kSeriesMax && !gpus_.contains(device)) return;
    Gpu& gpu = gpus_[device];
    for (const Point& point : points) {
      const auto number = last_value(point);
      if (!number) {
        if (is_of_process) gpu.by_process.erase(process);
        continue;
      }
      const double value = *number * series.scale;
      if (series.metric == "gpu.memory.used.bytes") {
        gpu.used.add(point, series.scale);
      } else if (series.metric == "gpu.memory.total.bytes") {
        gpu.total = value;
      } else if (series.metric == "gpu.processes") {
        gpu.processes = value;
      } else if (series.metric == "gpu.is_of_job") {
        gpu.is_of_job = std::max(gpu.is_of_job.value_or(0), *largest_value(point) * series.scale);
      } else if (gpu.by_process.size() < kSeriesMax) {
        gpu.by_process[process] = {value, end_ns(point)};
      }
    }
  }

  // "main/cuda:0", "rank 3/cuda:3": who, and the device as the framework names it.
  void on_allocator(const StoredSeries& series, std::span<const SamplePoint> points) {
    const std::size_t slash = series.instance.rfind('/');
    const auto key = slash == std::string::npos
                         ? std::pair(std::string(), series.instance)
                         : std::pair(series.instance.substr(0, slash), series.instance.substr(slash + 1));
    if (allocators_.size() >= kSeriesMax && !allocators_.contains(key)) return;
    Allocator& allocator = allocators_[key];
    const std::string_view what = std::string_view(series.metric).substr(series.metric.find("allocator.") + 10);
    for (const SamplePoint& point : points) {
      const auto number = point.value.number();
      if (!number) continue;
      const double value = *number * series.scale;
      if (what == "allocated.bytes") {
        allocator.allocated.add(point.t_ns, value);
        pair_up(allocator, point.t_ns, value, allocator.allocated_now, allocator.reserved_now, -1);
      } else if (what == "reserved.bytes") {
        allocator.reserved.add(point.t_ns, value);
        pair_up(allocator, point.t_ns, value, allocator.reserved_now, allocator.allocated_now, 1);
      } else if (what == "allocated_max.bytes") {
        allocator.allocated_peak = std::max(allocator.allocated_peak.value_or(value), value);
        allocator.allocated_max.add(point.t_ns, value);
      } else if (what == "reserved_max.bytes") {
        allocator.reserved_peak = std::max(allocator.reserved_peak.value_or(value), value);
      } else if (what == "retries") {
        if (!allocator.retries_first) allocator.retries_first = value;
        allocator.retries = value;
      } else if (what == "ooms") {
        allocator.ooms = std::max(allocator.ooms.value_or(0), value);
      }
    }
  }

  // The two figures of one look have one time, and come in series of their own.
  static void pair_up(Allocator& allocator, std::int64_t t_ns, double value, std::map<std::int64_t, double>& own,
                      std::map<std::int64_t, double>& other, double sign) {
    const auto found = other.find(t_ns);
    if (found != other.end()) {
      allocator.gap.add(t_ns, std::max(sign * (value - found->second), 0.0));
      other.erase(other.begin(), std::next(found));
      return;
    }
    own[t_ns] = value;
    if (own.size() > 4 * kSeriesMax) own.erase(own.begin());
  }

  double steps_per_second(const SteadyWindow& window) const {
    const auto entries = table_->entries();
    if (entries.empty() || window.seconds() <= 0) return 0;
    return static_cast<double>(entries.front().steps->steady().sums.steps) / window.seconds();
  }

  static void fill(const Gpu& gpu, const SteadyWindow& window, double steps_per_s, Fact& fact) {
    fact.set("is_of_job", gpu.is_of_job).set("total_bytes", gpu.total).set("used_bytes", gpu.used.last());
    fact.set("steps_only", window.is_of_steps ? 1 : 0).set("window_s", window.seconds());
    const auto mean = gpu.used.mean(window.from_ns, window.to_ns);
    const auto peak = gpu.used.peak(INT64_MIN / 2, INT64_MAX);
    fact.set("mean_bytes", mean).set("peak_bytes", peak).set("processes", gpu.processes);
    if (gpu.total && *gpu.total > 0) {
      if (peak) fact.set("peak_pct", 100 * *peak / *gpu.total).set("headroom_bytes", std::max(*gpu.total - *peak, 0.0));
      if (mean) fact.set("mean_pct", 100 * *mean / *gpu.total);
    }
    double job = 0;
    double others = 0;
    double holders = 0;
    std::int64_t last_ns = INT64_MIN;
    for (const auto& [process, held] : gpu.by_process) last_ns = std::max(last_ns, held.t_ns);
    for (const auto& [process, held] : gpu.by_process) {
      if (gpu.used.is_empty() && held.t_ns < last_ns - kGoneNs) continue;
      (process == "other" ? others : job) += held.bytes;
      if (process != "other") holders += 1;
    }
    if (!gpu.by_process.empty()) fact.set("job_bytes", job).set("other_bytes", others).set("job_processes", holders);
    const double noise = std::max(kNoiseBytesMin, kNoiseShare * gpu.total.value_or(0));
    const auto growth = gpu.used.growth(window.from_ns, window.to_ns, noise);
    if (!growth) return;
    fact.set_text("shape", std::string(to_string(growth->shape)))
        .set("first_bytes", growth->first)
        .set("last_bytes", growth->last)
        .set("growth_from_s", growth->from_s);
    if (growth->rises > 0) fact.set("rises", static_cast<double>(growth->rises)).set("rise_bytes", growth->rise);
    if (growth->shape == GrowthShape::kSpikes) fact.set("spike_bytes", growth->peak - growth->last);
    if (growth->per_s <= 0) return;
    fact.set("growth_bytes_per_s", growth->per_s).set("growth_half_width", growth->half_width);
    if (steps_per_s > 0) fact.set("growth_bytes_per_step", growth->per_s / steps_per_s);
    if (gpu.total) fact.set("to_limit_s", std::max(*gpu.total - growth->last, 0.0) / growth->per_s);
  }

  static const LevelTrack& told_of(const Allocator& a) {
    return a.allocated.is_empty() ? a.allocated_max : a.allocated;
  }

  static void fill(const Allocator& a, const SteadyWindow& window, double steps_per_s, Fact& fact) {
    fact.set("allocated_bytes", told_of(a).last()).set("reserved_bytes", a.reserved.last());
    fact.set("allocated_peak_bytes", a.allocated_peak ? a.allocated_peak : a.allocated.peak(INT64_MIN / 2, INT64_MAX));
    fact.set("reserved_peak_bytes", a.reserved_peak ? a.reserved_peak : a.reserved.peak(INT64_MIN / 2, INT64_MAX));
    fact.set("gap_bytes", a.gap.last()).set("window_s", window.seconds()).set("ooms", a.ooms);
    if (a.retries && a.retries_first) fact.set("retries", *a.retries - *a.retries_first);
    const bool is_maximum = a.allocated.is_empty();
    if (is_maximum) fact.set("maximum_only", 1);
    if (const auto growth = told_of(a).growth(window.from_ns, window.to_ns, kNoiseBytesMin / 4)) {
      fact.set_text("allocated_shape", std::string(to_string(growth->shape)));
      fact.set("allocated_first_bytes", growth->first);
      // What never falls goes up in stairs whenever an input is larger than those before.
      if (growth->per_s > 0 && !(is_maximum && growth->shape != GrowthShape::kLeak)) {
        fact.set("allocated_half_width", growth->half_width);
        fact.set("allocated_bytes_per_s", growth->per_s);
        if (steps_per_s > 0) fact.set("allocated_bytes_per_step", growth->per_s / steps_per_s);
      }
    }
    if (const auto growth = a.gap.growth(window.from_ns, window.to_ns, kNoiseBytesMin)) {
      fact.set_text("gap_shape", std::string(to_string(growth->shape))).set("gap_first_bytes", growth->first);
      if (growth->per_s > 0) fact.set("gap_bytes_per_s", growth->per_s);
    }
  }

  std::map<std::string, Gpu> gpus_;
  std::map<std::pair<std::string, std::string>, Allocator> allocators_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<GpuMemoryAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_gpu_memory{.id = "gpu_memory",
                                                        .summary = "Memory of each GPU, and whether it grows.",
                                                        .produces = kSchemas,
                                                        .metrics = kMetrics,
                                                        .spans = {},
                                                        .takes_minutes = true,
                                                        .in_full = kInFull,
                                                        .open = open};

}  // namespace hotlap
