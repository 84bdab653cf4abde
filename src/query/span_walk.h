#pragma once
// Spans of a run, recording after recording, read in windows of time so that some thousands of them are in memory at
// once. Confined to one thread.
#include <cstdint>
#include <vector>

#include "query/table.h"

namespace hotlap {

class SpanWalk {
 public:
  // `kinds` empty: all. Spans that start in `time`. Of recordings made on a node other than what `filter` wants in
  // column `node_column`, nothing.
  SpanWalk(QueriedRun& run, std::vector<SpanKind> kinds, RowFilter filter, std::size_t node_column)
      : run_(run), kinds_(std::move(kinds)), filter_(std::move(filter)), node_column_(node_column) {}

  // Null: no more. Within a recording by window of start; spans of traces by start throughout.
  Result<const Span*> next();
  // The one that the span comes from; valid after next() gave one.
  const QueriedRecording& recording() const { return *recording_; }

 private:
  Result<bool> fill();
  bool open_next();

  QueriedRun& run_;
  std::vector<SpanKind> kinds_;
  RowFilter filter_;
  std::size_t node_column_;
  std::size_t next_recording_ = 0;
  const QueriedRecording* recording_ = nullptr;
  std::int64_t from_ns_ = 0;
  std::int64_t to_ns_ = 0;
  std::int64_t window_ns_ = 0;
  std::vector<Span> spans_;  // of one window
  std::size_t at_ = 0;
};

}  // namespace hotlap
