#pragma once
// The recorder as a process: beside a job under `hotlap run`, or by itself under `hotlap record`.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "model/run.h"
#include "store/run_folder.h"

namespace hotlap {

struct RecorderTask {
  std::filesystem::path run_folder;
  std::filesystem::path ring_folder;  // empty: nothing in the job sends any
  bool has_hook = true;               // false: rings are those of native observers
  std::int32_t job_pid = 0;           // 0: told later, or none
  std::int32_t supervisor_pid = 0;    // 0: none
  int channel_fd = -1;                // to the supervisor (record/messages.h); −1: none
  std::int64_t interval_ns = 0;
  std::int64_t gap_from_mono_ns = -1;  // a recorder before this one died: when that was noticed
  bool ends_by_signal = false;         // SIGINT and SIGTERM end the recording (`hotlap record`); else only SIGTERM
  bool logs_to_file = true;            // <run folder>/recorder.log
};

struct RecorderReport {
  std::int64_t steps = 0;
  std::filesystem::path folder;  // where the recording lies
  std::string note;              // for the user; may be empty
};

// Records until the job has ended (as the supervisor tells it or the kernel), or until it is told to stop; writes the
// run's final state. Must be called while the process has one thread.
Result<RecorderReport> record_until_end(const RecorderTask& task);

}  // namespace hotlap
