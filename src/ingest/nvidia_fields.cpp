#include "ingest/nvidia_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/ascii.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    NvidiaField{"utilization.gpu", "", kBusy, "%"},
    NvidiaField{"utilization.memory", "", kMemoryController, "%"},
    NvidiaField{"memory.used", "", kMemoryUsed, "MiB"},
    NvidiaField{"memory.total", "", kMemoryTotal, "MiB"},
    NvidiaField{"memory.free", "", kMemoryFree, "MiB"},
    NvidiaField{"memory.reserved", "", kMemoryReserved, "MiB"},
    NvidiaField{"power.draw", "", kPower, "W"},
    NvidiaField{"power.draw.average", "gpu.power.draw.average", kPower, "W"},
    NvidiaField{"power.draw.instant", "gpu.power.draw.instant", kPowerInstant, "W"},
    NvidiaField{"enforced.power.limit", "gpu.power.current_limit", kPowerLimit, "W"},
    NvidiaField{"power.limit", "gpu.power.requested_limit", kPowerLimitRequested, "W"},
    NvidiaField{"power.default_limit", "gpu.power.default_limit", kPowerLimitDefault, "W"},
    NvidiaField{"temperature.gpu", "", kTemperature, "C"},
    NvidiaField{"temperature.memory", "", kTemperatureMemory, "C"},
    NvidiaField{"fan.speed", "", kFan, "%"},
    NvidiaField{"clocks.current.sm", "clocks.sm", kClockSm, "MHz"},
    NvidiaField{"clocks.current.graphics", "clocks.gr", kClockGraphics, "MHz"},
    NvidiaField{"clocks.current.memory", "clocks.mem", kClockMemory, "MHz"},
    NvidiaField{"clocks.current.video", "clocks.video", kClockVideo, "MHz"},
    NvidiaField{"clocks.max.sm", "", kClockSmMax, "MHz"},
    NvidiaField{"clocks.max.memory", "clocks.max.mem", kClockMemoryMax, "MHz"},
    NvidiaField{"pstate", "", kPerformanceState, "", NvidiaText::kPerformanceState},
    NvidiaField{"clocks_event_reasons.active", "", kEventMask, "", NvidiaText::kHex},
    NvidiaField{"clocks_event_reasons.gpu_idle", "", kEventIdle, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.applications_clocks_setting", "", kEventApplicationClocks, "",
                NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.sw_power_cap", "", kEventPowerCap, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.hw_slowdown", "", kEventHwSlowdown, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.sync_boost", "", kEventSyncBoost, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.sw_thermal_slowdown", "", kEventThermalSw, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.hw_thermal_slowdown", "", kEventThermalHw, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.hw_power_brake_slowdown", "", kEventPowerBrake, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons.display_clocks_setting", "", kEventDisplayClocks, "", NvidiaText::kSwitch},
    NvidiaField{"clocks_event_reasons_counters.sw_power_cap", "", kTimePowerCap, "us"},
    NvidiaField{"clocks_event_reasons_counters.sync_boost", "", kTimeSyncBoost, "us"},
    NvidiaField{"clocks_event_reasons_counters.sw_thermal_slowdown", "", kTimeThermalSw, "us"},
    NvidiaField{"clocks_event_reasons_counters.hw_thermal_slowdown", "", kTimeThermalHw, "us"},
    NvidiaField{"clocks_event_reasons_counters.hw_power_brake_slowdown", "", kTimePowerBrake, "us"},
    NvidiaField{"pcie.link.gen.gpucurrent", "pcie.link.gen.current", kPcieGeneration, ""},
    NvidiaField{"pcie.link.gen.max", "", kPcieGenerationMax, ""},
    NvidiaField{"pcie.link.width.current", "", kPcieWidth, ""},
    NvidiaField{"pcie.link.width.max", "", kPcieWidthMax, ""},
    NvidiaField{"ecc.errors.corrected.volatile.total", "", kEccCorrectedNow, ""},
    NvidiaField{"ecc.errors.uncorrected.volatile.total", "", kEccUncorrectedNow, ""},
    NvidiaField{"ecc.errors.corrected.aggregate.total", "", kEccCorrectedEver, ""},
    NvidiaField{"ecc.errors.uncorrected.aggregate.total", "", kEccUncorrectedEver, ""},
    NvidiaField{"remapped_rows.correctable", "remapped_rows.sbe", kRowsCorrectable, ""},
    NvidiaField{"remapped_rows.uncorrectable", "remapped_rows.dbe", kRowsUncorrectable, ""},
    NvidiaField{"remapped_rows.pending", "", kRowsPending, "", NvidiaText::kSwitch},
    NvidiaField{"remapped_rows.failure", "", kRowsFailed, "", NvidiaText::kSwitch},
    NvidiaField{"retired_pages.single_bit_ecc.count", "retired_pages.sbe", kRetiredCorrected, ""},
    NvidiaField{"retired_pages.double_bit.count", "retired_pages.dbe", kRetiredUncorrected, ""},
    NvidiaField{"gpu_recovery_action", "", kRecoveryAction, "", NvidiaText::kRecovery},
    NvidiaField{"utilization.encoder", "", kEncoder, "%"},
    NvidiaField{"utilization.decoder", "", kDecoder, "%"},
    NvidiaField{"mig.mode.current", "", kMigEnabled, "", NvidiaText::kSwitch},
    NvidiaField{"accounting.mode", "", kAccounting, "", NvidiaText::kSwitch},
};

