#include "collect/nvidia_device.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/format.h"

namespace hotlap {
namespace {

enum class Pace : std::uint8_t { kFast, kSlow, kRare };

bool is_due(Pace pace, const NvidiaPace& due) {
  return pace == Pace::kFast || (pace == Pace::kSlow ? due.is_slow : due.is_rare);
}

// "Not available" in the two widths in which NVML says it.
Value number(std::uint32_t found) {
  return found == UINT32_MAX ? Value::missing(MissingReason::kNotSupported) : Value::of(std::uint64_t{found});
}
Value number(std::uint64_t found) {
  return found == UINT64_MAX ? Value::missing(MissingReason::kNotSupported) : Value::of(found);
}

using Values = std::span<Value>;

NvmlStatus read_number(NvmlCalls::Number* call, NvmlDevice device, Values out, std::uint32_t scale = 1) {
  if (call == nullptr) return NvmlStatus::kFunctionNotFound;
  std::uint32_t found = 0;
  const NvmlStatus status = call(device, &found);
  out[0] = found == UINT32_MAX ? number(found) : number(std::uint64_t{found} * scale);
  return status;
}
NvmlStatus read_big_number(NvmlCalls::BigNumber* call, NvmlDevice device, Values out) {
  if (call == nullptr) return NvmlStatus::kFunctionNotFound;
  std::uint64_t found = 0;
  const NvmlStatus status = call(device, &found);
  out[0] = number(found);
  return status;
}
NvmlStatus read_number_of(NvmlCalls::NumberOf* call, NvmlDevice device, std::uint32_t kind, Values out,
                          std::uint32_t scale = 1) {
  if (call == nullptr) return NvmlStatus::kFunctionNotFound;
  std::uint32_t found = 0;
  const NvmlStatus status = call(device, kind, &found);
  out[0] = found == UINT32_MAX ? number(found) : number(std::uint64_t{found} * scale);
  return status;
}
NvmlStatus read_ecc(const NvmlCalls& calls, NvmlDevice device, std::uint32_t type, std::uint32_t counter, Values out) {
  if (calls.ecc_errors == nullptr) return NvmlStatus::kFunctionNotFound;
  std::uint64_t found = 0;
  const NvmlStatus status = calls.ecc_errors(device, type, counter, &found);
  out[0] = number(found);
  return status;
}
NvmlStatus read_sampled(NvmlCalls::Sampled* call, NvmlDevice device, Values out) {
  if (call == nullptr) return NvmlStatus::kFunctionNotFound;
  std::uint32_t found = 0;
  std::uint32_t window_us = 0;
  const NvmlStatus status = call(device, &found, &window_us);
  out[0] = number(found);
  return status;
}

NvmlStatus read_utilization(const NvmlCalls& calls, NvmlDevice device, Values out) {
  if (calls.utilization == nullptr) return NvmlStatus::kFunctionNotFound;
  NvmlUtilization found{};
  const NvmlStatus status = calls.utilization(device, &found);
  out[0] = number(found.gpu);
  out[1] = number(found.memory);
  return status;
}

// The later form keeps apart what is allocated and what is reserved.
NvmlStatus read_memory(const NvmlCalls& calls, NvmlDevice device, Values out) {
  if (calls.memory_v2 != nullptr) {
    NvmlMemoryV2 found{};
    found.version = kNvmlMemoryV2Version;
    const NvmlStatus status = calls.memory_v2(device, &found);
    if (status == NvmlStatus::kSuccess) {
      out[0] = number(found.used);
      out[1] = number(found.total);
      out[2] = number(found.free);
      out[3] = number(found.reserved);
      return status;
    }
    const bool is_old = missing_reason(status) == MissingReason::kNotSupported;
    if (!is_old || calls.memory == nullptr) return status;
  }
  if (calls.memory == nullptr) return NvmlStatus::kFunctionNotFound;
  NvmlMemory found{};
  const NvmlStatus status = calls.memory(device, &found);
  out[0] = number(found.used);
  out[1] = number(found.total);
  out[2] = number(found.free);
  out[3] = Value::missing(MissingReason::kNotSupported);
  return status;
}

NvmlStatus read_bar1(const NvmlCalls& calls, NvmlDevice device, Values out) {
  if (calls.bar1_memory == nullptr) return NvmlStatus::kFunctionNotFound;
  NvmlBar1Memory found{};
  const NvmlStatus status = calls.bar1_memory(device, &found);
  out[0] = number(found.used);
  out[1] = number(found.total);
  return status;
}

NvmlStatus read_performance_state(const NvmlCalls& calls, NvmlDevice device, Values out) {
  constexpr std::uint64_t kUnknownState = 32;
  const NvmlStatus status = read_number(calls.performance_state, device, out);
  if (status == NvmlStatus::kSuccess && out[0] == Value::of(kUnknownState)) {
    out[0] = Value::missing(MissingReason::kNotSupported);
  }
  return status;
}

NvmlStatus read_remapped_rows(const NvmlCalls& calls, NvmlDevice device, Values out) {
  if (calls.remapped_rows == nullptr) return NvmlStatus::kFunctionNotFound;
  std::array<std::uint32_t, 4> found{};
  const NvmlStatus status = calls.remapped_rows(device, &found[0], &found[1], &found[2], &found[3]);
  std::transform(found.begin(), found.end(), out.begin(), [](std::uint32_t n) { return number(n); });
  return status;
}

NvmlStatus read_nvlink_active(const NvmlCalls& calls, NvmlDevice device, Values out) {
  constexpr std::uint32_t kLinksMax = 18;
  if (calls.nvlink_state == nullptr) return NvmlStatus::kFunctionNotFound;
  std::uint64_t active = 0;
  for (std::uint32_t link = 0; link < kLinksMax; ++link) {
    std::uint32_t is_active = 0;
    const NvmlStatus status = calls.nvlink_state(device, link, &is_active);
    if (status != NvmlStatus::kSuccess && link == 0) return status;
    if (is_device_lost(status)) return status;
    if (status == NvmlStatus::kInvalidArgument) break;  // beyond the last link
    if (status == NvmlStatus::kSuccess && is_active == 1) ++active;
  }
  out[0] = Value::of(active);
  return NvmlStatus::kSuccess;
}

NvmlStatus read_mig_mode(const NvmlCalls& calls, NvmlDevice device, Values out) {
  if (calls.mig_mode == nullptr) return NvmlStatus::kFunctionNotFound;
  std::uint32_t current = 0;
  std::uint32_t pending = 0;
  const NvmlStatus status = calls.mig_mode(device, &current, &pending);
  out[0] = number(current);
  return status;
}

// One call, which fills the metrics from `first` to `last`.
struct Part {
  Pace pace;
  bool is_of_mig;  // also asked of MIG instances
  NvidiaMetric first, last;
  NvmlStatus (*read)(const NvmlCalls& calls, NvmlDevice device, Values out);
};
constexpr std::size_t kPartValuesMax = 4;
constexpr std::uint32_t kClockGraphicsKind = 0;
constexpr std::uint32_t kClockSmKind = 1;
constexpr std::uint32_t kClockMemoryKind = 2;
constexpr std::uint32_t kClockVideoKind = 3;
constexpr std::uint32_t kThresholdSlowdown = 1;
constexpr std::uint32_t kMilli = 1000;

constexpr std::array kParts{
    // Utilization of a MIG instance is not to be had; it is asked for, so that it is seen to be missing.
    Part{Pace::kFast, true, kBusy, kMemoryController, read_utilization},
    Part{Pace::kFast, true, kMemoryUsed, kMemoryReserved, read_memory},
    Part{Pace::kRare, true, kBar1Used, kBar1Total, read_bar1},
    Part{Pace::kFast, false, kPower, kPower,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.power, d, out); }},
    Part{Pace::kFast, false, kEnergy, kEnergy,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_big_number(c.energy, d, out); }},
    Part{Pace::kSlow, false, kPowerLimit, kPowerLimit,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.power_limit_enforced, d, out); }},
    Part{Pace::kRare, false, kPowerLimitDefault, kPowerLimitDefault,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.power_limit_default, d, out); }},
    Part{Pace::kRare, false, kPowerLimitRequested, kPowerLimitRequested,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.power_limit_requested, d, out); }},
    Part{Pace::kSlow, false, kTemperature, kTemperature,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number_of(c.temperature, d, 0, out, kMilli); }},
    Part{Pace::kRare, false, kTemperatureSlowdown, kTemperatureSlowdown,
         [](const NvmlCalls& c, NvmlDevice d, Values out) {
           return read_number_of(c.temperature_threshold, d, kThresholdSlowdown, out, kMilli);
         }},
    Part{Pace::kSlow, false, kFan, kFan,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.fan, d, out); }},
    Part{Pace::kFast, false, kClockSm, kClockSm,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number_of(c.clock, d, kClockSmKind, out); }},
    Part{Pace::kSlow, false, kClockGraphics, kClockGraphics,
         [](const NvmlCalls& c, NvmlDevice d, Values out) {
           return read_number_of(c.clock, d, kClockGraphicsKind, out);
         }},
    Part{
        Pace::kSlow, false, kClockMemory, kClockMemory,
        [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number_of(c.clock, d, kClockMemoryKind, out); }},
    Part{Pace::kSlow, false, kClockVideo, kClockVideo,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number_of(c.clock, d, kClockVideoKind, out); }},
    Part{
        Pace::kRare, false, kClockSmMax, kClockSmMax,
        [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number_of(c.clock_max, d, kClockSmKind, out); }},
    Part{Pace::kRare, false, kClockMemoryMax, kClockMemoryMax,
         [](const NvmlCalls& c, NvmlDevice d, Values out) {
           return read_number_of(c.clock_max, d, kClockMemoryKind, out);
         }},
    Part{Pace::kSlow, false, kPerformanceState, kPerformanceState, read_performance_state},
    Part{Pace::kSlow, false, kPcieGeneration, kPcieGeneration,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.pcie_generation, d, out); }},
    Part{Pace::kRare, false, kPcieGenerationMax, kPcieGenerationMax,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.pcie_generation_max, d, out); }},
    Part{Pace::kSlow, false, kPcieWidth, kPcieWidth,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.pcie_width, d, out); }},
    Part{Pace::kRare, false, kPcieWidthMax, kPcieWidthMax,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.pcie_width_max, d, out); }},
    Part{Pace::kRare, false, kPcieReplays, kPcieReplays,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.pcie_replays, d, out); }},
    Part{Pace::kRare, false, kNvlinkActive, kNvlinkActive, read_nvlink_active},
    Part{Pace::kRare, false, kEccCorrectedNow, kEccCorrectedNow,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_ecc(c, d, 0, 0, out); }},
    Part{Pace::kRare, false, kEccUncorrectedNow, kEccUncorrectedNow,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_ecc(c, d, 1, 0, out); }},
    Part{Pace::kRare, false, kEccCorrectedEver, kEccCorrectedEver,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_ecc(c, d, 0, 1, out); }},
    Part{Pace::kRare, false, kEccUncorrectedEver, kEccUncorrectedEver,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_ecc(c, d, 1, 1, out); }},
    Part{Pace::kRare, false, kRowsCorrectable, kRowsFailed, read_remapped_rows},
    Part{Pace::kSlow, false, kEncoder, kEncoder,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_sampled(c.encoder, d, out); }},
    Part{Pace::kSlow, false, kDecoder, kDecoder,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_sampled(c.decoder, d, out); }},
    Part{Pace::kRare, false, kMigEnabled, kMigEnabled, read_mig_mode},
    Part{Pace::kRare, false, kAccounting, kAccounting,
         [](const NvmlCalls& c, NvmlDevice d, Values out) { return read_number(c.accounting_mode, d, out); }},
};

