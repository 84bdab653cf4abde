#pragma once
// A recording in memory: what a test adds is what a reader of it sees, up to the moment that the test has reached.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "store/recording_reader.h"

namespace hotlap {

class FakeRecording final : public RecordingReader {
 public:
  explicit FakeRecording(std::string node = "n1") {
    info_.id = "01AN4Z07BY79KA1307SR9X4MV3";
    info_.node = std::move(node);
  }

  RecordingInfo& info_to_fill() { return info_; }
  std::uint32_t add_process(ProcessInfo process) {
    process.slot = static_cast<std::uint32_t>(processes_.size()) + 1;
    processes_.push_back(std::move(process));
    return processes_.back().slot;
  }
  std::uint32_t add_name(std::string text) {
    names_.push_back(std::move(text));
    return static_cast<std::uint32_t>(names_.size());
  }
  void add_span(const Span& span) { spans_.push_back(span); }
  void add_event(Event event) { events_.push_back(std::move(event)); }
  void add_attribute(const std::string& key, const std::string& text) { attributes_[key] = text; }
  void add_loss(Loss loss) { losses_.push_back(std::move(loss)); }
  void add_sample(const std::string& metric, const std::string& instance, MetricKind kind, double scale,
                  SamplePoint point) {
    auto found = std::ranges::find_if(
        series_, [&](const StoredSeries& one) { return one.metric == metric && one.instance == instance; });
    if (found == series_.end()) {
      StoredSeries series;
      series.handle.index = static_cast<std::uint32_t>(series_.size());
      series.metric = metric;
      series.instance = instance;
      series.kind = kind;
      series.scale = scale;
      series_.push_back(series);
      found = series_.end() - 1;
    }
    samples_[found->handle.index].push_back(point);
  }

  // Readers see the first `spans` spans and samples up to `t_ns`; by default everything.
  void reach(std::size_t spans, std::int64_t t_ns) {
    spans_visible_ = spans;
    t_visible_ns_ = t_ns;
  }
  // Forgets what began outside [from_ns, to_ns): the part of one of several recorders.
  void keep(std::int64_t from_ns, std::int64_t to_ns) {
    const auto is_outside = [&](std::int64_t t_ns) { return t_ns < from_ns || t_ns >= to_ns; };
    std::erase_if(spans_, [&](const Span& span) { return is_outside(span.start_ns); });
    std::erase_if(events_, [&](const Event& event) { return is_outside(event.t_ns); });
    for (auto& [index, points] : samples_) {
      std::erase_if(points, [&](const SamplePoint& point) { return is_outside(point.t_ns); });
    }
  }
  std::size_t span_count() const { return spans_.size(); }

  const RecordingInfo& info() const override { return info_; }
  bool is_closed() const override { return true; }
  Result<void> refresh() override { return {}; }
  const std::vector<StoredSeries>& series() const override { return series_; }
  Result<TimeRange> extent() const override {
    TimeRange range{INT64_MAX, INT64_MIN};
    for (const auto& [index, points] : samples_) {
      for (const SamplePoint& point : points) {
        if (point.t_ns > t_visible_ns_) continue;
        range.from_ns = std::min(range.from_ns, point.t_ns);
        range.to_ns = std::max(range.to_ns, point.t_ns);
      }
    }
    return range;
  }
  Result<void> read_samples(std::span<const SeriesHandle> wanted, TimeRange range,
                            const std::function<void(SeriesHandle, std::span<const SamplePoint>)>& visit) override {
    for (const SeriesHandle handle : wanted) {
      std::vector<SamplePoint> points;
      for (const SamplePoint& point : samples_[handle.index]) {
        if (point.t_ns >= range.from_ns && point.t_ns < range.to_ns && point.t_ns <= t_visible_ns_) {
          points.push_back(point);
        }
      }
      if (!points.empty()) visit(handle, points);
    }
    return {};
  }
  Result<void> read_tiers(std::span<const SeriesHandle>, TimeRange, std::size_t,
                          const std::function<void(SeriesHandle, std::span<const TierPoint>)>&) override {
    return Error{ErrorCode::kUnsupported, "a fake recording has no tiers"};
  }
  Result<void> read_spans(std::span<const SpanKind>, TimeRange,
                          const std::function<void(std::span<const Span>)>& visit) override {
    std::uint64_t cursor = 0;
    return read_spans_since(cursor, {}, visit);
  }
  Result<void> read_spans_since(std::uint64_t& cursor, std::span<const SpanKind>,
                                const std::function<void(std::span<const Span>)>& visit) override {
    const std::size_t end = std::min(spans_visible_, spans_.size());
    if (cursor < end) visit(std::span(spans_).subspan(cursor, end - cursor));
    cursor = std::max<std::uint64_t>(cursor, end);
    return {};
  }
  Result<std::vector<Event>> read_events(TimeRange) override { return events_; }
  Result<std::vector<Event>> read_events_since(std::uint64_t& cursor) override {
    std::vector<Event> fresh(events_.begin() + static_cast<std::ptrdiff_t>(cursor), events_.end());
    cursor = events_.size();
    return fresh;
  }
  Result<std::vector<ClockReading>> read_clock() override { return std::vector<ClockReading>{}; }
  Result<std::vector<ProcessInfo>> read_processes() override { return processes_; }
  Result<std::vector<Loss>> read_losses() override { return losses_; }
  Result<std::map<std::string, std::string>> read_attributes() override { return attributes_; }
  std::string name(std::uint32_t id) override { return id == 0 || id > names_.size() ? std::string() : names_[id - 1]; }

 private:
  RecordingInfo info_;
  std::vector<StoredSeries> series_;
  std::map<std::uint32_t, std::vector<SamplePoint>> samples_;
  std::vector<Span> spans_;
  std::vector<std::string> names_;
  std::vector<Event> events_;
  std::vector<ProcessInfo> processes_;
  std::vector<Loss> losses_;
  std::map<std::string, std::string> attributes_;
  std::size_t spans_visible_ = SIZE_MAX;
  std::int64_t t_visible_ns_ = INT64_MAX;
};

}  // namespace hotlap
