// What happened at one time: phases, clock jumps, kills.
#include <array>

#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"t_s", ColumnType::kReal, "seconds since the run's first sample"},
    ColumnDesc{"t_ns", ColumnType::kInteger, "the recording's monotonic clock"},
    ColumnDesc{"kind", ColumnType::kText, "'phase', 'clock_step', 'oom_kill' …"},
    ColumnDesc{"value", ColumnType::kInteger, "by kind: ns, a slot, a signal, bytes"},
    ColumnDesc{"text", ColumnType::kText, "by kind: the phase, a mount point, a GPU; NULL: none"},
    ColumnDesc{"node", ColumnType::kText, ""},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter&) {
  auto rows = std::make_unique<ListedRows>();
  for (const QueriedRecording& recording : run.recordings()) {
    HOTLAP_TRY_ASSIGN(const std::vector<Event> events, recording.reader->read_events({}));
    for (const Event& event : events) {
      rows->add({recording.seconds(event.t_ns), event.t_ns, std::string(to_string(event.kind)), event.value,
                 text_or_null(event.text), recording.node, recording.number});
    }
  }
  return std::unique_ptr<RowSource>(std::move(rows));
}

}  // namespace

extern constinit const TableSpec table_event{.name = "event",
                                             .help = "what happened at one time: phases, clock jumps, kills",
                                             .columns = kColumns,
                                             .open = open};

}  // namespace hotlap