// A value of nvmlDeviceGetFieldValues.
struct Field {
  Pace pace;
  std::uint32_t id;
  NvidiaMetric metric;
  std::uint32_t scope = 0;
  std::uint64_t scale = 1;
};
constexpr std::array kFields{
    Field{Pace::kFast, 186, kPowerInstant},
    Field{Pace::kSlow, 82, kTemperatureMemory, 0, kMilli},
    Field{Pace::kSlow, 74, kTimePowerCap},
    Field{Pace::kSlow, 76, kTimeSyncBoost},
    Field{Pace::kSlow, 251, kTimeThermalSw},
    Field{Pace::kSlow, 252, kTimeThermalHw},
    Field{Pace::kSlow, 253, kTimePowerBrake},
    Field{Pace::kSlow, 197, kPcieSent},
    Field{Pace::kSlow, 198, kPcieReceived},
    Field{Pace::kSlow, 138, kNvlinkSent, kNvmlAllLinks},
    Field{Pace::kSlow, 139, kNvlinkReceived, kNvmlAllLinks},
    Field{Pace::kRare, 45, kNvlinkCrc},
    Field{Pace::kRare, 52, kNvlinkReplay},
    Field{Pace::kRare, 59, kNvlinkRecovery},
    Field{Pace::kRare, 29, kRetiredCorrected},
    Field{Pace::kRare, 30, kRetiredUncorrected},
    Field{Pace::kRare, 230, kRecoveryAction},
};

