// Kernels on a device. No recording holds any yet: the table is there, and empty, so that what asks it goes on working.
#include <array>

#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"start_s", ColumnType::kReal, "seconds since the run's first sample"},
    ColumnDesc{"start_ns", ColumnType::kInteger, "the recording's monotonic clock"},
    ColumnDesc{"name", ColumnType::kText, ""},
    ColumnDesc{"duration_ms", ColumnType::kReal, ""},
    ColumnDesc{"device", ColumnType::kText, "'gpu0'"},
    ColumnDesc{"stream", ColumnType::kInteger, ""},
    ColumnDesc{"correlation", ColumnType::kInteger, "ties it to its launch"},
    ColumnDesc{"operator", ColumnType::kText, "that launched it"},
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

extern constinit const TableSpec table_kernel{
    .name = "kernel",
    .help = "kernels on a device inside profiled windows; no recording holds any yet",
    .columns = kColumns,
    .open = open};

}  // namespace hotlap
