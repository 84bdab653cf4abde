// Every sample as a line "t_s,metric,instance,value", by time: Unix seconds, values in the metric's unit, counters as
// they stood, nothing where a value or the Unix time is missing. `hotlap import` reads it back.
#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>

#include "base/clock.h"
#include "base/format.h"
#include "model/wall_clock.h"
#include "report/exporter.h"

namespace hotlap {
namespace {

constexpr double kRowsAtOnceMax = 200e3;  // rows in memory: a long run is written window by window

struct Row {
  std::int64_t t_ns;
  const StoredSeries* series;
  Value value;
};

std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string shown(const Value& value, double scale) {
  if (value.is_missing()) return {};
  // Integers stay exact where the scale lets them.
  if (scale == 1.0 && value.kind() == Value::Kind::kI64) return format("{}", value.i64());
  if (scale == 1.0 && value.kind() == Value::Kind::kU64) return format("{}", value.u64());
  const double number = value.number().value_or(std::nan("")) * scale;
  return std::isfinite(number) ? format("{}", number) : std::string();
}

std::string shown_unix_s(std::optional<std::int64_t> wall_ns) {
  if (!wall_ns) return {};
  const std::int64_t whole_s = *wall_ns / kNsPerS - (*wall_ns % kNsPerS < 0 ? 1 : 0);
  return format("{}.{:09}", whole_s, *wall_ns - whole_s * kNsPerS);
}

void write_rows(std::vector<Row>& rows, const WallClock& clock, std::ostream& out) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.t_ns < b.t_ns; });
  for (const Row& row : rows) {
    out << format("{},{},{},{}\n", shown_unix_s(clock.wall_ns(row.t_ns)), field(row.series->metric),
                  field(row.series->instance), shown(row.value, row.series->scale));
  }
}

Result<void> write_recording(RecordingReader& reader, std::ostream& out) {
  HOTLAP_TRY_ASSIGN(const TimeRange extent, reader.extent());
  if (extent.from_ns > extent.to_ns || reader.series().empty()) return {};
  HOTLAP_TRY_ASSIGN(std::vector<ClockReading> readings, reader.read_clock());
  const WallClock clock(std::move(readings));
  std::vector<SeriesHandle> wanted;
  std::vector<const StoredSeries*> by_handle;
  for (const StoredSeries& series : reader.series()) {
    wanted.push_back(series.handle);
    by_handle.resize(std::max<std::size_t>(by_handle.size(), series.handle.index + std::size_t{1}));
    by_handle[series.handle.index] = &series;
  }
  const double interval_s = static_cast<double>(std::max(reader.info().interval_ns, kNsPerMs)) / 1e9;
  const double window_s = std::max(kRowsAtOnceMax / static_cast<double>(wanted.size()) * interval_s, 0.1);
  const auto window_ns = static_cast<std::int64_t>(std::min(window_s, 86'400.0) * 1e9);
  std::vector<Row> rows;
  for (std::int64_t from_ns = extent.from_ns; from_ns < extent.to_ns && out.good();) {
    const std::int64_t to_ns = extent.to_ns - from_ns > window_ns ? from_ns + window_ns : extent.to_ns;
    rows.clear();
    const auto take = [&](SeriesHandle series, std::span<const SamplePoint> points) {
      for (const SamplePoint& point : points) rows.push_back({point.t_ns, by_handle[series.index], point.value});
    };
    HOTLAP_TRY(reader.read_samples(wanted, {.from_ns = from_ns, .to_ns = to_ns}, take));
    write_rows(rows, clock, out);
    from_ns = to_ns;
  }
  return {};
}

Result<void> write(const ReportView& view, std::ostream& out) {
  out << "t_s,metric,instance,value\n";
  for (const std::unique_ptr<RecordingReader>& reader : view.run.recordings()) {
    HOTLAP_TRY(write_recording(*reader, out));
  }
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_csv{.name = "csv",
                                                 .summary = "every sample: t_s,metric,instance,value",
                                                 .media_type = "text/csv",
                                                 .extension = ".csv",
                                                 .needs_unix_time = true,
                                                 .write = write};

}  // namespace hotlap