Value value_of(const NvmlFieldValue& field, std::uint64_t scale) {
  enum : std::int32_t { kDouble, kUnsignedInt, kUnsignedLong, kUnsignedLongLong, kSignedLongLong, kSignedInt, kShort };
  switch (field.type) {
    case kUnsignedInt: return field.value.u32 == UINT32_MAX ? number(UINT32_MAX) : number(field.value.u32 * scale);
    case kUnsignedLong:
    case kUnsignedLongLong: return number(field.value.u64 == UINT64_MAX ? UINT64_MAX : field.value.u64 * scale);
    case kShort: return number(field.value.u16 * scale);
    case kSignedLongLong:
      if (field.value.i64 >= 0) return number(static_cast<std::uint64_t>(field.value.i64) * scale);
      break;
    case kSignedInt:
      if (field.value.i32 >= 0) return number(static_cast<std::uint64_t>(field.value.i32) * scale);
      break;
    case kDouble:
      if (std::isfinite(field.value.f64)) return Value::of(field.value.f64 * static_cast<double>(scale));
      break;
    default: break;
  }
  return Value::missing(MissingReason::kReadFailed);
}

struct GpmMetric {
  std::uint32_t id;
  NvidiaMetric metric;
};
constexpr std::array kGpmMetrics{
    GpmMetric{1, kGpmGraphicsActive}, GpmMetric{2, kGpmSmActive},    GpmMetric{3, kGpmSmOccupancy},
    GpmMetric{5, kGpmTensorActive},   GpmMetric{10, kGpmDramActive}, GpmMetric{11, kGpmFp64Active},
    GpmMetric{12, kGpmFp32Active},    GpmMetric{13, kGpmFp16Active}, GpmMetric{20, kGpmPcieSent},
    GpmMetric{21, kGpmPcieReceived},  GpmMetric{61, kGpmNvlinkSent}, GpmMetric{60, kGpmNvlinkReceived},
};

}  // namespace

