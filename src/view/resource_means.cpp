#include "view/resource_means.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "analysis/block_means.h"
#include "base/clock.h"
#include "base/format.h"
#include "model/counter.h"
#include "model/wall_clock.h"

namespace hotlap {
namespace {

constexpr std::uint32_t kBlockTicks = 4;             // a short run has few ticks; blocks grow with their number
constexpr double kSamplesAtOnceMax = 400e3;          // in memory
constexpr std::int64_t kWindowNsMin = 10 * kNsPerS;  // of one reading
constexpr std::size_t kSeriesMax = 4096;

// What one tick of several series comes to.
enum class Fold { kMean, kSum };

// The series of one metric, or of one that stands in for it, as one figure over time.
class Track {
 public:
  Track(std::string_view metric, Fold fold, bool is_of_gpu) : metric_(metric), fold_(fold), is_of_gpu_(is_of_gpu) {}

  std::string_view metric() const { return metric_; }
  bool is_of_gpu() const { return is_of_gpu_; }
  bool has_series() const { return has_series_; }
  void meet() { has_series_ = true; }

  void begin_recording(std::size_t instances) {
    instances_ = instances;
    last_.clear();
  }

  void add(const StoredSeries& series, std::span<const SamplePoint> points) {
    for (const SamplePoint& point : points) {
      if (series.kind == MetricKind::kCounter) {
        add_rate(series, point);
      } else {
        put(point.t_ns, point.value.number(), series.scale);
        if (point.value.is_missing()) ++reasons_[point.value.reason()];
      }
    }
  }

  // What was added so far is complete: later samples are later in time.
  void close_window() {
    for (const auto& [t_ns, tick] : ticks_) {
      // A GPU that gave nothing would make the sum of the others look like less; processes come and go.
      if (tick.values == 0 || (is_of_gpu_ && tick.values < instances_)) continue;
      blocks_.add(fold_ == Fold::kMean ? tick.sum / static_cast<double>(tick.values) : tick.sum);
    }
    ticks_.clear();
  }

  ResourceMean mean(std::string_view absent) const {
    if (const auto interval = blocks_.interval()) {
      return {.measured = Measured{interval->mean, interval->half_width}, .missing = {}};
    }
    if (!has_series_) return {.measured = {}, .missing = std::string(absent)};
    if (reasons_.empty()) return {.measured = {}, .missing = "not sampled during the typical steps"};
    const auto most = std::max_element(reasons_.begin(), reasons_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return {.measured = {}, .missing = std::string(to_string(most->first))};
  }

 private:
  struct Tick {
    double sum = 0;
    std::size_t values = 0;
  };

  void add_rate(const StoredSeries& series, const SamplePoint& point) {
    const auto [last, is_first] = last_.try_emplace(series.handle.index, point);
    if (!is_first) {
      const Value delta = counter_delta(last->second.value, point.value);
      const std::int64_t dt_ns = point.t_ns - last->second.t_ns;
      if (delta.is_missing()) {
        ++reasons_[delta.reason()];
      } else if (dt_ns > 0) {
        put(point.t_ns, delta.number(), series.scale * 1e9 / static_cast<double>(dt_ns));
      }
    }
    last->second = point;
  }

  void put(std::int64_t t_ns, std::optional<double> value, double scale) {
    if (!value) return;
    Tick& tick = ticks_[t_ns];
    tick.sum += *value * scale;
    ++tick.values;
  }

  std::string_view metric_;
  Fold fold_;
  bool is_of_gpu_;
  bool has_series_ = false;
  std::size_t instances_ = 0;
  std::map<std::int64_t, Tick> ticks_;  // of one window
  std::map<std::uint32_t, SamplePoint> last_;
  std::map<MissingReason, std::uint64_t> reasons_;
  BlockMeans blocks_{kBlockTicks};
};

// Which GPUs the job uses; all of them where that is not known.
std::set<std::string> gpus_of_job(RecordingReader& reader, TimeRange range) {
  std::set<std::string> all;
  std::set<std::string> of_job;
  std::vector<SeriesHandle> wanted;
  std::map<std::uint32_t, std::string> names;
  for (const StoredSeries& series : reader.series()) {
    if (series.metric.starts_with("gpu.busy.")) all.insert(series.instance);
    if (series.metric != "gpu.is_of_job" || wanted.size() >= kSeriesMax) continue;
    wanted.push_back(series.handle);
    names[series.handle.index] = series.instance;
  }
  // The last minute tells: what a job uses does not change while it trains.
  range.from_ns = std::max(range.from_ns, range.to_ns - std::min(range.to_ns, 60 * kNsPerS));
  (void)reader
      .read_samples(wanted, range,
                    [&](SeriesHandle series, std::span<const SamplePoint> points) {
                      if (!points.empty() && points.back().value.number() == 1.0) of_job.insert(names[series.index]);
                    })
      .ok();
  return of_job.empty() ? all : of_job;
}

// The window on the clock of `reader`.
std::optional<TimeRange> window_of(RecordingReader& reader, const StepWindow& window, RunReader& run) {
  if (window.node.empty() || reader.info().node == window.node) return window.range;
  // Of another node: by Unix time.
  for (const auto& base : run.recordings()) {
    if (base->info().node != window.node) continue;
    Result<std::vector<ClockReading>> base_readings = base->read_clock();
    Result<std::vector<ClockReading>> readings = reader.read_clock();
    if (!base_readings.ok() || !readings.ok() || readings->empty()) return std::nullopt;
    const std::int64_t offset_ns = readings->front().mono_ns - readings->front().wall_ns;
    const WallClock clock(std::move(*base_readings));
    const auto from = clock.wall_ns(window.range.from_ns);
    const auto to = clock.wall_ns(window.range.to_ns);
    if (!from || !to) return std::nullopt;
    return TimeRange{.from_ns = *from + offset_ns, .to_ns = *to + offset_ns};
  }
  return std::nullopt;
}

class Tracks {
 public:
  Tracks() {
    tracks_.emplace_back("cpu.busy.seconds", Fold::kSum, false);
    tracks_.emplace_back("cpu.usable.cores", Fold::kMean, false);
    tracks_.emplace_back("gpu.busy.percent", Fold::kMean, true);
    tracks_.emplace_back("gpu.sm_active.percent", Fold::kMean, true);
    tracks_.emplace_back("process.memory.rss.bytes", Fold::kSum, false);
    tracks_.emplace_back("gpu.memory.used.bytes", Fold::kSum, true);
    tracks_.emplace_back("gpu.power.watts", Fold::kSum, true);
    tracks_.emplace_back("gpu.energy.joules", Fold::kSum, true);
  }

