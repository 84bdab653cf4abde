// The calls that later drivers have.
#include <algorithm>
#include <array>
#include <string>

#include "nvml/fake_nvml.h"

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names
using namespace fake_nvml;  // NOLINT(google-build-using-namespace)
using namespace hotlap;     // NOLINT(google-build-using-namespace)

namespace {

struct Sample {
  std::map<std::string, double, std::less<>> values;
  bool is_taken = false;
};

NvmlStatus processes_of(const Device& device, std::uint32_t* count, NvmlProcess* out) {
  const auto there = static_cast<std::uint32_t>(device.processes.size());
  const std::uint32_t room = *count;
  *count = there;
  if (there > room) return NvmlStatus::kInsufficientSize;
  for (std::uint32_t p = 0; p < there; ++p) {
    out[p] = {device.processes[p].pid, device.processes[p].bytes.value_or(UINT64_MAX), UINT32_MAX, UINT32_MAX};
  }
  return NvmlStatus::kSuccess;
}

NvmlStatus sample_of(std::string_view function, NvmlDevice handle, std::string_view instance, NvmlGpmSample out) {
  Device* device = nullptr;
  if (const NvmlStatus status = enter(function, handle, &device); status != NvmlStatus::kSuccess) return status;
  if (!device->values.contains("gpm")) return NvmlStatus::kNotSupported;
  auto* sample = static_cast<Sample*>(out.handle);
  sample->is_taken = true;
  sample->values = device->values;
  if (instance.empty()) return NvmlStatus::kSuccess;
  for (const Device& one : state().devices) {
    double gi = -1;
    if (!one.place.starts_with(device->place + "/") || value(one, "gi", gi) != NvmlStatus::kSuccess) continue;
    if (std::to_string(static_cast<unsigned>(gi)) == instance) sample->values = one.values;
  }
  return NvmlStatus::kSuccess;
}

}  // namespace

