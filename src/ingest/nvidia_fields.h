#pragma once
// The fields that nvidia-smi prints, as the metrics that the collector `nvidia` records: one table for all its formats.
#include <optional>
#include <string>
#include <string_view>

#include "model/metric.h"
#include "model/nvidia_metrics.h"
#include "model/value.h"

namespace hotlap {

// How a field's text becomes a number.
enum class NvidiaText : std::uint8_t {
  kNumber,            // with or without a unit
  kHex,               // 0x0000000000000001
  kSwitch,            // Active, Enabled, Yes: 1; Not Active, Disabled, No: 0
  kPerformanceState,  // P0 … P15
  kRecovery,          // None, GPU Reset, Node Reboot, Drain P2P, Drain and Reset
};

struct NvidiaField {
  std::string_view name;        // as --query-gpu takes it
  std::string_view other_name;  // an older or newer one; empty: none
  NvidiaMetric metric;
  std::string_view unit;  // where neither title nor value says one
  NvidiaText text = NvidiaText::kNumber;
};

// Null: it is none of the metrics. Titles of older drivers (clocks_throttle_reasons.*) are known.
const NvidiaField* find_nvidia_field(std::string_view name);

// Where two columns give the same metric, the one that stands first in the table counts.
bool is_before(const NvidiaField& a, const NvidiaField& b);

// Why there is no number: "[N/A]", "[Not Supported]", "[Unknown Error]", "ERR!" … Nothing when `text` is not of these.
std::optional<MissingReason> nvidia_missing(std::string_view text_untrusted);

// "58.67 W", "100", "1024 MiB"; the number in the base unit (bytes, seconds, watts) and the unit's UCUM name.
struct NvidiaQuantity {
  double number = 0;
  std::string_view unit;  // UCUM; "1" where there was none
};
std::optional<NvidiaQuantity> read_nvidia_quantity(std::string_view text_untrusted, std::string_view title_unit);

// As the collector would have stored it (integer × scale). Nothing when it is neither a number nor a known word.
std::optional<Value> read_nvidia_value(const NvidiaField& field, std::string_view text_untrusted,
                                       std::string_view title_unit);

// A number in the metric's unit as the collector stores it; nothing when it does not fit.
std::optional<Value> stored_value(const MetricDesc& metric, double number);

}  // namespace hotlap
