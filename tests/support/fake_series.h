#pragma once
// Series of a recording in memory, each made of a function of time: what a collector would have seen of it.
#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "support/fake_recording.h"

namespace hotlap {

// Seconds of FakeJob's clock: it begins its first step at 1,000 s.
struct Ticks {
  double from_s = 1000;
  double to_s = 1100;
  double every_s = 0.5;
  std::int64_t window_ns = 0;
};

// A level; nothing: missing at that time.
inline void add_gauge(FakeRecording& out, const std::string& metric, const std::string& instance, const Ticks& ticks,
                      const std::function<std::optional<double>(double s)>& level) {
  for (double s = ticks.from_s; s <= ticks.to_s; s += ticks.every_s) {
    const auto value = level(s);
    out.add_sample(
        metric, instance, MetricKind::kGauge, 1,
        {static_cast<std::int64_t>(s * 1e9), value ? Value::of(*value) : Value::missing(MissingReason::kNotSupported)});
  }
}

// A counter that grows by `per_s` a second.
inline void add_rate(FakeRecording& out, const std::string& metric, const std::string& instance, const Ticks& ticks,
                     double scale, const std::function<double(double s)>& per_s) {
  double sum = 1e6;
  for (double s = ticks.from_s; s <= ticks.to_s; s += ticks.every_s) {
    out.add_sample(
        metric, instance, MetricKind::kCounter, scale,
        {static_cast<std::int64_t>(s * 1e9), Value::of(static_cast<std::uint64_t>(std::llround(sum / scale)))});
    sum += per_s(s + ticks.every_s / 2) * ticks.every_s;
  }
}

// 1 for the first `on_s` of every `on_s + off_s`.
inline bool is_on(double s, double on_s, double off_s) { return std::fmod(s, on_s + off_s) < on_s; }

}  // namespace hotlap