  void read(RecordingReader& reader, TimeRange range) {
    is_imported_ |= reader.info().attributes.contains("source.file");
    const std::set<std::string> gpus = gpus_of_job(reader, range);
    std::map<std::uint32_t, std::pair<Track*, const StoredSeries*>> by_series;
    std::vector<SeriesHandle> wanted;
    for (Track& track : tracks_) {
      std::size_t instances = 0;
      for (const StoredSeries& series : reader.series()) {
        if (series.metric != track.metric()) continue;
        track.meet();
        if ((track.is_of_gpu() && !gpus.contains(series.instance)) || wanted.size() >= kSeriesMax) continue;
        ++instances;
        wanted.push_back(series.handle);
        by_series[series.handle.index] = {&track, &series};
      }
      track.begin_recording(instances);
    }
    const Result<TimeRange> extent = reader.extent();
    if (wanted.empty() || !extent.ok() || extent->from_ns > extent->to_ns) return;
    range.from_ns = std::max(range.from_ns, extent->from_ns);
    range.to_ns = std::min(range.to_ns, extent->to_ns + 1);
    const auto interval_ns = static_cast<double>(std::max(reader.info().interval_ns, kNsPerMs));
    const double window_ns = kSamplesAtOnceMax / static_cast<double>(wanted.size()) * interval_ns;
    const std::int64_t step_ns = std::max(static_cast<std::int64_t>(std::min(window_ns, 1e16)), kWindowNsMin);
    for (std::int64_t from_ns = range.from_ns; from_ns < range.to_ns;) {
      const std::int64_t to_ns = range.to_ns - from_ns > step_ns ? from_ns + step_ns : range.to_ns;
      const Result<void> done = reader.read_samples(wanted, {.from_ns = from_ns, .to_ns = to_ns},
                                                    [&](SeriesHandle handle, std::span<const SamplePoint> points) {
                                                      const auto found = by_series.find(handle.index);
                                                      if (found != by_series.end())
                                                        found->second.first->add(*found->second.second, points);
                                                    });
      for (Track& track : tracks_) track.close_window();
      if (!done.ok()) return;  // named among the run's problems by its analysis
      from_ns = to_ns;
    }
  }

  ResourceMeans means() const {
    ResourceMeans out;
    out.cpu_busy_pct = cpu();
    out.gpu_busy_pct = tracks_[2].mean("no GPU was recorded");
    const std::string_view no_detail = !tracks_[2].has_series() ? "no GPU was recorded"
                                       : is_imported_           ? "not in the files"
                                                                : "this GPU does not tell";
    out.gpu_sm_active_pct = tracks_[3].mean(no_detail);
    out.memory_bytes = tracks_[4].mean("the job's processes were not sampled");
    out.gpu_memory_bytes = tracks_[5].mean(no_detail);
    // The energy counter does not depend on when the power was looked at.
    out.gpu_power_w = tracks_[7].mean(no_detail);
    if (!out.gpu_power_w.measured) out.gpu_power_w = tracks_[6].mean(no_detail);
    return out;
  }

 private:
  ResourceMean cpu() const {
    ResourceMean busy = tracks_[0].mean("CPU use was not sampled");
    const ResourceMean usable = tracks_[1].mean("the cores that the job may use are not known");
    if (!busy.measured) return busy;
    if (!usable.measured) return usable;
    if (usable.measured->value <= 0) return {.measured = {}, .missing = "the cores that the job may use are not known"};
    const double factor = 100 / usable.measured->value;
    busy.measured->value *= factor;
    if (busy.measured->half_width) *busy.measured->half_width *= factor;
    return busy;
  }

  std::vector<Track> tracks_;
  bool is_imported_ = false;  // nobody asked the GPU
};

}  // namespace

ResourceMeans read_resource_means(RunReader& run, const std::optional<StepWindow>& window) {
  Tracks tracks;
  if (!window) {
    const ResourceMean none{.measured = {}, .missing = "no typical steps"};
    return {none, none, none, none, none, none};
  }
  for (const auto& reader : run.recordings()) {
    if (const auto range = window_of(*reader, *window, run)) tracks.read(*reader, *range);
  }
  return tracks.means();
}

}  // namespace hotlap
