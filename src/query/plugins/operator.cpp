// Operators of the framework. No recording holds any yet: the table is there, and empty, so that what asks it goes on
// working.
#include <array>

#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"start_s", ColumnType::kReal, "seconds since the run's first sample"},
    ColumnDesc{"start_ns", ColumnType::kInteger, "the recording's monotonic clock"},
    ColumnDesc{"name", ColumnType::kText, "'aten::conv2d'"},
    ColumnDesc{"self_ms", ColumnType::kReal, "without the operators it called"},
    ColumnDesc{"total_ms", ColumnType::kReal, ""},
    ColumnDesc{"device_ms", ColumnType::kReal, "of its kernels"},
    ColumnDesc{"shapes", ColumnType::kText, "of its inputs"},
    ColumnDesc{"correlation", ColumnType::kInteger, "ties it to its launch and kernel"},
    ColumnDesc{"step", ColumnType::kInteger, ""},
    ColumnDesc{"process", ColumnType::kText, ""},
    ColumnDesc{"rank", ColumnType::kInteger, ""},
    ColumnDesc{"node", ColumnType::kText, ""},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

Result<std::unique_ptr<RowSource>> open(QueriedRun&, const RowFilter&) {
  return std::unique_ptr<RowSource>(std::make_unique<ListedRows>());
}

}  // namespace

extern constinit const TableSpec table_operator{
    .name = "operator",
    .help = "operators of the framework inside profiled windows; no recording holds any yet",
    .columns = kColumns,
    .open = open};

}  // namespace hotlap
