// What is sampled: one row per series.
#include <array>

#include "base/clock.h"
#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"metric", ColumnType::kText, "its name (metrics.md)"},
    ColumnDesc{"instance", ColumnType::kText, "'' where there is only one"},
    ColumnDesc{"unit", ColumnType::kText, "UCUM"},
    ColumnDesc{"kind", ColumnType::kText, "'gauge' or 'counter'"},
    ColumnDesc{"window_s", ColumnType::kReal, "the source averages over it; 0: a level at one time"},
    ColumnDesc{"period_s", ColumnType::kReal, "sampled at most so often; 0: every tick"},
    ColumnDesc{"node", ColumnType::kText, ""},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter&) {
  auto rows = std::make_unique<ListedRows>();
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); };
  for (const QueriedRecording& recording : run.recordings()) {
    for (const StoredSeries& series : recording.reader->series()) {
      rows->add({series.metric, series.instance, series.unit,
                 std::string(series.kind == MetricKind::kCounter ? "counter" : "gauge"), seconds(series.window_ns),
                 seconds(series.min_period_ns), recording.node, recording.number});
    }
  }
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace

extern constinit const TableSpec table_series{
    .name = "series", .help = "what is sampled: metric and instance", .columns = kColumns, .open = open};

}  // namespace hotlap
