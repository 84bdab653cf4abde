#pragma once
// How the machine was used while a run's typical steps went on: means over time with intervals from means of blocks,
// since what is sampled now resembles what was sampled before.
//
// Reads window by window; memory is bounded whatever the length of the run.
#include <optional>
#include <string>

#include "store/run_reader.h"
#include "view/change.h"

namespace hotlap {

struct ResourceMean {
  std::optional<Measured> measured;
  std::string missing;  // why there is none
};

struct ResourceMeans {
  ResourceMean cpu_busy_pct;       // of the cores that the job may use
  ResourceMean gpu_busy_pct;       // mean over the job's GPUs
  ResourceMean gpu_sm_active_pct;  // the same
  ResourceMean memory_bytes;       // resident, of the job's processes on a node
  ResourceMean gpu_memory_bytes;   // on the job's GPUs of a node
  ResourceMean gpu_power_w;        // the same
};

// The typical steps on the clock of the recordings of `node` (empty: of every recording).
struct StepWindow {
  std::string node;
  TimeRange range;
};

// Without a window everything is missing: what was used outside of typical steps is no figure of them.
ResourceMeans read_resource_means(RunReader& run, const std::optional<StepWindow>& window);

}  // namespace hotlap
