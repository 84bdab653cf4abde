#pragma once
// What GPUs of every maker say about themselves, described once: rules, exporters and readers ask for these names and
// need not know the maker. Instances: "gpu0", a part of it "gpu0/mig1" (NVIDIA), "amd0" (AMD).
#include "base/clock.h"
#include "model/metric.h"

namespace hotlap {

// How often which part of a GPU is asked, at most. Polling faster than 10 times a second has been seen to disturb it.
inline constexpr std::int64_t kGpuFastNs = 100 * kNsPerMs;
inline constexpr std::int64_t kGpuSlowNs = kNsPerS;
inline constexpr std::int64_t kGpuRareNs = 10 * kNsPerS;

inline constexpr MetricDesc kGpuBusy{
    .name = "gpu.busy.percent",
    .unit = "%",
    .help = "Share of the source's window in which any kernel ran; says nothing of how much of the GPU it used.",
    .window_ns = kNsPerS,
    .min_period_ns = kGpuFastNs,
    .aliases = {"nvidia_smi_utilization_gpu", "hw.gpu.utilization", "DCGM_FI_DEV_GPU_UTIL"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuMemoryController{
    .name = "gpu.memory_controller.busy.percent",
    .unit = "%",
    .help = "Share of the source's window in which device memory was read or written; not how full it is.",
    .window_ns = kNsPerS,
    .min_period_ns = kGpuFastNs,
    .aliases = {"nvidia_smi_utilization_memory", "", "DCGM_FI_DEV_MEM_COPY_UTIL"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuMemoryUsed{
    .name = "gpu.memory.used.bytes",
    .unit = "By",
    .help = "Device memory that is allocated.",
    .min_period_ns = kGpuFastNs,
    .aliases = {"nvidia_smi_memory_used", "hw.gpu.memory.usage", "DCGM_FI_DEV_FB_USED"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuMemoryTotal{
    .name = "gpu.memory.total.bytes",
    .unit = "By",
    .help = "Size of the device memory.",
    .min_period_ns = kGpuFastNs,
    .aliases = {"nvidia_smi_memory_total", "hw.gpu.memory.limit", "DCGM_FI_DEV_FB_TOTAL"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuPower{
    .name = "gpu.power.watts",
    .unit = "W",
    .help = "Power of the board. Many GPUs average it over about 1 s: for energy use gpu.energy.joules.",
    .window_ns = kNsPerS,
    .min_period_ns = kGpuFastNs,
    .aliases = {"nvidia_smi_power_draw", "hw.power{hw.type=\"gpu\"}", "DCGM_FI_DEV_POWER_USAGE"},
    .scale = 1e-3};
inline constexpr MetricDesc kGpuPowerLimit{.name = "gpu.power.limit.watts",
                                           .unit = "W",
                                           .help = "Power limit that is enforced now.",
                                           .min_period_ns = kGpuSlowNs,
                                           .aliases = {"", "", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"},
                                           .scale = 1e-3};
inline constexpr MetricDesc kGpuTemperature{
    .name = "gpu.temperature.celsius",
    .unit = "Cel",
    .help = "Temperature of the GPU.",
    .min_period_ns = kGpuSlowNs,
    .aliases = {"nvidia_smi_temperature_gpu", "hw.temperature{hw.type=\"gpu\"}", "DCGM_FI_DEV_GPU_TEMP"},
    .scale = 1e-3};
inline constexpr MetricDesc kGpuTemperatureMemory{.name = "gpu.temperature.memory.celsius",
                                                  .unit = "Cel",
                                                  .help = "Temperature of the device memory.",
                                                  .min_period_ns = kGpuSlowNs,
                                                  .aliases = {"", "", "DCGM_FI_DEV_MEMORY_TEMP"},
                                                  .scale = 1e-3};
inline constexpr MetricDesc kGpuFan{
    .name = "gpu.fan.percent",
    .unit = "%",
    .help = "Fan speed as a share of its maximum.",
    .min_period_ns = kGpuSlowNs,
    .aliases = {"nvidia_smi_fan_speed", "hw.fan.speed_ratio{hw.type=\"gpu\"}", "DCGM_FI_DEV_FAN_SPEED"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuClockSm{.name = "gpu.clock.sm.mhz",
                                        .unit = "MHz",
                                        .help = "Clock of the compute units (streaming multiprocessors, shaders).",
                                        .min_period_ns = kGpuFastNs,
                                        .aliases = {"nvidia_smi_clocks_current_sm", "", "DCGM_FI_DEV_SM_CLOCK"},
                                        .scale = 1.0};
inline constexpr MetricDesc kGpuClockMemory{
    .name = "gpu.clock.memory.mhz",
    .unit = "MHz",
    .help = "Clock of the device memory.",
    .min_period_ns = kGpuSlowNs,
    .aliases = {"nvidia_smi_clocks_current_memory", "", "DCGM_FI_DEV_MEM_CLOCK"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuPcieWidth{
    .name = "gpu.pcie.width",
    .unit = "{lane}",
    .help = "PCIe lanes in use; fewer than gpu.pcie.width_max under load is a fault or a slot that has fewer.",
    .min_period_ns = kGpuSlowNs,
    .aliases = {"nvidia_smi_pcie_link_width_current", "", "DCGM_FI_DEV_PCIE_LINK_WIDTH"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuPcieWidthMax{.name = "gpu.pcie.width_max",
                                             .unit = "{lane}",
                                             .help = "PCIe lanes that GPU and slot can use.",
                                             .min_period_ns = kGpuRareNs,
                                             .aliases = {"", "", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"},
                                             .scale = 1.0};
inline constexpr MetricDesc kGpuPcieGeneration{
    .name = "gpu.pcie.generation",
    .unit = "1",
    .help = "PCIe generation in use; idle GPUs lower it.",
    .min_period_ns = kGpuSlowNs,
    .aliases = {"nvidia_smi_pcie_link_gen_current", "", "DCGM_FI_DEV_PCIE_LINK_GEN"},
    .scale = 1.0};
inline constexpr MetricDesc kGpuPcieGenerationMax{.name = "gpu.pcie.generation_max",
                                                  .unit = "1",
                                                  .help = "PCIe generation that GPU and slot can use.",
                                                  .min_period_ns = kGpuRareNs,
                                                  .aliases = {"", "", "DCGM_FI_DEV_PCIE_MAX_LINK_GEN"},
                                                  .scale = 1.0};
inline constexpr MetricDesc kGpuEnergy{
    .name = "gpu.energy.joules",
    .unit = "J",
    .kind = MetricKind::kCounter,
    .help = "Energy used since the driver was loaded; exact over any time, unlike sampled power.",
    .min_period_ns = kGpuFastNs,
    .aliases = {"", "hw.energy{hw.type=\"gpu\"}", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"},
    .scale = 1e-3};
inline constexpr MetricDesc kGpuPcieReplays{.name = "gpu.pcie.replays",
                                            .unit = "{event}",
                                            .kind = MetricKind::kCounter,
                                            .help = "PCIe packets that had to be sent again.",
                                            .min_period_ns = kGpuRareNs,
                                            .aliases = {"", "", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"},
                                            .scale = 1.0};
inline constexpr MetricDesc kGpuEccCorrected{.name = "gpu.ecc.corrected",
                                             .unit = "{error}",
                                             .kind = MetricKind::kCounter,
                                             .help = "Memory errors that were corrected since the driver was loaded.",
                                             .min_period_ns = kGpuRareNs,
                                             .aliases = {"", "", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"},
                                             .scale = 1.0};
inline constexpr MetricDesc kGpuEccUncorrected{
    .name = "gpu.ecc.uncorrected",
    .unit = "{error}",
    .kind = MetricKind::kCounter,
    .help = "Memory errors that could not be corrected since the driver was loaded.",
    .min_period_ns = kGpuRareNs,
    .aliases = {"", "", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"},
    .scale = 1.0};

}  // namespace hotlap