bool is_device_lost(NvmlStatus status) {
  return status != NvmlStatus::kSuccess && missing_reason(status) == MissingReason::kSourceLost;
}

void NvidiaDevice::attach(NvmlDevice handle, NvmlDevice parent) {
  handle_ = handle;
  parent_ = parent;
  is_fresh_ = true;
  unknown_errors_ = 0;
  is_refused_.fill(false);
}

void NvidiaDevice::detach(const NvmlCalls& calls) {
  if (calls.gpm_sample_free != nullptr) {
    if (gpm_before_.handle != nullptr) calls.gpm_sample_free(gpm_before_);
    if (gpm_now_.handle != nullptr) calls.gpm_sample_free(gpm_now_);
  }
  gpm_before_ = gpm_now_ = {};
  gpm_ = Gpm::kUnknown;
  has_gpm_before_ = false;
  processes_.reset();
  handle_ = parent_ = {};
}

void NvidiaDevice::put(NvidiaMetric metric, Value value, SampleSink& out) {
  if (!is_registered_[metric]) {
    series_[metric] = out.series(metric, identity_.label);
    is_registered_[metric] = true;
  }
  is_refused_[metric] = value.is_missing() && (value.reason() == MissingReason::kNotSupported ||
                                               value.reason() == MissingReason::kNoPermission);
  out.add(series_[metric], value);
}

void NvidiaDevice::put_all_missing(MissingReason reason, SampleSink& out) {
  for (std::size_t m = 0; m < kNvidiaMetricCount; ++m) {
    if (is_registered_[m]) out.add(series_[m], Value::missing(reason));
  }
  for (auto& [slot, series] : process_series_) {
    if (!series.is_live) continue;
    out.add(series.memory, Value::missing(reason));
    series.is_live = false;
  }
}

void NvidiaDevice::put_refused(MissingReason reason, SampleSink& out) {
  for (const NvidiaMetric metric : {kBusy, kMemoryController, kMemoryUsed, kMemoryTotal, kPower}) {
    put(metric, Value::missing(reason), out);
  }
}

