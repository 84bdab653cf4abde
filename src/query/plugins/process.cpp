// The processes of the run, by slot.
#include <array>

#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"process", ColumnType::kText, "'main', 'rank 2', 'loader 0'"},
    ColumnDesc{"role", ColumnType::kText, "'main', 'rank', 'loader', 'other' …"},
    ColumnDesc{"rank", ColumnType::kInteger, "NULL: not distributed"},
    ColumnDesc{"pid", ColumnType::kInteger, ""},
    ColumnDesc{"parent", ColumnType::kText, "the process that started it; NULL: not known"},
    ColumnDesc{"start_s", ColumnType::kReal, "seconds since the run's first sample; NULL: not known"},
    ColumnDesc{"end_s", ColumnType::kReal, "NULL: alive, or its end was not seen"},
    ColumnDesc{"hook", ColumnType::kInteger, "1: hotlap's hook was in it"},
    ColumnDesc{"hook_absent_reason", ColumnType::kText, "why not, where it is known"},
    ColumnDesc{"command", ColumnType::kText, "with secrets taken out"},
    ColumnDesc{"node", ColumnType::kText, ""},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter&) {
  auto rows = std::make_unique<ListedRows>();
  for (const QueriedRecording& recording : run.recordings()) {
    const auto seconds = [&](std::int64_t t_ns) {
      return value_or_null(t_ns >= 0 ? std::optional(recording.seconds(t_ns)) : std::nullopt);
    };
    for (const auto& [slot, process] : recording.processes) {
      const auto parent = recording.processes.find(process.parent);
      rows->add({slot_label(process), std::string(to_string(process.role)), rank_of(process), std::int64_t{process.pid},
                 text_or_null(parent == recording.processes.end() ? std::string() : slot_label(parent->second)),
                 seconds(process.start_ns), seconds(process.end_ns), std::int64_t{process.has_hook},
                 text_or_null(process.hook_absent_reason), process.command, recording.node, recording.number});
    }
  }
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace

extern constinit const TableSpec table_process{
    .name = "process", .help = "the processes of the job and hotlap's own", .columns = kColumns, .open = open};

}  // namespace hotlap
