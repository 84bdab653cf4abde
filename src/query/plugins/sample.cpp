// Every sample of every series, window by window.
#include <algorithm>
#include <array>

#include "base/clock.h"
#include "model/counter.h"
#include "query/table.h"

namespace hotlap {
namespace {

enum : std::size_t { kTS, kTNs, kUnix, kMetric, kInstance, kValue, kMissing, kRate, kUnit, kKind, kNode, kRecording };
constexpr std::array kColumns{
    ColumnDesc{"t_s", ColumnType::kReal, "seconds since the run's first sample"},
    ColumnDesc{"t_ns", ColumnType::kInteger, "the recording's monotonic clock", ColumnFilter::kTime},
    ColumnDesc{"unix_ns", ColumnType::kInteger, "Unix time; NULL where it is not known"},
    ColumnDesc{"metric", ColumnType::kText, "its name (metrics.md)", ColumnFilter::kEquals},
    ColumnDesc{"instance", ColumnType::kText, "'core 3', 'gpu0', 'loader 1'; '' where there is only one",
               ColumnFilter::kEquals},
    ColumnDesc{"value", ColumnType::kReal, "in the metric's unit, counters as they stood; NULL: missing"},
    ColumnDesc{"missing", ColumnType::kText, "why value is NULL; else NULL"},
    ColumnDesc{
        "rate", ColumnType::kReal,
        "of a counter: growth per second since its sample before; NULL for the first one, across a reset and for "
        "gauges"},
    ColumnDesc{"unit", ColumnType::kText, "UCUM"},
    ColumnDesc{"kind", ColumnType::kText, "'gauge' or 'counter'"},
    ColumnDesc{"node", ColumnType::kText, "where it was taken", ColumnFilter::kEquals},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

constexpr std::size_t kRowsAtOnceMax = 100'000;
constexpr std::int64_t kWindowNsMin = kNsPerS;
constexpr std::int64_t kWindowNsMax = 1'000'000 * kNsPerS;

class Rows final : public RowSource {
 public:
  Rows(QueriedRun& run, RowFilter filter) : run_(run), filter_(std::move(filter)) {}

  std::span<const Cell> row() const override { return cells_; }

  Result<bool> next() override {
    while (at_ >= points_.size()) {
      HOTLAP_TRY_ASSIGN(const bool has_more, fill());
      if (!has_more) return false;
    }
    show(points_[at_++]);
    return true;
  }

 private:
  struct Point {
    const StoredSeries* series;
    SamplePoint sample;
    std::optional<double> rate;
  };

  // The next window that has samples. Windows grow where there are few, as in captures with days between them, and one
  // that turns out to hold too many is read again in pieces.
  Result<bool> fill() {
    points_.clear();
    at_ = 0;
    while (true) {
      if (from_ns_ >= to_ns_ && !open_next()) return false;
      if (from_ns_ >= to_ns_) continue;
      const std::int64_t end_ns = to_ns_ - from_ns_ > step_ns_ ? from_ns_ + step_ns_ : to_ns_;
      const std::map<std::uint32_t, SamplePoint> last = last_;
      is_overfull_ = false;
      HOTLAP_TRY(recording_->reader->read_samples(
          wanted_, {.from_ns = from_ns_, .to_ns = end_ns},
          [&](SeriesHandle handle, std::span<const SamplePoint> samples) { take(handle, samples); }));
      if (is_overfull_) {
        points_.clear();
        last_ = last;
        step_ns_ = std::max(step_ns_ / 16, least_step_ns_);
        continue;
      }
      from_ns_ = end_ns;
      if (points_.size() < kRowsAtOnceMax / 4) step_ns_ = std::min(2 * step_ns_, kWindowNsMax);
      if (!points_.empty()) return true;
    }
  }

  void take(SeriesHandle handle, std::span<const SamplePoint> samples) {
    if (step_ns_ > least_step_ns_ && points_.size() > kRowsAtOnceMax) is_overfull_ = true;
    if (is_overfull_) return;
    const StoredSeries* series = by_handle_[handle.index];
    for (const SamplePoint& sample : samples) {
      std::optional<double> rate;
      if (series->kind == MetricKind::kCounter) {
        const auto [last, is_first] = last_.try_emplace(handle.index, sample);
        if (!is_first) {
          const auto delta = counter_delta(last->second.value, sample.value).number();
          const std::int64_t dt_ns = sample.t_ns - last->second.t_ns;
          if (delta && dt_ns > 0) rate = *delta * series->scale * 1e9 / static_cast<double>(dt_ns);
          last->second = sample;
        }
      }
      points_.push_back({series, sample, rate});
    }
  }

  bool open_next() {
    while (next_recording_ < run_.recordings().size()) {
      recording_ = &run_.recordings()[next_recording_++];
      if (!filter_.wants(kNode, recording_->node)) continue;
      wanted_.clear();
      by_handle_.clear();
      last_.clear();
      for (const StoredSeries& series : recording_->reader->series()) {
        if (!filter_.wants(kMetric, series.metric) || !filter_.wants(kInstance, series.instance)) continue;
        wanted_.push_back(series.handle);
        by_handle_[series.handle.index] = &series;
      }
      const Result<TimeRange> extent = recording_->reader->extent();
      if (wanted_.empty() || !extent.ok() || extent->from_ns > extent->to_ns) continue;
      from_ns_ = std::max(extent->from_ns, filter_.time.from_ns);
      to_ns_ = std::min(extent->to_ns == INT64_MAX ? INT64_MAX : extent->to_ns + 1, filter_.time.to_ns);
      const auto interval_ns = static_cast<double>(std::max(recording_->reader->info().interval_ns, kNsPerMs));
      const double window_ns = static_cast<double>(kRowsAtOnceMax) / static_cast<double>(wanted_.size()) * interval_ns;
      least_step_ns_ = std::clamp(static_cast<std::int64_t>(std::min(window_ns, 1e15)), kWindowNsMin, kWindowNsMax);
      step_ns_ = least_step_ns_;
      return true;
    }
    return false;
  }

  void show(const Point& point) {
    const Value& value = point.sample.value;
    const StoredSeries& series = *point.series;
    cells_.assign(kColumns.size(), Cell());
    cells_[kTS] = recording_->seconds(point.sample.t_ns);
    cells_[kTNs] = point.sample.t_ns;
    if (const auto wall_ns = recording_->clock.wall_ns(point.sample.t_ns)) cells_[kUnix] = *wall_ns;
    cells_[kMetric] = std::string_view(series.metric);
    cells_[kInstance] = std::string_view(series.instance);
    if (const auto number = value.number()) cells_[kValue] = *number * series.scale;
    if (value.is_missing()) cells_[kMissing] = to_string(value.reason());
    if (point.rate) cells_[kRate] = *point.rate;
    cells_[kUnit] = std::string_view(series.unit);
    cells_[kKind] = series.kind == MetricKind::kCounter ? std::string_view("counter") : std::string_view("gauge");
    cells_[kNode] = std::string_view(recording_->node);
    cells_[kRecording] = recording_->number;
  }

  QueriedRun& run_;
  RowFilter filter_;
  std::size_t next_recording_ = 0;
  const QueriedRecording* recording_ = nullptr;
  std::vector<SeriesHandle> wanted_;
  std::map<std::uint32_t, const StoredSeries*> by_handle_;
  std::map<std::uint32_t, SamplePoint> last_;  // of counters
  std::int64_t from_ns_ = 0;
  std::int64_t to_ns_ = 0;
  std::int64_t least_step_ns_ = kWindowNsMin;
  bool is_overfull_ = false;
  std::int64_t step_ns_ = 0;
  std::vector<Point> points_;  // of one window
  std::size_t at_ = 0;
  std::vector<Cell> cells_;
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  return std::unique_ptr<RowSource>(new Rows(run, filter));
}

}  // namespace

extern constinit const TableSpec table_sample{
    .name = "sample", .help = "every sample of every series", .columns = kColumns, .open = open};

}  // namespace hotlap