NvmlStatus NvidiaDevice::sample(const NvmlCalls& calls, const NvidiaPace& due, SampleSink& out) {
  NvidiaPace pace = due;
  if (std::exchange(is_fresh_, false)) pace.is_slow = pace.is_rare = true;
  if (const NvmlStatus status = read_parts(calls, pace, out); is_device_lost(status)) return status;
  if (pace.is_slow) read_gpm(calls, out);
  if (identity_.is_mig()) return NvmlStatus::kSuccess;
  if (const NvmlStatus status = read_clock_events(calls, pace, out); is_device_lost(status)) return status;
  if (const NvmlStatus status = read_fields(calls, pace, out); is_device_lost(status)) return status;
  put(kXids, Value::of(xids_), out);
  return NvmlStatus::kSuccess;
}

NvmlStatus NvidiaDevice::read_parts(const NvmlCalls& calls, const NvidiaPace& pace, SampleSink& out) {
  for (const Part& part : kParts) {
    if (identity_.is_mig() && !part.is_of_mig) continue;
    const bool is_time = is_refused_[part.first] ? pace.is_rare : is_due(part.pace, pace);
    if (!is_time) continue;
    std::array<Value, kPartValuesMax> values;
    const std::size_t count = std::size_t{part.last} - part.first + 1;
    const NvmlStatus status = part.read(calls, handle_, std::span(values).first(count));
    if (is_device_lost(status)) return status;
    if (part.first == kMemoryUsed) unknown_errors_ = status == NvmlStatus::kUnknown ? unknown_errors_ + 1 : 0;
    for (std::size_t v = 0; v < count; ++v) {
      const bool is_read = status == NvmlStatus::kSuccess;
      put(static_cast<NvidiaMetric>(part.first + v), is_read ? values[v] : Value::missing(missing_reason(status)), out);
    }
  }
  return NvmlStatus::kSuccess;
}

NvmlStatus NvidiaDevice::read_clock_events(const NvmlCalls& calls, const NvidiaPace& pace, SampleSink& out) {
  if (is_refused_[kEventMask] && !pace.is_rare) return NvmlStatus::kSuccess;
  Value mask;
  const NvmlStatus status = read_big_number(calls.clock_event_reasons, handle_, std::span(&mask, 1));
  if (is_device_lost(status)) return status;
  if (status != NvmlStatus::kSuccess) mask = Value::missing(missing_reason(status));
  put(kEventMask, mask, out);
  // The bits in NVML's order.
  for (unsigned bit = 0; bit <= kEventDisplayClocks - kEventIdle; ++bit) {
    put(static_cast<NvidiaMetric>(kEventIdle + bit),
        mask.is_missing() ? mask : Value::of((mask.u64() >> bit) & std::uint64_t{1}), out);
  }
  return NvmlStatus::kSuccess;
}

NvmlStatus NvidiaDevice::read_fields(const NvmlCalls& calls, const NvidiaPace& pace, SampleSink& out) {
  std::array<NvmlFieldValue, kFields.size()> asked{};
  std::array<const Field*, kFields.size()> fields{};
  std::size_t count = 0;
  for (const Field& field : kFields) {
    if (!(is_refused_[field.metric] ? pace.is_rare : is_due(field.pace, pace))) continue;
    asked[count].field = field.id;
    asked[count].scope = field.scope;
    asked[count].status = NvmlStatus::kUnknown;
    fields[count++] = &field;
  }
  if (count == 0) return NvmlStatus::kSuccess;
  const NvmlStatus status = calls.field_values == nullptr
                                ? NvmlStatus::kFunctionNotFound
                                : calls.field_values(handle_, static_cast<std::int32_t>(count), asked.data());
  if (is_device_lost(status)) return status;
  for (std::size_t f = 0; f < count; ++f) {
    NvmlStatus own = status == NvmlStatus::kSuccess ? asked[f].status : status;
    if (is_device_lost(own)) return own;
    if (own == NvmlStatus::kInvalidArgument) own = NvmlStatus::kNotSupported;  // a field that this driver does not know
    put(fields[f]->metric,
        own == NvmlStatus::kSuccess ? value_of(asked[f], fields[f]->scale) : Value::missing(missing_reason(own)), out);
  }
  return NvmlStatus::kSuccess;
}

bool NvidiaDevice::wants_pcie_rate() const {
  return is_attached() && !identity_.is_mig() && is_refused_[kPcieSent] && !is_refused_[kPcieSendRate];
}

