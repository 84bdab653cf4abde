#include "collect/nvml.h"

#include "base/format.h"
#include "base/shared_library.h"

namespace hotlap {
namespace {

void bind_devices(const SharedLibrary& library, NvmlCalls& calls) {
  library.bind(calls.init_with_flags, {"nvmlInitWithFlags"});
  library.bind(calls.init, {"nvmlInit_v2", "nvmlInit"});
  library.bind(calls.shutdown, {"nvmlShutdown"});
  library.bind(calls.driver_version, {"nvmlSystemGetDriverVersion"});
  library.bind(calls.cuda_version, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  library.bind(calls.device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  library.bind(calls.device_at, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  library.bind(calls.name, {"nvmlDeviceGetName"});
  library.bind(calls.uuid, {"nvmlDeviceGetUUID"});
  library.bind(calls.minor_number, {"nvmlDeviceGetMinorNumber"});
  library.bind(calls.pci_info, {"nvmlDeviceGetPciInfo_v3"});  // earlier ones have another layout
  library.bind(calls.mig_mode, {"nvmlDeviceGetMigMode"});
  library.bind(calls.mig_count_max, {"nvmlDeviceGetMaxMigDeviceCount"});
  library.bind(calls.mig_device_at, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  library.bind(calls.gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
  library.bind(calls.compute_instance_id, {"nvmlDeviceGetComputeInstanceId"});
  library.bind(calls.event_set_create, {"nvmlEventSetCreate"});
  library.bind(calls.event_set_free, {"nvmlEventSetFree"});
  library.bind(calls.register_events, {"nvmlDeviceRegisterEvents"});
  library.bind(calls.event_set_wait, {"nvmlEventSetWait_v2"});  // the first one does not fill the instances in
}

void bind_readings(const SharedLibrary& library, NvmlCalls& calls) {
  library.bind(calls.utilization, {"nvmlDeviceGetUtilizationRates"});
  library.bind(calls.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  library.bind(calls.memory, {"nvmlDeviceGetMemoryInfo"});
  library.bind(calls.bar1_memory, {"nvmlDeviceGetBAR1MemoryInfo"});
  library.bind(calls.power, {"nvmlDeviceGetPowerUsage"});
  library.bind(calls.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  library.bind(calls.power_limit_enforced, {"nvmlDeviceGetEnforcedPowerLimit"});
  library.bind(calls.power_limit_default, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  library.bind(calls.power_limit_requested, {"nvmlDeviceGetPowerManagementLimit"});
  library.bind(calls.temperature, {"nvmlDeviceGetTemperature"});
  library.bind(calls.temperature_threshold, {"nvmlDeviceGetTemperatureThreshold"});
  library.bind(calls.fan, {"nvmlDeviceGetFanSpeed"});
  library.bind(calls.clock, {"nvmlDeviceGetClockInfo"});
  library.bind(calls.clock_max, {"nvmlDeviceGetMaxClockInfo"});
  library.bind(calls.performance_state, {"nvmlDeviceGetPerformanceState"});
  library.bind(calls.clock_event_reasons,
               {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  library.bind(calls.pcie_generation, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  library.bind(calls.pcie_generation_max, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  library.bind(calls.pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  library.bind(calls.pcie_width_max, {"nvmlDeviceGetMaxPcieLinkWidth"});
  library.bind(calls.pcie_throughput, {"nvmlDeviceGetPcieThroughput"});
  library.bind(calls.pcie_replays, {"nvmlDeviceGetPcieReplayCounter"});
  library.bind(calls.nvlink_state, {"nvmlDeviceGetNvLinkState"});
  library.bind(calls.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  library.bind(calls.remapped_rows, {"nvmlDeviceGetRemappedRows"});
  library.bind(calls.encoder, {"nvmlDeviceGetEncoderUtilization"});
  library.bind(calls.decoder, {"nvmlDeviceGetDecoderUtilization"});
  library.bind(calls.field_values, {"nvmlDeviceGetFieldValues"});
}

void bind_processes_and_gpm(const SharedLibrary& library, NvmlCalls& calls) {
  library.bind(calls.compute_processes,
               {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  library.bind(calls.compute_processes_v1, {"nvmlDeviceGetComputeRunningProcesses"});
  library.bind(calls.mps_processes,
               {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"});
  library.bind(calls.accounting_mode, {"nvmlDeviceGetAccountingMode"});
  library.bind(calls.accounting_stats, {"nvmlDeviceGetAccountingStats"});
  library.bind(calls.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  library.bind(calls.gpm_sample_alloc, {"nvmlGpmSampleAlloc"});
  library.bind(calls.gpm_sample_free, {"nvmlGpmSampleFree"});
  library.bind(calls.gpm_sample_get, {"nvmlGpmSampleGet"});
  library.bind(calls.gpm_mig_sample_get, {"nvmlGpmMigSampleGet"});
  library.bind(calls.gpm_metrics_get, {"nvmlGpmMetricsGet"});
}

}  // namespace

Result<NvmlCalls> load_nvml(const Host& host) {
  HOTLAP_TRY_ASSIGN(const SharedLibrary library, SharedLibrary::open(host.library("libnvidia-ml.so.1")));
  NvmlCalls calls;
  bind_devices(library, calls);
  bind_readings(library, calls);
  bind_processes_and_gpm(library, calls);
  const bool can_start = calls.init_with_flags != nullptr || calls.init != nullptr;
  if (!can_start || calls.device_count == nullptr || calls.device_at == nullptr) {
    return Error{ErrorCode::kNotFound, "libnvidia-ml.so.1 is not NVIDIA's management library"};
  }
  return calls;
}

Result<void> start_nvml(const NvmlCalls& calls) {
  const NvmlStatus status = calls.init_with_flags != nullptr ? calls.init_with_flags(kNvmlInitNoGpus) : calls.init();
  switch (status) {
    case NvmlStatus::kSuccess: return {};
    case NvmlStatus::kDriverNotLoaded:
      return Error{ErrorCode::kUnsupported, "the NVIDIA kernel driver is not loaded (nvidia-smi, or modprobe nvidia)"};
    case NvmlStatus::kNotFound:
    case NvmlStatus::kGpuNotFound: return Error{ErrorCode::kUnsupported, "the NVIDIA driver sees no GPU"};
    case NvmlStatus::kVersionMismatch:
      return Error{ErrorCode::kIo,
                   "libnvidia-ml.so.1 and the NVIDIA kernel driver have different versions: the driver was changed "
                   "while it ran (reboot, or unload and load the nvidia modules)"};
    default: return Error{ErrorCode::kIo, format("libnvidia-ml.so.1 does not start: {}", to_string(status))};
  }
}

MissingReason missing_reason(NvmlStatus status) {
  switch (status) {
    case NvmlStatus::kNotSupported:
    case NvmlStatus::kFunctionNotFound:
    case NvmlStatus::kArgumentVersionMismatch:
    case NvmlStatus::kDeprecated: return MissingReason::kNotSupported;
    case NvmlStatus::kNoPermission:
    case NvmlStatus::kOperatingSystem: return MissingReason::kNoPermission;
    case NvmlStatus::kUninitialized:
    case NvmlStatus::kDriverNotLoaded:
    case NvmlStatus::kGpuIsLost:
    case NvmlStatus::kResetRequired:
    case NvmlStatus::kGpuNotFound: return MissingReason::kSourceLost;
    case NvmlStatus::kTimeout: return MissingReason::kTimedOut;
    default: return MissingReason::kReadFailed;
  }
}

std::string to_string(NvmlStatus status) {
  switch (status) {
    case NvmlStatus::kSuccess: return "success";
    case NvmlStatus::kUninitialized: return "NVML is not started";
    case NvmlStatus::kNotSupported: return "not supported";
    case NvmlStatus::kNoPermission: return "no permission";
    case NvmlStatus::kDriverNotLoaded: return "the driver is not loaded";
    case NvmlStatus::kTimeout: return "no answer in time";
    case NvmlStatus::kGpuIsLost: return "the GPU is lost: it fell off the bus";
    case NvmlStatus::kResetRequired: return "the GPU has to be reset";
    case NvmlStatus::kOperatingSystem: return "the device is blocked by the system or its cgroup";
    case NvmlStatus::kVersionMismatch: return "library and kernel driver have different versions";
    case NvmlStatus::kGpuNotFound: return "no such GPU";
    default: return format("NVML error {}", static_cast<int>(status));
  }
}

}  // namespace hotlap
