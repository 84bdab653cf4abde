// Every span, in windows of time.
#include <array>

#include "base/clock.h"
#include "query/span_walk.h"
#include "query/table.h"

namespace hotlap {
namespace {

enum : std::size_t {
  kStartS,
  kStartNs,
  kDurationMs,
  kDurationNs,
  kKind,
  kName,
  kProcess,
  kRank,
  kPid,
  kThread,
  kStep,
  kValueA,
  kValueB,
  kNode,
  kRecording
};
constexpr std::array kColumns{
    ColumnDesc{"start_s", ColumnType::kReal, "seconds since the run's first sample"},
    ColumnDesc{"start_ns", ColumnType::kInteger, "the recording's monotonic clock", ColumnFilter::kTime},
    ColumnDesc{"duration_ms", ColumnType::kReal, "NULL: its end was not seen"},
    ColumnDesc{"duration_ns", ColumnType::kInteger, "the same, exact"},
    ColumnDesc{"kind", ColumnType::kText, "'step', 'data_wait', 'forward', 'worker_batch' …", ColumnFilter::kEquals},
    ColumnDesc{"name", ColumnType::kText, "of hotlap.span(name), the loader's, …; NULL: none"},
    ColumnDesc{"process", ColumnType::kText, "'main', 'rank 2', 'loader 0'"},
    ColumnDesc{"rank", ColumnType::kInteger, "NULL: not distributed"},
    ColumnDesc{"pid", ColumnType::kInteger, ""},
    ColumnDesc{"thread", ColumnType::kInteger, "Linux thread id; NULL: not known"},
    ColumnDesc{"step", ColumnType::kInteger, "number of the step it belongs to; NULL: none"},
    ColumnDesc{"value_a", ColumnType::kInteger,
               "by kind: samples of a step or batch, CPU ns in a worker, bytes of a checkpoint"},
    ColumnDesc{"value_b", ColumnType::kInteger, "by kind: tokens of a step, bytes of a batch, samples of a fetch"},
    ColumnDesc{"node", ColumnType::kText, "", ColumnFilter::kEquals},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

class Rows final : public RowSource {
 public:
  Rows(QueriedRun& run, const RowFilter& filter, std::vector<SpanKind> kinds)
      : walk_(run, std::move(kinds), filter, kNode) {}

  std::span<const Cell> row() const override { return cells_; }

  Result<bool> next() override {
    HOTLAP_TRY_ASSIGN(const Span* const span, walk_.next());
    if (span != nullptr) show(*span);
    return span != nullptr;
  }

 private:
  void show(const Span& span) {
    const QueriedRecording& recording = walk_.recording();
    cells_.assign(kColumns.size(), Cell());
    cells_[kStartS] = recording.seconds(span.start_ns);
    cells_[kStartNs] = span.start_ns;
    if (span.duration_ns >= 0) {
      cells_[kDurationMs] = static_cast<double>(span.duration_ns) / static_cast<double>(kNsPerMs);
      cells_[kDurationNs] = span.duration_ns;
    }
    cells_[kKind] = to_string(span.kind);
    name_ = span.name == 0 ? std::string() : recording.reader->name(span.name);
    if (!name_.empty()) cells_[kName] = std::string_view(name_);
    if (const auto found = recording.processes.find(span.process); found != recording.processes.end()) {
      label_ = slot_label(found->second);
      cells_[kProcess] = std::string_view(label_);
      if (found->second.role == ProcessRole::kRank) cells_[kRank] = std::int64_t{found->second.index};
      cells_[kPid] = std::int64_t{found->second.pid};
    }
    if (span.thread != 0) cells_[kThread] = std::int64_t{span.thread};
    if (span.step >= 0) cells_[kStep] = span.step;
    if (span.value_a != -1) cells_[kValueA] = span.value_a;
    if (span.value_b != -1) cells_[kValueB] = span.value_b;
    cells_[kNode] = std::string_view(recording.node);
    cells_[kRecording] = recording.number;
  }

  SpanWalk walk_;
  std::string name_;
  std::string label_;
  std::vector<Cell> cells_;
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  std::vector<SpanKind> kinds;
  if (const auto wanted = filter.equals.find(kKind); wanted != filter.equals.end()) {
    for (std::uint16_t kind = 1; kind < kSpanKindCount; ++kind) {
      if (to_string(static_cast<SpanKind>(kind)) == wanted->second) kinds.push_back(static_cast<SpanKind>(kind));
    }
    if (kinds.empty()) return std::unique_ptr<RowSource>(std::make_unique<ListedRows>());  // no kind is named so
  }
  return std::unique_ptr<RowSource>(new Rows(run, filter, std::move(kinds)));
}

}  // namespace

extern constinit const TableSpec table_span{
    .name = "span", .help = "named stretches of time inside processes", .columns = kColumns, .open = open};

}  // namespace hotlap