struct MissingWord {
  std::string_view word;  // in lower case, without brackets
  MissingReason reason;
};
constexpr std::array kMissingWords{
    MissingWord{"", MissingReason::kNotSupported},
    MissingWord{"n/a", MissingReason::kNotSupported},
    MissingWord{"not supported", MissingReason::kNotSupported},
    MissingWord{"not available", MissingReason::kNotSupported},
    MissingWord{"not found", MissingReason::kNotSupported},
    MissingWord{"requested functionality has been deprecated", MissingReason::kNotSupported},
    MissingWord{"function not found", MissingReason::kNotSupported},
    MissingWord{"insufficient permissions", MissingReason::kNoPermission},
    MissingWord{"no permission", MissingReason::kNoPermission},
    MissingWord{"unknown error", MissingReason::kReadFailed},
    MissingWord{"err!", MissingReason::kReadFailed},
    MissingWord{"error", MissingReason::kReadFailed},
    MissingWord{"unknown", MissingReason::kReadFailed},
    MissingWord{"timeout", MissingReason::kTimedOut},
    MissingWord{"gpu is lost", MissingReason::kSourceLost},
    MissingWord{"gpu requires reset", MissingReason::kSourceLost},
    MissingWord{"reset required", MissingReason::kSourceLost},
};

struct Unit {
  std::string_view text;
  std::string_view ucum;
  double factor;
};
constexpr std::array kUnits{Unit{"", "1", 1},
                            Unit{"%", "%", 1},
                            Unit{"W", "W", 1},
                            Unit{"mW", "W", 1e-3},
                            Unit{"MiB", "By", 1048576},
                            Unit{"KiB", "By", 1024},
                            Unit{"GiB", "By", 1073741824},
                            Unit{"B", "By", 1},
                            Unit{"MB", "By", 1048576},  // of nvidia-smi before MiB was said
                            Unit{"MHz", "MHz", 1},
                            Unit{"us", "s", 1e-6},
                            Unit{"ms", "s", 1e-3},
                            Unit{"s", "s", 1},
                            Unit{"C", "Cel", 1},
                            Unit{"mJ", "J", 1e-3},
                            Unit{"J", "J", 1},
                            Unit{"KB/s", "By/s", 1024},
                            Unit{"MB/s", "By/s", 1048576}};
const Unit* find_unit(std::string_view text) {
  const auto* const found = std::ranges::find(kUnits, text, &Unit::text);
  return found == kUnits.end() ? nullptr : &*found;
}

constexpr std::array<std::string_view, 5> kRecoveryActions{"none", "reset", "reboot", "drain p2p", "drain and reset"};