NvmlStatus NvidiaDevice::sample_pcie_rate(const NvmlCalls& calls, SampleSink& out) {
  for (const auto& [kind, metric] : {std::pair{0U, kPcieSendRate}, std::pair{1U, kPcieReceiveRate}}) {
    Value rate;
    const NvmlStatus status = read_number_of(calls.pcie_throughput, handle_, kind, std::span(&rate, 1));
    if (is_device_lost(status)) return status;
    put(metric, status == NvmlStatus::kSuccess ? rate : Value::missing(missing_reason(status)), out);
  }
  return NvmlStatus::kSuccess;
}

bool NvidiaDevice::open_gpm(const NvmlCalls& calls) {
  const bool has_calls = calls.gpm_support != nullptr && calls.gpm_sample_alloc != nullptr &&
                         calls.gpm_sample_free != nullptr && calls.gpm_sample_get != nullptr &&
                         calls.gpm_metrics_get != nullptr;
  if (!has_calls || (identity_.is_mig() && calls.gpm_mig_sample_get == nullptr)) return false;
  NvmlGpmSupport support{.version = kNvmlGpmVersion, .is_supported = 0};
  const NvmlDevice gpu = identity_.is_mig() ? parent_ : handle_;
  if (calls.gpm_support(gpu, &support) != NvmlStatus::kSuccess || support.is_supported == 0) return false;
  if (calls.gpm_sample_alloc(&gpm_before_) != NvmlStatus::kSuccess) return false;
  if (calls.gpm_sample_alloc(&gpm_now_) != NvmlStatus::kSuccess) return false;
  gpm_query_ = std::make_unique<NvmlGpmQuery>();
  return true;
}

// The library works out each figure from two samples of its counters, a second apart.
void NvidiaDevice::read_gpm(const NvmlCalls& calls, SampleSink& out) {
  if (gpm_ == Gpm::kUnknown) {
    gpm_ = open_gpm(calls) ? Gpm::kOpen : Gpm::kNone;
    for (const GpmMetric& one : kGpmMetrics) {
      const auto reason = gpm_ == Gpm::kOpen ? MissingReason::kNotSampled : MissingReason::kNotSupported;
      put(one.metric, Value::missing(reason), out);
    }
    if (gpm_ == Gpm::kNone) return;
    const NvmlStatus first = identity_.is_mig() ? calls.gpm_mig_sample_get(parent_, identity_.gpu_instance, gpm_before_)
                                                : calls.gpm_sample_get(handle_, gpm_before_);
    has_gpm_before_ = first == NvmlStatus::kSuccess;
    return;
  }
  if (gpm_ == Gpm::kNone) return;
  const NvmlStatus status = identity_.is_mig() ? calls.gpm_mig_sample_get(parent_, identity_.gpu_instance, gpm_now_)
                                               : calls.gpm_sample_get(handle_, gpm_now_);
  if (status != NvmlStatus::kSuccess) {
    has_gpm_before_ = false;
    for (const GpmMetric& one : kGpmMetrics) put(one.metric, Value::missing(missing_reason(status)), out);
    if (missing_reason(status) == MissingReason::kNotSupported) gpm_ = Gpm::kNone;  // a GPU that is split
    return;
  }
  if (has_gpm_before_) put_gpm(calls, out);
  std::swap(gpm_before_, gpm_now_);
  has_gpm_before_ = true;
}

void NvidiaDevice::put_gpm(const NvmlCalls& calls, SampleSink& out) {
  NvmlGpmQuery& query = *gpm_query_;
  query.version = kNvmlGpmVersion;
  query.count = kGpmMetrics.size();
  query.before = gpm_before_;
  query.after = gpm_now_;
  for (std::size_t m = 0; m < kGpmMetrics.size(); ++m) {
    query.metrics[m] = {};
    query.metrics[m].id = kGpmMetrics[m].id;
    query.metrics[m].status = NvmlStatus::kUnknown;
  }
  const NvmlStatus status = calls.gpm_metrics_get(&query);
  for (std::size_t m = 0; m < kGpmMetrics.size(); ++m) {
    const NvmlStatus own = status == NvmlStatus::kSuccess ? query.metrics[m].status : status;
    const double found = query.metrics[m].value;
    Value value = Value::missing(MissingReason::kReadFailed);
    if (own != NvmlStatus::kSuccess)
      value = Value::missing(missing_reason(own));
    else if (std::isfinite(found) && found >= 0)
      value = Value::of(found);
    put(kGpmMetrics[m].metric, value, out);
  }
}

}  // namespace hotlap
