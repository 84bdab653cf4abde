#pragma once
// Which GPUs are the job's: told from what its processes have open on them, and, where that cannot be seen, from what
// their environment allows. What is a guess says so; what cannot be told is unknown, not "no".
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "collect/collector.h"

namespace hotlap {

// What a process of the job may see, by its environment and its device cgroup at its start.
struct GpuLimits {
  std::optional<std::string> visible;                // CUDA_VISIBLE_DEVICES; nothing: not set
  bool is_pci_order = false;                         // CUDA_DEVICE_ORDER=PCI_BUS_ID
  std::optional<std::uint32_t> local_rank;           // LOCAL_RANK and what launchers call it
  std::optional<std::vector<std::uint32_t>> minors;  // of /dev/nvidiaN that the device cgroup (v1) allows; nothing: all
};

struct GpuSeen {
  std::string_view label;
  std::string_view uuid;  // "GPU-…" or "MIG-…"
  std::string_view name;
  std::uint32_t index = 0;  // in the order of PCI addresses; of a MIG instance: of its GPU
  std::uint32_t minor = UINT32_MAX;
  bool is_mig = false;
  bool is_split = false;           // into MIG instances: no job uses it as a whole
  std::string_view parent_uuid;    // of a MIG instance
  std::uint32_t gpu_instance = 0;  // of a MIG instance
  std::uint32_t compute_instance = 0;
  // Slots of the job's processes with a context on it; nothing: the list cannot be had or its ids mean nothing here.
  std::optional<std::vector<std::string>> slots;
};

struct GpuUse {
  std::optional<bool> is_of_job;  // nothing: unknown
  std::string why;                // "rank 0 has a context on it"
  friend bool operator==(const GpuUse&, const GpuUse&) = default;
};

// The limits of one process; nothing when its environment cannot be read.
std::optional<GpuLimits> read_gpu_limits(const Host& host, std::int32_t pid);
// Whether the process ids that a driver tells mean ours: only in the machine's own process namespace.
bool pids_are_hosts(const Host& host);

// One answer for each of `gpus`. `has_job`: a job is recorded (otherwise all are unknown).
std::vector<GpuUse> find_gpu_use(std::span<const GpuSeen> gpus, std::span<const GpuLimits> limits, bool has_job);

}  // namespace hotlap
