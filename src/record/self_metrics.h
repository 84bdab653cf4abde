#pragma once
// What the recorder costs and how well it keeps time, as metrics of its own recording.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/thread.h"
#include "collect/collector.h"
#include "record/lane.h"

namespace hotlap {

extern const CollectorSpec kSelfSpec;

// Thread-safe: lateness of ticks as counts in classes of a quarter of an octave, from 1 µs to about 18 min.
class LatenessHistogram {
 public:
  void add(std::int64_t late_ns);
  // The upper edge of the class that holds the given share of what came since the last call with `restart`; -1:
  // nothing.
  std::int64_t quantile_ns(double share) const;
  void restart();

 private:
  static constexpr std::size_t kClasses = 120;
  static std::size_t class_of(std::int64_t ns);
  static std::int64_t upper_edge_ns(std::size_t index);
  std::array<std::atomic<std::uint32_t>, kClasses> counts_{};
};

// Thread-safe: what the recorder's threads count.
struct RecorderCounters {
  std::atomic<std::uint64_t> ticks{0};
  std::atomic<std::uint64_t> ticks_late{0};
  std::atomic<std::uint64_t> ticks_skipped{0};
  std::atomic<std::uint64_t> samples_dropped{0};
  std::atomic<std::uint64_t> spans_dropped{0};
  LatenessHistogram lateness;
};

// What the collector asks for at each of its samples.
struct SelfSources {
  RecorderCounters* counters = nullptr;
  std::function<std::vector<CollectorUse>()> collectors;
  std::function<std::uint64_t()> bytes_written;
  std::function<std::uint64_t()> write_time_ns;
};

std::unique_ptr<Collector> make_self_collector(const Host& host, SelfSources sources);

}  // namespace hotlap
