#pragma once
// What a metric is: described once, beside the code that reads it. Docs, exporters, the API and the checks read this.
#include <cstdint>
#include <string_view>

namespace hotlap {

// Stored as one byte: append only.
enum class MetricKind : std::uint8_t {
  kGauge = 0,    // a level at the time of the sample
  kCounter = 1,  // grows; stored as the source's own integer, rates are made on reading; a decrease is a reset
};

// Names by which other systems know the metric; empty where they have none. Labels stand in braces as in Prometheus:
// `{mode="user"}` is fixed, a label without a value takes the instance. Their unit may differ: who exports converts.
struct MetricAliases {
  std::string_view cloudwatch;
  std::string_view otel;
  std::string_view prometheus;
};

struct MetricDesc {
  std::string_view name;  // area.thing.unit, lower case: "cpu.user.ticks"; unique over all collectors
  std::string_view unit;  // UCUM: "By", "s", "%", "1", "Hz"; "{tick}" and alike for plain counts
  MetricKind kind = MetricKind::kGauge;
  std::string_view help;           // one sentence
  std::int64_t window_ns = 0;      // the source averages over this time; 0: instantaneous
  std::int64_t min_period_ns = 0;  // the source is slow or dear: not sampled more often; 0: every tick
  MetricAliases aliases{};
  double scale = 1.0;  // stored integer × scale = value in `unit` (a tick of 10 ms: 0.01)
};

}  // namespace hotlap
