#pragma once
// The part of NVIDIA's management library (libnvidia-ml.so.1) that is used here: its ABI as NVIDIA documents it, and
// how it is loaded. No driver has all of it: every call may be null, and every call may refuse.
//
// Layouts are checked where they are defined. Calls are thread-safe on NVML's side and may take seconds or never
// return when a GPU is ill: only from a lane that may block.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/host.h"
#include "base/result.h"
#include "model/value.h"

namespace hotlap {

enum class NvmlStatus : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,  // the device is blocked by the system or its cgroup
  kVersionMismatch = 18,  // library and kernel driver are of different versions
  kNoData = 21,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kUnknown = 999,
};

struct NvmlDevice {
  void* handle = nullptr;
};
struct NvmlEventSet {
  void* handle = nullptr;
};
struct NvmlGpmSample {
  void* handle = nullptr;
};
struct NvmlPciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(NvmlPciInfo) == 68);
struct NvmlUtilization {
  std::uint32_t gpu, memory;
};
struct NvmlMemory {  // `used` holds what is reserved as well
  std::uint64_t total, free, used;
};
struct NvmlMemoryV2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(NvmlMemoryV2) == 40 && offsetof(NvmlMemoryV2, total) == 8);
struct NvmlBar1Memory {
  std::uint64_t total, free, used;
};
struct NvmlProcessV1 {
  std::uint32_t pid;
  std::uint64_t used_bytes;
};
struct NvmlProcess {  // _v2 and _v3
  std::uint32_t pid;
  std::uint64_t used_bytes;
  std::uint32_t gpu_instance, compute_instance;  // all ones: no MIG
};
static_assert(sizeof(NvmlProcessV1) == 16 && sizeof(NvmlProcess) == 24);
struct NvmlFieldValue {
  std::uint32_t field;
  std::uint32_t scope;
  std::int64_t timestamp_us;
  std::int64_t latency_us;
  std::int32_t type;
  NvmlStatus status;
  union {
    double f64;
    std::int32_t i32;
    std::uint32_t u32;
    std::uint64_t u64;
    std::int64_t i64;
    std::uint16_t u16;
  } value;
};
static_assert(sizeof(NvmlFieldValue) == 40 && offsetof(NvmlFieldValue, value) == 32);
struct NvmlAccountingStats {
  std::uint32_t gpu_percent, memory_percent;
  std::uint64_t memory_max_bytes, time_ms, start_us;
  std::uint32_t is_running;
  std::uint32_t reserved[5];
};
static_assert(sizeof(NvmlAccountingStats) == 56);
struct NvmlEvent {
  NvmlDevice device;
  std::uint64_t type, data;
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(NvmlEvent) == 32);
struct NvmlGpmMetric {
  std::uint32_t id;
  NvmlStatus status;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(NvmlGpmMetric) == 40);
// The array's length grew with NVML's versions (98, 210, 333, 477) under one version number; a library reads and
// writes the first `count` entries. Larger than all of them, so that no library can write behind it.
struct NvmlGpmQuery {
  std::uint32_t version;
  std::uint32_t count;
  NvmlGpmSample before, after;
  NvmlGpmMetric metrics[512];
};
static_assert(offsetof(NvmlGpmQuery, metrics) == 24);
struct NvmlGpmSupport {
  std::uint32_t version;
  std::uint32_t is_supported;
};

inline constexpr std::uint32_t kNvmlMemoryV2Version = sizeof(NvmlMemoryV2) | (2U << 24U);
inline constexpr std::uint32_t kNvmlGpmVersion = 1;
inline constexpr std::uint32_t kNvmlInitNoGpus = 1;  // no GPU is not an error
inline constexpr std::uint64_t kNvmlEventXid = 8;
inline constexpr std::uint32_t kNvmlAllLinks = UINT32_MAX;  // NvmlFieldValue::scope

// Each is null when this library has none of it.
struct NvmlCalls {
  using Number = NvmlStatus(NvmlDevice, std::uint32_t*);
  using BigNumber = NvmlStatus(NvmlDevice, std::uint64_t*);
  using NumberOf = NvmlStatus(NvmlDevice, std::uint32_t kind, std::uint32_t*);
  using Sampled = NvmlStatus(NvmlDevice, std::uint32_t* value, std::uint32_t* window_us);
  using Text = NvmlStatus(NvmlDevice, char*, std::uint32_t size);
  using Processes = NvmlStatus(NvmlDevice, std::uint32_t* count, NvmlProcess*);