extern "C" {

NvmlStatus nvmlInit();
NvmlStatus nvmlDeviceGetCount(std::uint32_t*);
NvmlStatus nvmlDeviceGetHandleByIndex(std::uint32_t, NvmlDevice*);

NvmlStatus nvmlInitWithFlags(std::uint32_t) { return nvmlInit(); }
NvmlStatus nvmlInit_v2() { return nvmlInit(); }
NvmlStatus nvmlDeviceGetCount_v2(std::uint32_t* count) { return nvmlDeviceGetCount(count); }
NvmlStatus nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, NvmlDevice* device) {
  return nvmlDeviceGetHandleByIndex(index, device);
}
NvmlStatus nvmlSystemGetCudaDriverVersion_v2(std::int32_t* version) {
  *version = 13010;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceGetMinorNumber(NvmlDevice handle, std::uint32_t* out) {
  Device* device = nullptr;
  const NvmlStatus status = enter("nvmlDeviceGetMinorNumber", handle, &device);
  if (status == NvmlStatus::kSuccess) *out = static_cast<std::uint32_t>(std::stoul(device->place));
  return status;
}

NvmlStatus nvmlDeviceGetPciInfo_v3(NvmlDevice handle, NvmlPciInfo* out) {
  Device* device = nullptr;
  const NvmlStatus status = enter("nvmlDeviceGetPciInfo_v3", handle, &device);
  if (status != NvmlStatus::kSuccess) return status;
  *out = {};
  return text("00000000:1" + device->place + ":00.0", out->bus_id, sizeof out->bus_id);
}

NvmlStatus nvmlDeviceGetMemoryInfo_v2(NvmlDevice handle, NvmlMemoryV2* out) {
  if (out->version != ((2U << 24U) | 40U)) return NvmlStatus::kArgumentVersionMismatch;
  Device* device = nullptr;
  if (const auto status = enter("nvmlDeviceGetMemoryInfo_v2", handle, &device); status != NvmlStatus::kSuccess) {
    return status;
  }
  double used = 0;
  double total = 0;
  double reserved = 0;
  if (value(*device, "total", total) != NvmlStatus::kSuccess) return NvmlStatus::kNotSupported;
  (void)value(*device, "used", used);
  (void)value(*device, "reserved", reserved);
  out->total = static_cast<std::uint64_t>(total) << 20U;
  out->used = static_cast<std::uint64_t>(used) << 20U;
  out->reserved = static_cast<std::uint64_t>(reserved) << 20U;
  out->free = out->total - out->used - out->reserved;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceGetBAR1MemoryInfo(NvmlDevice handle, NvmlBar1Memory* out) {
  if (const auto status = big_number("nvmlDeviceGetBAR1MemoryInfo", handle, "bar1_total", &out->total);
      status != NvmlStatus::kSuccess) {
    return status;
  }
  const NvmlStatus status = big_number("", handle, "bar1_used", &out->used);
  out->total <<= 20U;
  out->used <<= 20U;
  out->free = out->total - out->used;
  return status;
}
NvmlStatus nvmlDeviceGetTotalEnergyConsumption(NvmlDevice handle, std::uint64_t* out) {
  return big_number("nvmlDeviceGetTotalEnergyConsumption", handle, "energy", out);
}
NvmlStatus nvmlDeviceGetEnforcedPowerLimit(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetEnforcedPowerLimit", handle, "limit", out);
}
NvmlStatus nvmlDeviceGetPowerManagementDefaultLimit(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetPowerManagementDefaultLimit", handle, "limit_default", out);
}
NvmlStatus nvmlDeviceGetPowerManagementLimit(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetPowerManagementLimit", handle, "limit_requested", out);
}
NvmlStatus nvmlDeviceGetTemperatureThreshold(NvmlDevice handle, std::uint32_t kind, std::uint32_t* out) {
  return kind == 1 ? number("nvmlDeviceGetTemperatureThreshold", handle, "slowdown", out) : NvmlStatus::kNotSupported;
}
NvmlStatus nvmlDeviceGetFanSpeed(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetFanSpeed", handle, "fan", out);
}
NvmlStatus nvmlDeviceGetMaxClockInfo(NvmlDevice handle, std::uint32_t kind, std::uint32_t* out) {
  return number("nvmlDeviceGetMaxClockInfo", handle, kind == 1 ? "clock_max1" : "clock_max2", out);
}
NvmlStatus nvmlDeviceGetPerformanceState(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetPerformanceState", handle, "pstate", out);
}
NvmlStatus nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice handle, std::uint64_t* out) {
  return big_number("nvmlDeviceGetCurrentClocksEventReasons", handle, "reasons", out);
}
NvmlStatus nvmlDeviceGetCurrPcieLinkGeneration(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetCurrPcieLinkGeneration", handle, "gen", out);
}
NvmlStatus nvmlDeviceGetMaxPcieLinkGeneration(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetMaxPcieLinkGeneration", handle, "gen_max", out);
}
NvmlStatus nvmlDeviceGetCurrPcieLinkWidth(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetCurrPcieLinkWidth", handle, "width", out);
}
NvmlStatus nvmlDeviceGetMaxPcieLinkWidth(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetMaxPcieLinkWidth", handle, "width_max", out);
}
NvmlStatus nvmlDeviceGetPcieThroughput(NvmlDevice handle, std::uint32_t kind, std::uint32_t* out) {
  return number("nvmlDeviceGetPcieThroughput", handle, kind == 0 ? "send" : "receive", out);
}
NvmlStatus nvmlDeviceGetPcieReplayCounter(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetPcieReplayCounter", handle, "replays", out);
}
NvmlStatus nvmlDeviceGetNvLinkState(NvmlDevice handle, std::uint32_t link, std::uint32_t* out) {
  std::uint32_t links = 0;
  const NvmlStatus status = number("nvmlDeviceGetNvLinkState", handle, "links", &links);
  if (status != NvmlStatus::kSuccess) return status;
  if (link >= links) return NvmlStatus::kInvalidArgument;
  *out = 1;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceGetTotalEccErrors(NvmlDevice handle, std::uint32_t type, std::uint32_t counter,
                                       std::uint64_t* out) {
  constexpr std::array<std::string_view, 4> kKeys{"ecc00", "ecc01", "ecc10", "ecc11"};
  return big_number("nvmlDeviceGetTotalEccErrors", handle, kKeys.at(2 * type + counter), out);
}
NvmlStatus nvmlDeviceGetRemappedRows(NvmlDevice handle, std::uint32_t* correctable, std::uint32_t* uncorrectable,
                                     std::uint32_t* pending, std::uint32_t* failed) {
  const NvmlStatus status = number("nvmlDeviceGetRemappedRows", handle, "rows_correctable", correctable);
  if (status != NvmlStatus::kSuccess) return status;
  (void)number("", handle, "rows_uncorrectable", uncorrectable);
  (void)number("", handle, "rows_pending", pending);
  return number("", handle, "rows_failed", failed);
}
NvmlStatus nvmlDeviceGetEncoderUtilization(NvmlDevice handle, std::uint32_t* out, std::uint32_t* window_us) {
  *window_us = 166'666;
  return number("nvmlDeviceGetEncoderUtilization", handle, "encoder", out);
}
NvmlStatus nvmlDeviceGetDecoderUtilization(NvmlDevice handle, std::uint32_t* out, std::uint32_t* window_us) {
  *window_us = 166'666;
  return number("nvmlDeviceGetDecoderUtilization", handle, "decoder", out);
}
NvmlStatus nvmlDeviceGetFieldValues(NvmlDevice handle, std::int32_t count, NvmlFieldValue* fields) {
  Device* device = nullptr;
  if (const auto status = enter("nvmlDeviceGetFieldValues", handle, &device); status != NvmlStatus::kSuccess) {
    return status;
  }
  for (std::int32_t f = 0; f < count; ++f) {
    double found = 0;
    fields[f].status = value(*device, "field." + std::to_string(fields[f].field), found);
    fields[f].type = 3;
    fields[f].value.u64 = static_cast<std::uint64_t>(found);
  }
  return NvmlStatus::kSuccess;
}

NvmlStatus nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice handle, std::uint32_t* count, NvmlProcess* out) {
  Device* device = nullptr;
  const NvmlStatus status = enter("nvmlDeviceGetComputeRunningProcesses_v3", handle, &device);
  return status == NvmlStatus::kSuccess ? processes_of(*device, count, out) : status;
}
NvmlStatus nvmlDeviceGetMPSComputeRunningProcesses_v3(NvmlDevice handle, std::uint32_t* count, NvmlProcess*) {
  Device* device = nullptr;
  *count = 0;
  return enter("nvmlDeviceGetMPSComputeRunningProcesses_v3", handle, &device);
}
NvmlStatus nvmlDeviceGetAccountingMode(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetAccountingMode", handle, "accounting", out);
}
NvmlStatus nvmlDeviceGetAccountingStats(NvmlDevice handle, std::uint32_t pid, NvmlAccountingStats* out) {
  Device* device = nullptr;
  if (const auto status = enter("nvmlDeviceGetAccountingStats", handle, &device); status != NvmlStatus::kSuccess) {
    return status;
  }
  double mode = 0;
  if (value(*device, "accounting", mode) != NvmlStatus::kSuccess || mode == 0) return NvmlStatus::kNotSupported;
  for (const Process& process : device->processes) {
    if (process.pid != pid) continue;
    *out = {};
    out->gpu_percent = 77;
    out->memory_max_bytes = process.bytes.value_or(UINT64_MAX);
    out->is_running = 1;
    return NvmlStatus::kSuccess;
  }
  return NvmlStatus::kNotFound;
}

NvmlStatus nvmlDeviceGetMigMode(NvmlDevice handle, std::uint32_t* current, std::uint32_t* pending) {
  const NvmlStatus status = number("nvmlDeviceGetMigMode", handle, "mig", current);
  *pending = *current;
  return status;
}
NvmlStatus nvmlDeviceGetMaxMigDeviceCount(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetMaxMigDeviceCount", handle, "migs_max", out);
}
NvmlStatus nvmlDeviceGetMigDeviceHandleByIndex(NvmlDevice handle, std::uint32_t index, NvmlDevice* out) {
  Device* device = nullptr;
  if (const auto status = enter("nvmlDeviceGetMigDeviceHandleByIndex", handle, &device);
      status != NvmlStatus::kSuccess) {
    return status;
  }
  Device* found = find(device->place + "/" + std::to_string(index));
  if (found == nullptr || found->is_gone) return NvmlStatus::kNotFound;
  *out = handle_of(found);
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceGetGpuInstanceId(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetGpuInstanceId", handle, "gi", out);
}
NvmlStatus nvmlDeviceGetComputeInstanceId(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetComputeInstanceId", handle, "ci", out);
}

NvmlStatus nvmlGpmQueryDeviceSupport(NvmlDevice handle, NvmlGpmSupport* out) {
  out->is_supported = 0;
  Device* device = nullptr;
  const NvmlStatus status = enter("nvmlGpmQueryDeviceSupport", handle, &device);
  if (status == NvmlStatus::kSuccess) out->is_supported = device->values.contains("gpm") ? 1 : 0;
  return status;
}
NvmlStatus nvmlGpmSampleAlloc(NvmlGpmSample* out) {
  out->handle = new Sample;
  ++state().open_samples;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlGpmSampleFree(NvmlGpmSample sample) {
  delete static_cast<Sample*>(sample.handle);
  --state().open_samples;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlGpmSampleGet(NvmlDevice handle, NvmlGpmSample out) {
  return sample_of("nvmlGpmSampleGet", handle, {}, out);
}
NvmlStatus nvmlGpmMigSampleGet(NvmlDevice handle, std::uint32_t gpu_instance, NvmlGpmSample out) {
  return sample_of("nvmlGpmMigSampleGet", handle, std::to_string(gpu_instance), out);
}
NvmlStatus nvmlGpmMetricsGet(NvmlGpmQuery* query) {
  const auto* before = static_cast<const Sample*>(query->before.handle);
  const auto* after = static_cast<const Sample*>(query->after.handle);
  if (query->version != 1) return NvmlStatus::kArgumentVersionMismatch;
  if (before == nullptr || after == nullptr || before == after || !before->is_taken || !after->is_taken) {
    return NvmlStatus::kInvalidArgument;
  }
  for (std::uint32_t m = 0; m < query->count; ++m) {
    const auto found = after->values.find("gpm." + std::to_string(query->metrics[m].id));
    query->metrics[m].status = found == after->values.end() ? NvmlStatus::kNotSupported : NvmlStatus::kSuccess;
    if (found != after->values.end()) query->metrics[m].value = found->second;
  }
  return NvmlStatus::kSuccess;
}

NvmlStatus nvmlEventSetCreate(NvmlEventSet* set) {
  set->handle = &state();
  ++state().open_sets;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlEventSetFree(NvmlEventSet) {
  --state().open_sets;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceRegisterEvents(NvmlDevice handle, std::uint64_t types, NvmlEventSet) {
  Device* device = nullptr;
  const NvmlStatus status = enter("nvmlDeviceRegisterEvents", handle, &device);
  if (status == NvmlStatus::kSuccess && types == 8) state().watched.insert(device);
  return status;
}
NvmlStatus nvmlEventSetWait_v2(NvmlEventSet, NvmlEvent* out, std::uint32_t) {
  auto& events = state().events;
  const auto found = std::find_if(events.begin(), events.end(),
                                  [](const Event& event) { return state().watched.contains(event.device); });
  if (found == events.end()) return NvmlStatus::kTimeout;
  *out = {handle_of(found->device), 8, found->xid, UINT32_MAX, UINT32_MAX};
  events.erase(found);
  return NvmlStatus::kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
