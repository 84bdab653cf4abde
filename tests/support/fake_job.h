#pragma once
// A training job as the hook and the collectors would record it, made of a few numbers. Deterministic.
#include <cstdint>
#include <string>
#include <vector>

#include "support/fake_recording.h"

namespace hotlap {

struct FakeJob {
  std::int64_t steps = 400;
  std::int32_t workers = 0;    // of the loader; 0: batches are made in the training process
  double batch_ms = 60;        // worker time per batch
  double batch_cpu_ms = 58;    // its CPU time
  double compute_ms = 20;      // forward, backward, optimizer
  double compute_cpu_ms = 20;  // CPU time of the training process meanwhile
  double other_ms = 0;         // of the step, on the training thread and measured by nobody
  double named_ms = 0;         // of other_ms: the program calls it "metrics"
  double wait_ms = -1;         // of a step; -1: what follows from workers and compute
  double jitter = 0.02;        // of single times
  std::int32_t cores = 4;
  double outside_cores = 0;     // used by others
  std::int32_t host_cores = 0;  // of the machine, where the job may use `cores` of them only (a quota); 0: all
  double neighbour_cores = 0;   // used on the machine by others, outside the job's group
  std::int32_t batch_size = 32;
  std::int64_t ragged_every = 0;  // each so many steps a short batch
  double checkpoint_ms = 0;       // each checkpoint_every steps
  std::int64_t checkpoint_every = 0;
  double beside_save_ms = 0;  // saved by another thread, each beside_save_every steps
  std::int64_t beside_save_every = 0;
  double compile_ms = 0;  // each compile_every steps, and in the first
  std::int64_t compile_every = 0;
  std::int64_t warmup_steps = 1;      // steps of three times the length
  std::int64_t evaluation_every = 0;  // after so many steps an evaluation, over a loader of its own
  std::int64_t evaluation_batches = 10;
  double evaluation_batch_ms = 200;
  std::int64_t slower_from = -1;  // from this step on computing takes slower_by as long
  double slower_by = 1;
  bool has_steal = true;         // false: a test tells its own
  bool has_runnable = true;      // the same
  bool has_fork_server = false;  // workers are forked by a server process, not by the training process
  bool has_loader_names = true;  // false: a hook that did not tell loaders apart
  bool has_hook = true;
  bool has_threads = true;
  std::string main_thread = "python3";
  ProcessRole role = ProcessRole::kMain;
  std::int32_t rank = -1;
  std::int64_t tokens = -1;  // of a step; -1: the batch does not say
  double collective_ms = 0;  // an explicit all_reduce in each step, a part of other_ms

  double step_ms() const;  // of a typical step
  void record(FakeRecording& out) const;
};

}  // namespace hotlap