  NvmlStatus (*init_with_flags)(std::uint32_t flags) = nullptr;
  NvmlStatus (*init)() = nullptr;
  NvmlStatus (*shutdown)() = nullptr;
  NvmlStatus (*driver_version)(char*, std::uint32_t size) = nullptr;
  NvmlStatus (*cuda_version)(std::int32_t*) = nullptr;
  NvmlStatus (*device_count)(std::uint32_t*) = nullptr;
  NvmlStatus (*device_at)(std::uint32_t index, NvmlDevice*) = nullptr;
  Text* name = nullptr;
  Text* uuid = nullptr;
  Number* minor_number = nullptr;
  NvmlStatus (*pci_info)(NvmlDevice, NvmlPciInfo*) = nullptr;

  NvmlStatus (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  NvmlStatus (*memory_v2)(NvmlDevice, NvmlMemoryV2*) = nullptr;
  NvmlStatus (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlStatus (*bar1_memory)(NvmlDevice, NvmlBar1Memory*) = nullptr;
  Number* power = nullptr;      // mW
  BigNumber* energy = nullptr;  // mJ
  Number* power_limit_enforced = nullptr;
  Number* power_limit_default = nullptr;
  Number* power_limit_requested = nullptr;
  NumberOf* temperature = nullptr;
  NumberOf* temperature_threshold = nullptr;
  Number* fan = nullptr;
  NumberOf* clock = nullptr;
  NumberOf* clock_max = nullptr;
  Number* performance_state = nullptr;
  BigNumber* clock_event_reasons = nullptr;
  Number* pcie_generation = nullptr;
  Number* pcie_generation_max = nullptr;
  Number* pcie_width = nullptr;
  Number* pcie_width_max = nullptr;
  NumberOf* pcie_throughput = nullptr;  // KB/s; blocks for 20 ms
  Number* pcie_replays = nullptr;
  NumberOf* nvlink_state = nullptr;
  NvmlStatus (*ecc_errors)(NvmlDevice, std::uint32_t type, std::uint32_t counter, std::uint64_t*) = nullptr;
  NvmlStatus (*remapped_rows)(NvmlDevice, std::uint32_t* correctable, std::uint32_t* uncorrectable,
                              std::uint32_t* is_pending, std::uint32_t* has_failed) = nullptr;
  Sampled* encoder = nullptr;
  Sampled* decoder = nullptr;
  NvmlStatus (*field_values)(NvmlDevice, std::int32_t count, NvmlFieldValue*) = nullptr;

  Processes* compute_processes = nullptr;  // _v3 or _v2
  NvmlStatus (*compute_processes_v1)(NvmlDevice, std::uint32_t* count, NvmlProcessV1*) = nullptr;
  Processes* mps_processes = nullptr;
  Number* accounting_mode = nullptr;
  NvmlStatus (*accounting_stats)(NvmlDevice, std::uint32_t pid, NvmlAccountingStats*) = nullptr;

  NvmlStatus (*mig_mode)(NvmlDevice, std::uint32_t* current, std::uint32_t* pending) = nullptr;
  Number* mig_count_max = nullptr;
  NvmlStatus (*mig_device_at)(NvmlDevice, std::uint32_t index, NvmlDevice*) = nullptr;
  Number* gpu_instance_id = nullptr;
  Number* compute_instance_id = nullptr;

  NvmlStatus (*gpm_support)(NvmlDevice, NvmlGpmSupport*) = nullptr;
  NvmlStatus (*gpm_sample_alloc)(NvmlGpmSample*) = nullptr;
  NvmlStatus (*gpm_sample_free)(NvmlGpmSample) = nullptr;
  NvmlStatus (*gpm_sample_get)(NvmlDevice, NvmlGpmSample) = nullptr;
  NvmlStatus (*gpm_mig_sample_get)(NvmlDevice, std::uint32_t gpu_instance, NvmlGpmSample) = nullptr;
  NvmlStatus (*gpm_metrics_get)(NvmlGpmQuery*) = nullptr;

  NvmlStatus (*event_set_create)(NvmlEventSet*) = nullptr;
  NvmlStatus (*event_set_free)(NvmlEventSet) = nullptr;
  NvmlStatus (*register_events)(NvmlDevice, std::uint64_t types, NvmlEventSet) = nullptr;
  NvmlStatus (*event_set_wait)(NvmlEventSet, NvmlEvent*, std::uint32_t timeout_ms) = nullptr;
};

// Finds the library and its calls; does not start it. kNotFound: no driver's library here.
Result<NvmlCalls> load_nvml(const Host& host);
// Starts it, without a wish for GPUs to be there. kUnsupported: no driver is loaded; kIo: it refuses, with what mends
// it.
Result<void> start_nvml(const NvmlCalls& calls);

// Why a call that ended so gives no value. Not for kSuccess.
MissingReason missing_reason(NvmlStatus status);
// "GPU is lost"; what it means to a person.
std::string to_string(NvmlStatus status);

}  // namespace hotlap
