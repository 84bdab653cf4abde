#include "ingest/dcgm_fields.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/ascii.h"
#include "base/format.h"
#include "ingest/nvidia_fields.h"

namespace hotlap {
namespace {

constexpr double kMebibyte = 1024 * 1024;
constexpr double kPercent = 100;  // of a ratio
constexpr double kMilli = 1e-3;

constexpr std::array kFields{
    DcgmField{"DCGM_FI_DEV_GPU_UTIL", "GPUTL", kBusy},
    DcgmField{"DCGM_FI_DEV_MEM_COPY_UTIL", "MCUTL", kMemoryController},
    DcgmField{"DCGM_FI_DEV_ENC_UTIL", "ECUTL", kEncoder},
    DcgmField{"DCGM_FI_DEV_DEC_UTIL", "DCUTL", kDecoder},
    DcgmField{"DCGM_FI_DEV_FB_USED", "FBUSD", kMemoryUsed, kMebibyte},
    DcgmField{"DCGM_FI_DEV_FB_FREE", "FBFRE", kMemoryFree, kMebibyte},
    DcgmField{"DCGM_FI_DEV_FB_TOTAL", "FBTTL", kMemoryTotal, kMebibyte},
    DcgmField{"DCGM_FI_DEV_FB_RESERVED", "FBRSV", kMemoryReserved, kMebibyte},
    DcgmField{"DCGM_FI_DEV_POWER_USAGE", "POWER", kPower},
    DcgmField{"DCGM_FI_DEV_POWER_USAGE_INSTANT", "POWINST", kPowerInstant},
    DcgmField{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "EPLMT", kPowerLimit},
    DcgmField{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "PMLMT", kPowerLimitRequested},
    DcgmField{"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "PMDEF", kPowerLimitDefault},
    DcgmField{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "TOTEC", kEnergy, kMilli},
    DcgmField{"DCGM_FI_DEV_GPU_TEMP", "TMPTR", kTemperature},
    DcgmField{"DCGM_FI_DEV_MEMORY_TEMP", "MMTMP", kTemperatureMemory},
    DcgmField{"DCGM_FI_DEV_SLOWDOWN_TEMP", "SLWTM", kTemperatureSlowdown},
    DcgmField{"DCGM_FI_DEV_FAN_SPEED", "FANSP", kFan},
    DcgmField{"DCGM_FI_DEV_SM_CLOCK", "SMCLK", kClockSm},
    DcgmField{"DCGM_FI_DEV_MEM_CLOCK", "MMCLK", kClockMemory},
    DcgmField{"DCGM_FI_DEV_VIDEO_CLOCK", "VICLK", kClockVideo},
    DcgmField{"DCGM_FI_DEV_MAX_SM_CLOCK", "MAXSM", kClockSmMax},
    DcgmField{"DCGM_FI_DEV_MAX_MEM_CLOCK", "MAXMM", kClockMemoryMax},
    DcgmField{"DCGM_FI_DEV_PSTATE", "PSTAT", kPerformanceState},
    DcgmField{"DCGM_FI_DEV_PCIE_LINK_GEN", "PCILG", kPcieGeneration},
    DcgmField{"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "PCIMG", kPcieGenerationMax},
    DcgmField{"DCGM_FI_DEV_PCIE_LINK_WIDTH", "PCILW", kPcieWidth},
    DcgmField{"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "PCIMW", kPcieWidthMax},
    DcgmField{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIRE", kPcieReplays},
    DcgmField{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "ESVTL", kEccCorrectedNow},
    DcgmField{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "EDVTL", kEccUncorrectedNow},
    DcgmField{"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "ESATL", kEccCorrectedEver},
    DcgmField{"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "EDATL", kEccUncorrectedEver},
    DcgmField{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "CRRER", kRowsCorrectable},
    DcgmField{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "URRER", kRowsUncorrectable},
    DcgmField{"DCGM_FI_DEV_ROW_REMAP_PENDING", "RRPND", kRowsPending},
    DcgmField{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "RRFLR", kRowsFailed},
    DcgmField{"DCGM_FI_DEV_RETIRED_SBE", "RSBEC", kRetiredCorrected},
    DcgmField{"DCGM_FI_DEV_RETIRED_DBE", "RDBEC", kRetiredUncorrected},
    DcgmField{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GRACT", kGpmGraphicsActive, kPercent},
    DcgmField{"DCGM_FI_PROF_SM_ACTIVE", "SMACT", kGpmSmActive, kPercent},
    DcgmField{"DCGM_FI_PROF_SM_OCCUPANCY", "SMOCC", kGpmSmOccupancy, kPercent},
    DcgmField{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "TENSO", kGpmTensorActive, kPercent},
    DcgmField{"DCGM_FI_PROF_DRAM_ACTIVE", "DRAMA", kGpmDramActive, kPercent},
    DcgmField{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "FP64A", kGpmFp64Active, kPercent},
    DcgmField{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "FP32A", kGpmFp32Active, kPercent},
    DcgmField{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "FP16A", kGpmFp16Active, kPercent},
    DcgmField{"DCGM_FI_PROF_PCIE_TX_BYTES", "PCITX", kGpmPcieSent},
    DcgmField{"DCGM_FI_PROF_PCIE_RX_BYTES", "PCIRX", kGpmPcieReceived},
    DcgmField{"DCGM_FI_PROF_NVLINK_TX_BYTES", "NVLTX", kGpmNvlinkSent},
    DcgmField{"DCGM_FI_PROF_NVLINK_RX_BYTES", "NVLRX", kGpmNvlinkReceived},
};
constexpr std::array<std::string_view, 2> kXidFields{"DCGM_FI_DEV_XID_ERRORS", "XIDER"};

// DCGM's own words for "no value" in numbers: its blank integers and doubles, and what lies behind them.
bool is_blank(double number) { return !std::isfinite(number) || std::fabs(number) >= 140'737'488'355'328.0; }

std::string other_name(std::string_view name) {
  constexpr std::string_view kPrefix = "DCGM_FI_";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  std::string out = "dcgm.";
  for (const char c : name.substr(0, 64)) out += to_lower(c);
  return out;
}

}  // namespace

const DcgmField* find_dcgm_field(std::string_view name_or_column) {
  const auto* const found = std::ranges::find_if(kFields, [&](const DcgmField& field) {
    return field.name == name_or_column || (!field.column.empty() && field.column == name_or_column);
  });
  return found == kFields.end() ? nullptr : &*found;
}

void DcgmReadings::take(std::string_view name, const std::string& instance, std::int64_t t_ns,
                        std::optional<double> told) {
  const bool is_known = told && !is_blank(*told);
  const double number = is_known ? *told : 0;
  if (std::ranges::find(kXidFields, name) != kXidFields.end()) {
    if (is_known) take_xid(instance, t_ns, number);
    return;
  }
  const DcgmField* field = find_dcgm_field(name);
  if (field == nullptr) {
    const std::string other = other_name(name);
    const SeriesHandle series = out_.series({.name = other, .unit = "1", .help = "As DCGM told it."}, instance);
    out_.sample(series, t_ns, is_known ? Value::of(number) : Value::missing(MissingReason::kNotSupported));
    return;
  }
  const MetricDesc& metric = kNvidiaMetrics[field->metric];
  const auto value = is_known ? stored_value(metric, number * field->factor) : std::nullopt;
  out_.sample(out_.series(metric, instance), t_ns, value.value_or(Value::missing(MissingReason::kNotSupported)));
  if (is_known) take_memory(field->metric, instance, t_ns, number * field->factor);
}

// The exporter's usual list has no total.
void DcgmReadings::take_memory(NvidiaMetric metric, const std::string& instance, std::int64_t t_ns, double bytes) {
  const bool is_part = metric == kMemoryUsed || metric == kMemoryFree || metric == kMemoryReserved;
  if (!is_part && metric != kMemoryTotal) return;
  if (memory_.size() >= kGpusMax && !memory_.contains(instance)) return;
  Memory& memory = memory_[instance];
  if (metric == kMemoryTotal) memory.has_total = true;
  if (memory.has_total) return;
  if (memory.t_ns != t_ns) memory = {.t_ns = t_ns};
  (metric == kMemoryUsed ? memory.used : metric == kMemoryFree ? memory.free : memory.reserved) = bytes;
  if (!memory.used || !memory.free) return;
  const auto total = stored_value(kNvidiaMetrics[kMemoryTotal], *memory.used + *memory.free);
  if (metric != kMemoryReserved && total)
    out_.sample(out_.series(kNvidiaMetrics[kMemoryTotal], instance), t_ns, *total);
}

// The field holds the code of the last error, again and again.
void DcgmReadings::take_xid(const std::string& instance, std::int64_t t_ns, double code) {
  if (xids_.size() >= kGpusMax && !xids_.contains(instance)) return;
  double& last = xids_[instance];
  if (code > 0 && code != last) {
    out_.event({.t_ns = t_ns, .kind = EventKind::kGpuXid, .value = static_cast<std::int64_t>(code), .text = instance});
  }
  last = code;
}

}  // namespace hotlap