std::optional<std::uint64_t> read_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_word(NvidiaText kind, std::string_view text_untrusted) {
  const std::string text = to_lower(text_untrusted);
  switch (kind) {
    case NvidiaText::kHex: return read_hex(text);
    case NvidiaText::kSwitch:
      if (text == "active" || text == "enabled" || text == "yes" || text == "1") return 1;
      if (text == "not active" || text == "disabled" || text == "no" || text == "0") return 0;
      return std::nullopt;
    case NvidiaText::kPerformanceState:
      return text.starts_with('p') ? parse_u64(std::string_view(text).substr(1)) : parse_u64(text);
    case NvidiaText::kRecovery:
      for (std::size_t i = kRecoveryActions.size(); i-- > 0;) {
        if (text.ends_with(kRecoveryActions[i])) return i;  // "GPU Reset", "Node Reboot"; the longest first
      }
      return std::nullopt;
    case NvidiaText::kNumber: break;
  }
  return std::nullopt;
}

}  // namespace

const NvidiaField* find_nvidia_field(std::string_view name) {
  constexpr std::string_view kOld = "clocks_throttle_reasons";
  std::string renamed;
  if (name.starts_with(kOld)) {
    renamed = "clocks_event_reasons";
    renamed += name.substr(kOld.size());
    name = renamed;
  }
  for (const NvidiaField& field : kFields) {
    if (field.name == name || (!name.empty() && field.other_name == name)) return &field;
  }
  return nullptr;
}

bool is_before(const NvidiaField& a, const NvidiaField& b) { return &a < &b; }

std::optional<MissingReason> nvidia_missing(std::string_view text_untrusted) {
  std::string_view text = trim(text_untrusted);
  const bool is_bracketed = text.starts_with('[') && text.ends_with(']') && text.size() >= 2;
  if (is_bracketed) text = trim(text.substr(1, text.size() - 2));
  if (text.size() > 64) return std::nullopt;
  const std::string word = to_lower(text);
  const auto* const found = std::ranges::find(kMissingWords, word, &MissingWord::word);
  if (found != kMissingWords.end()) return found->reason;
  if (is_bracketed) return MissingReason::kReadFailed;  // a word of a later driver
  return std::nullopt;
}

std::optional<NvidiaQuantity> read_nvidia_quantity(std::string_view text_untrusted, std::string_view title_unit) {
  const std::string_view text = trim(text_untrusted);
  const std::size_t blank = text.find(' ');
  const auto number = parse_f64(text.substr(0, blank));
  const std::string_view own_unit = blank == std::string_view::npos ? std::string_view{} : trim(text.substr(blank));
  if (!number || !std::isfinite(*number)) return std::nullopt;
  const Unit* const unit = find_unit(own_unit.empty() ? title_unit : own_unit);
  if (unit == nullptr) return own_unit.empty() ? std::optional(NvidiaQuantity{*number, "1"}) : std::nullopt;
  return NvidiaQuantity{*number * unit->factor, unit->ucum};
}

std::optional<Value> stored_value(const MetricDesc& metric, double number) {
  constexpr double kExact = 9.0e15;  // below, a double holds every integer
  const double stored = std::round(number / metric.scale);
  if (!(std::fabs(stored) < kExact)) return std::nullopt;
  if (stored < 0) return Value::of(static_cast<std::int64_t>(stored));
  return Value::of(static_cast<std::uint64_t>(stored));
}

std::optional<Value> read_nvidia_value(const NvidiaField& field, std::string_view text_untrusted,
                                       std::string_view title_unit) {
  const std::string_view text = trim(text_untrusted);
  if (field.text == NvidiaText::kNumber) {
    const auto quantity = read_nvidia_quantity(text, title_unit.empty() ? field.unit : title_unit);
    if (quantity) return stored_value(kNvidiaMetrics[field.metric], quantity->number);
  } else if (const auto word = read_word(field.text, text)) {
    return Value::of(*word);
  }
  if (const auto reason = nvidia_missing(text)) return Value::missing(*reason);
  return std::nullopt;
}

}  // namespace hotlap
