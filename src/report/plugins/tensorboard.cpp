// Curves for TensorBoard: steps by their number, samples by the milliseconds since the run began.
#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/recorded_steps.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "model/counter.h"
#include "model/wall_clock.h"
#include "report/exporter.h"
#include "report/tensorboard_events.h"

namespace hotlap {
namespace {

class Curves {
 public:
  Curves(RecordingReader& recording, std::string prefix, std::int64_t origin_wall_ns, const WallClock& clock,
         TensorboardEvents& events)
      : recording_(recording),
        prefix_(std::move(prefix)),
        origin_wall_ns_(origin_wall_ns),
        clock_(clock),
        events_(events) {}

  Result<void> write_steps() {
    HOTLAP_TRY_ASSIGN(const std::vector<ProcessInfo> processes, recording_.read_processes());
    return read_steps(recording_, [&](const Step& step) {
      // Of several processes each has its own curves.
      std::string who;
      for (const ProcessInfo& process : processes) {
        if (process.slot == step.process && process.role == ProcessRole::kRank) who = format("rank {}/", process.index);
      }
      const auto put = [&](std::string_view part, const std::optional<std::int64_t>& ns) {
        if (!ns) return;
        add(format("step/{}{}", who, part), step.index, step.start_ns + step.duration_ns,
            static_cast<double>(*ns) / static_cast<double>(kNsPerMs));
      };
      put("ms", step.duration_ns);
      put("data_wait_ms", step.data_wait_ns);
      put("forward_ms", step.forward_ns);
      put("backward_ms", step.backward_ns);
      put("optimizer_ms", step.optimizer_ns);
      put("communication_ms", step.communication_ns);
      put("checkpoint_ms", step.checkpoint_ns);
      put("gc_ms", step.gc_ns);
    });
  }

  Result<void> write_series(const StoredSeries& series) {
    // "cpu.core.busy.seconds" of "core 3" stands in the group cpu.
    const std::size_t dot = series.metric.find('.');
    const bool is_rate = series.kind == MetricKind::kCounter;
    std::string tag = series.metric.substr(0, dot) + "/" + series.metric;
    if (is_rate) tag += " per s";
    if (!series.instance.empty()) tag += " " + series.instance;
    tag = to_valid_utf8(tag);
    std::optional<SamplePoint> before;
    const std::vector<SeriesHandle> wanted{series.handle};
    return recording_.read_samples(wanted, {}, [&](SeriesHandle, std::span<const SamplePoint> points) {
      for (const SamplePoint& point : points) {
        std::optional<double> value = point.value.number();
        if (is_rate) {
          const std::optional<SamplePoint> last = std::exchange(before, point);
          const std::int64_t dt_ns = last ? point.t_ns - last->t_ns : 0;
          value = dt_ns > 0 ? counter_delta(last->value, point.value).number() : std::nullopt;
          if (value) value = *value * static_cast<double>(kNsPerS) / static_cast<double>(dt_ns);
        }
        if (!value) continue;  // what is missing is no point
        const auto wall_ns = clock_.wall_ns(point.t_ns).value_or(point.t_ns);
        add(tag, (wall_ns - origin_wall_ns_) / kNsPerMs, point.t_ns, *value * series.scale);
      }
    });
  }

 private:
  void add(const std::string& tag, std::int64_t step, std::int64_t t_ns, double value) {
    if (!std::isfinite(value)) return;
    const auto wall_ns = static_cast<double>(clock_.wall_ns(t_ns).value_or(t_ns));
    events_.add_scalar(prefix_ + tag, step, wall_ns / static_cast<double>(kNsPerS), static_cast<float>(value));
  }

  RecordingReader& recording_;
  std::string prefix_;
  std::int64_t origin_wall_ns_;
  const WallClock& clock_;
  TensorboardEvents& events_;
};

Result<void> write(const ReportView& view, std::ostream& out) {
  // Without Unix time a recording's own times stand for it.
  std::vector<WallClock> clocks;
  std::optional<std::int64_t> origin_wall_ns;
  for (const auto& recording : view.run.recordings()) {
    HOTLAP_TRY_ASSIGN(std::vector<ClockReading> readings, recording->read_clock());
    clocks.emplace_back(std::move(readings));
    HOTLAP_TRY_ASSIGN(const TimeRange extent, recording->extent());
    if (extent.from_ns > extent.to_ns) continue;
    const std::int64_t from_ns = clocks.back().wall_ns(extent.from_ns).value_or(extent.from_ns);
    origin_wall_ns = std::min(origin_wall_ns.value_or(from_ns), from_ns);
  }
  const std::int64_t origin_ns = origin_wall_ns.value_or(0);
  TensorboardEvents events(out, static_cast<double>(origin_ns) / static_cast<double>(kNsPerS));
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    RecordingReader& recording = *view.run.recordings()[i];
    const bool is_one = clocks.size() == 1;
    Curves curves(recording, is_one ? std::string() : to_valid_utf8(format("{} {}/", i + 1, recording.info().node)),
                  origin_ns, clocks[i], events);
    HOTLAP_TRY(curves.write_steps());
    // One at a time: the samples of one series are in memory, not those of a thousand cores.
    for (const StoredSeries& series : std::vector<StoredSeries>(recording.series())) {
      HOTLAP_TRY(curves.write_series(series));
      if (!out.good()) return {};
    }
  }
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_tensorboard{.name = "tensorboard",
                                                         .summary = "steps and every series as curves for TensorBoard",
                                                         .media_type = "application/octet-stream",
                                                         .extension = ".tfevents",
                                                         .write = write};

}  // namespace hotlap
