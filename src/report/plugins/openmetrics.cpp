// Every sample with its time in the OpenMetrics text format, for backfilling a Prometheus
// (promtool tsdb create-blocks-from openmetrics).
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "model/wall_clock.h"
#include "report/exporter.h"

namespace hotlap {
namespace {

constexpr std::int64_t kNsPerMsec = 1'000'000;

// "cpu.busy.seconds" → "hotlap_cpu_busy_seconds"
std::string family_of(std::string_view metric) {
  std::string name = "hotlap_";
  for (const char c : metric) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  // A counter's samples have the suffix that says so; the family is without it.
  constexpr std::string_view kTotal = "_total";
  if (name.ends_with(kTotal)) name.resize(name.size() - kTotal.size());
  return name;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : to_valid_utf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

class Family {
 public:
  Family(RunReader& run, std::ostream& out) : run_(run), out_(out) {}

  // The series of one metric, each in one piece, as the format asks for it.
  Result<void> write(const std::string& metric, MetricKind kind) {
    const std::string family = family_of(metric);
    out_ << format("# TYPE {} {}\n", family, kind == MetricKind::kCounter ? "counter" : "gauge");
    for (const auto& recording : run_.recordings()) {
      HOTLAP_TRY_ASSIGN(std::vector<ClockReading> readings, recording->read_clock());
      const WallClock clock(std::move(readings));
      std::vector<StoredSeries> all;
      for (const StoredSeries& series : recording->series()) {
        if (series.metric == metric && series.kind == kind) all.push_back(series);
      }
      // One at a time: the samples of one series are in memory, not those of a thousand cores.
      for (const StoredSeries& series : all) HOTLAP_TRY(write_series(*recording, series, clock, family));
    }
    return {};
  }

 private:
  Result<void> write_series(RecordingReader& recording, const StoredSeries& series, const WallClock& clock,
                            const std::string& family) {
    const bool is_counter = series.kind == MetricKind::kCounter;
    const std::string head = format("{}{}{{run=\"{}\",node=\"{}\",slot=\"{}\"}}", family, is_counter ? "_total" : "",
                                    escaped(run_.info().id), escaped(recording.info().node), escaped(series.instance));
    const std::vector<SeriesHandle> wanted{series.handle};
    std::int64_t last_ms = INT64_MIN;
    return recording.read_samples(wanted, {}, [&](SeriesHandle, std::span<const SamplePoint> points) {
      for (const SamplePoint& point : points) {
        const auto value = point.value.number();
        const auto wall_ns = clock.wall_ns(point.t_ns);
        // What is missing is no sample; what has no Unix time cannot be placed.
        if (!value || !wall_ns || !std::isfinite(*value * series.scale)) continue;
        // Prometheus keeps milliseconds: two samples of one would be a conflict.
        const std::int64_t t_ms = *wall_ns / kNsPerMsec;
        if (t_ms <= last_ms || t_ms < 0) continue;
        last_ms = t_ms;
        out_ << format("{} {} {}.{:03}\n", head, *value * series.scale, t_ms / 1000, t_ms % 1000);
      }
    });
  }

  RunReader& run_;
  std::ostream& out_;
};

Result<void> write(const ReportView& view, std::ostream& out) {
  std::map<std::string, MetricKind> metrics;
  for (const auto& recording : view.run.recordings()) {
    for (const StoredSeries& series : recording->series()) metrics.emplace(series.metric, series.kind);
  }
  Family family(view.run, out);
  for (const auto& [metric, kind] : metrics) {
    HOTLAP_TRY(family.write(metric, kind));
    if (!out.good()) return {};
  }
  out << "# EOF\n";
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_openmetrics{
    .name = "openmetrics",
    .summary = "every sample with its time, for backfilling a Prometheus",
    .media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
    .extension = ".om",
    .needs_unix_time = true,
    .write = write};

}  // namespace hotlap
