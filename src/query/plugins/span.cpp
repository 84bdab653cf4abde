// Every span, in windows of time.
#include <algorithm>
#include <array>

#include "base/clock.h"
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

constexpr std::size_t kFewRows = 5'000;
constexpr std::size_t kManyRows = 100'000;
constexpr std::int64_t kFirstWindowNs = 10 * kNsPerS;
constexpr std::int64_t kWindowNsMin = 10 * kNsPerMs;
constexpr std::int64_t kWindowNsMax = 86'400 * kNsPerS;

class Rows final : public RowSource {
 public:
  Rows(QueriedRun& run, RowFilter filter) : run_(run), filter_(std::move(filter)) {
    const auto wanted = filter_.equals.find(kKind);
    if (wanted == filter_.equals.end()) return;
    for (std::uint16_t kind = 1; kind < kSpanKindCount; ++kind) {
      if (to_string(static_cast<SpanKind>(kind)) == wanted->second) kinds_.push_back(static_cast<SpanKind>(kind));
    }
    is_nothing_ = kinds_.empty();
  }

  std::span<const Cell> row() const override { return cells_; }

  Result<bool> next() override {
    while (at_ >= spans_.size()) {
      HOTLAP_TRY_ASSIGN(const bool has_more, fill());
      if (!has_more) return false;
    }
    show(spans_[at_++]);
    return true;
  }

 private:
  Result<bool> fill() {
    if (is_nothing_) return false;
    spans_.clear();
    at_ = 0;
    while (true) {
      if (from_ns_ >= to_ns_) {
        if (!open_next()) return false;
        continue;
      }
      const std::int64_t end_ns = to_ns_ - from_ns_ > window_ns_ ? from_ns_ + window_ns_ : to_ns_;
      HOTLAP_TRY(recording_->reader->read_spans(
          kinds_, {.from_ns = from_ns_, .to_ns = end_ns},
          [&](std::span<const Span> some) { spans_.insert(spans_.end(), some.begin(), some.end()); }));
      from_ns_ = end_ns;
      if (spans_.size() < kFewRows) window_ns_ = std::min(window_ns_ * 2, kWindowNsMax);
      if (spans_.size() > kManyRows) window_ns_ = std::max(window_ns_ / 2, kWindowNsMin);
      if (!spans_.empty()) return true;
    }
  }

  bool open_next() {
    while (next_recording_ < run_.recordings().size()) {
      recording_ = &run_.recordings()[next_recording_++];
      if (!filter_.wants(kNode, recording_->node)) continue;
      const Result<TimeRange> extent = recording_->reader->extent();
      if (!extent.ok() || extent->from_ns > extent->to_ns) continue;
      from_ns_ = std::max(extent->from_ns, filter_.time.from_ns);
      to_ns_ = std::min(extent->to_ns == INT64_MAX ? INT64_MAX : extent->to_ns + 1, filter_.time.to_ns);
      window_ns_ = kFirstWindowNs;
      return true;
    }
    return false;
  }

  void show(const Span& span) {
    cells_.assign(kColumns.size(), Cell());
    cells_[kStartS] = recording_->seconds(span.start_ns);
    cells_[kStartNs] = span.start_ns;
    if (span.duration_ns >= 0) {
      cells_[kDurationMs] = static_cast<double>(span.duration_ns) / static_cast<double>(kNsPerMs);
      cells_[kDurationNs] = span.duration_ns;
    }
    cells_[kKind] = to_string(span.kind);
    name_ = span.name == 0 ? std::string() : recording_->reader->name(span.name);
    if (!name_.empty()) cells_[kName] = std::string_view(name_);
    if (const auto found = recording_->processes.find(span.process); found != recording_->processes.end()) {
      label_ = slot_label(found->second);
      cells_[kProcess] = std::string_view(label_);
      if (found->second.role == ProcessRole::kRank) cells_[kRank] = std::int64_t{found->second.index};
      cells_[kPid] = std::int64_t{found->second.pid};
    }
    if (span.thread != 0) cells_[kThread] = std::int64_t{span.thread};
    if (span.step >= 0) cells_[kStep] = span.step;
    if (span.value_a != -1) cells_[kValueA] = span.value_a;
    if (span.value_b != -1) cells_[kValueB] = span.value_b;
    cells_[kNode] = std::string_view(recording_->node);
    cells_[kRecording] = recording_->number;
  }

  QueriedRun& run_;
  RowFilter filter_;
  std::vector<SpanKind> kinds_;  // empty: all
  bool is_nothing_ = false;      // no kind has the name that is asked for
  std::size_t next_recording_ = 0;
  const QueriedRecording* recording_ = nullptr;
  std::int64_t from_ns_ = 0;
  std::int64_t to_ns_ = 0;
  std::int64_t window_ns_ = kFirstWindowNs;
  std::vector<Span> spans_;  // of one window
  std::size_t at_ = 0;
  std::string name_;
  std::string label_;
  std::vector<Cell> cells_;
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  return std::unique_ptr<RowSource>(new Rows(run, filter));
}

}  // namespace

extern constinit const TableSpec table_span{
    .name = "span", .help = "named stretches of time inside processes", .columns = kColumns, .open = open};

}  // namespace hotlap
