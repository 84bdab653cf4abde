#include "model/wall_clock.h"

#include <algorithm>
#include <utility>

namespace hotlap {

WallClock::WallClock(std::vector<ClockReading> readings) : readings_(std::move(readings)) {
  std::stable_sort(readings_.begin(), readings_.end(),
                   [](const ClockReading& a, const ClockReading& b) { return a.mono_ns < b.mono_ns; });
}

std::optional<std::int64_t> WallClock::wall_ns(std::int64_t mono_ns) const {
  if (readings_.empty()) return std::nullopt;
  auto after = std::upper_bound(readings_.begin(), readings_.end(), mono_ns,
                                [](std::int64_t t, const ClockReading& reading) { return t < reading.mono_ns; });
  if (after != readings_.begin()) --after;
  // Stored times may be nonsense: unsigned arithmetic does not overflow.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(after->wall_ns) + static_cast<std::uint64_t>(mono_ns) -
                                   static_cast<std::uint64_t>(after->mono_ns));
}

}  // namespace hotlap
