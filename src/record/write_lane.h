#pragma once
// The write thread's work: puts batches into the recording and commits.
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/thread.h"
#include "record/batch.h"
#include "store/recording_writer.h"

namespace hotlap {

// Confined to the write thread, but for the counters.
class WriteLane {
 public:
  // `series` outlives the lane.
  WriteLane(std::unique_ptr<RecordingWriter> writer, const SeriesTable& series);

  void apply(const Batch& batch);
  // A failure is logged once until it is over; the writer has counted it.
  void commit();
  Result<void> close();

  // Thread-safe: for the recorder's own metrics.
  std::uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }
  std::uint64_t time_ns() const { return time_ns_.load(std::memory_order_relaxed); }
  std::uint64_t commits_failed() const { return commits_failed_.load(std::memory_order_relaxed); }

 private:
  void learn_series();

  std::unique_ptr<RecordingWriter> writer_;
  const SeriesTable& series_;
  std::vector<SeriesHandle> written_as_;  // by number in the series table
  std::vector<std::uint32_t> names_{0};   // by the recorder's number of a name; 0: no name
  std::vector<Sample> tick_;
  std::atomic<std::uint64_t> bytes_written_{0};
  std::uint64_t commits_ = 0;
  std::atomic<std::uint64_t> time_ns_{0};
  std::atomic<std::uint64_t> commits_failed_{0};
  bool is_failing_ = false;
  ThreadChecker thread_;
};

}  // namespace hotlap
