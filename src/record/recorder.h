#pragma once
// The recorder as a library: samples collectors at absolute deadlines, drains the hook's rings, writes the recording.
//
// Threads: `sched` (fast collectors, rings, process tree), one `slow:<name>` per collector that may block, `write`
// (owns the RecordingWriter). They meet in one bounded queue of batches; when it is full, samples and spans are dropped
// and counted. The caller's thread only starts, notes and finishes.
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/queue.h"
#include "base/result.h"
#include "base/thread.h"
#include "collect/collector.h"
#include "model/event.h"
#include "record/batch.h"
#include "record/clock_watch.h"
#include "record/hook_rings.h"
#include "record/job_tree.h"
#include "record/lane.h"
#include "record/self_metrics.h"
#include "record/write_lane.h"

namespace hotlap {

inline constexpr std::int64_t kIntervalNsMin = 10 * kNsPerMs;
inline constexpr std::int64_t kIntervalNsMax = 60 * kNsPerS;
inline constexpr std::int64_t kIntervalNsDefault = 500 * kNsPerMs;

struct RecorderOptions {
  const Host* host = nullptr;  // outlives the recorder, as the clock does
  const Clock* clock = nullptr;
  std::span<const CollectorSpec* const> collectors;
  std::int64_t interval_ns = kIntervalNsDefault;
  JobTreeOptions tree;
  std::filesystem::path ring_folder;  // empty: no hook
  std::uint32_t owner_uid = 0;
  std::uint32_t series_max = 20'000;
  // Under a second with the time that a commit takes: kill -9 loses at most the last second.
  std::int64_t commit_period_ns = 900 * kNsPerMs;
  std::int64_t stuck_after_ns = 2 * kNsPerS;  // how long finish() waits for a collector that blocks
};

class Recorder {
 public:
  Recorder(RecorderOptions options, std::unique_ptr<RecordingWriter> writer);
  ~Recorder();  // finishes if that has not been done
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void start();

  // Thread-safe.
  void set_interval(std::int64_t interval_ns);
  std::int64_t interval_ns() const { return interval_ns_.load(std::memory_order_relaxed); }
  // Asks the job's processes to look into their steps (record/profile_plan.h), at the next tick; the last one counts.
  void ask_profile(std::uint64_t argument);
  void set_root(std::int32_t pid) { root_pid_.store(pid, std::memory_order_relaxed); }
  void note(Event event);
  void count_loss(std::string_view counter, std::uint64_t count);
  std::int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  bool has_live_rank() const { return has_live_rank_.load(std::memory_order_relaxed); }
  const RecorderCounters& counters() const { return counters_; }

  struct Ending {
    Result<void> closed;          // whether the recording was closed as one file
    std::string stuck_collector;  // its thread cannot be ended: leave the process by _Exit
  };
  // Stops the threads in reverse order, takes what the rings still hold, closes the recording. `main_exit` says how the
  // job's main process ended ("exit 0", "signal 9", "unknown").
  Ending finish(std::string_view main_exit);

 private:
  struct SlowLane;
  class BatchPool;
  void run_ticks(const std::stop_token& stop, const WakeEvent& wake);
  void run_slow(SlowLane& slow, const std::stop_token& stop, const WakeEvent& wake);
  void run_writer(const std::stop_token& stop);
  std::int64_t next_deadline(std::int64_t deadline_ns, std::int64_t now_ns);
  void tick(std::int64_t t_ns, std::int64_t late_ns);
  void last_words();
  void take_notes(Batch& out);
  void push(std::unique_ptr<Batch> batch, std::unique_ptr<Batch>& carried);
  static void bound_carried(Batch& batch);
  std::unique_ptr<Batch> next_batch(std::unique_ptr<Batch>& carried);
  std::vector<CollectorUse> collector_use();
  void share_processes();

  RecorderOptions options_;
  SeriesTable series_;
  RecorderCounters counters_;
  std::unique_ptr<BatchPool> pool_;
  BoundedQueue<std::unique_ptr<Batch>> queue_;
  BoundedQueue<Event> notes_;
  BoundedQueue<LossCount> loss_notes_;
  WriteLane write_lane_;
  std::atomic<std::int64_t> interval_ns_;
  std::atomic<std::int32_t> root_pid_;
  std::atomic<std::uint64_t> profile_argument_{0};
  std::atomic<bool> must_ask_profile_{false};
  std::atomic<std::int64_t> steps_{0};
  std::atomic<bool> has_live_rank_{false};
  std::string main_exit_;
  Result<void> closed_ = Error{ErrorCode::kInternal, "the recording was not closed"};  // by `write`, read after its end

  // Only on `sched`.
  CollectorLane lane_;
  JobTree tree_;
  HookRings rings_;
  ClockWatch clock_watch_;
  std::unique_ptr<Batch> carried_;
  std::int64_t interval_in_use_ns_ = 0;

  // The job's processes, as slow lanes see them at their own ticks. Replaced as a whole, so that a lane may keep the
  // one that it works with for as long as its source takes.
  struct SharedProcesses {
    std::vector<std::string> slots;
    std::vector<JobProcess> processes;  // with slots of `slots`
  };
  Mutex processes_mutex_;
  std::shared_ptr<const SharedProcesses> shared_processes_ HOTLAP_GUARDED_BY(processes_mutex_);

  Mutex use_mutex_;
  std::vector<CollectorUse> slow_use_ HOTLAP_GUARDED_BY(use_mutex_);

  std::vector<std::unique_ptr<SlowLane>> slow_lanes_;
  std::unique_ptr<NamedThread> write_thread_;
  std::unique_ptr<NamedThread> sched_thread_;
  bool is_finished_ = false;
};

}  // namespace hotlap
