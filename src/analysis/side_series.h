#pragma once
// Series of the machine that are looked at beside the steps: which of them moves along when steps get slow. The engine
// keeps one of each recording for all analyzers. Bounded.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/time_profile.h"
#include "store/recording_reader.h"

namespace hotlap {

class SideSeries {
 public:
  // What it takes.
  static constexpr std::array<std::string_view, 10> kMetrics{
      "cpu.busy.seconds",       "cpu.iowait.seconds",          "cpu.steal.seconds", "disk.total.read.bytes",
      "disk.total.write.bytes", "network.total.receive.bytes", "gpu.busy.percent",  "gpu.clock.sm.mhz",
      "gpu.power.watts",        "gpu.temperature.celsius",
  };

  void add(const StoredSeries& series, std::span<const SamplePoint> points) { take(series, points); }
  void add(const StoredSeries& series, std::span<const TierPoint> minutes) { take(series, minutes); }

  using Stretches = std::vector<std::pair<std::int64_t, std::int64_t>>;  // [from_ns, to_ns)
  struct Move {
    std::string series;  // "disk.total.write.bytes", "gpu.clock.sm.mhz gpu0"
    double during = 0;   // mean, per second for counters
    double otherwise = 0;
  };
  // The one whose mean differs most between the two, by half or more; nothing where none does, or where they are told
  // apart more coarsely than the stretches are long.
  std::optional<Move> mover(const Stretches& during, const Stretches& otherwise) const;
  // Mean of all series of `metric` together in the stretches, per second for counters: of gauges the mean over them,
  // of counters their sum. Nothing: not recorded then.
  std::optional<double> mean(std::string_view metric, const Stretches& stretches) const;

 private:
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points);

  static constexpr std::size_t kBuckets = 2048;
  static constexpr std::size_t kSeriesMax = 64;
  std::map<std::string, RateProfile> rates_;
  std::map<std::string, GaugeProfile> gauges_;
};

}  // namespace hotlap
