#include "record/clock_watch.h"

#include <algorithm>
#include <cstdlib>

namespace hotlap {
namespace {

constexpr std::int64_t kStepNsMin = kNsPerMs;
constexpr std::int64_t kSuspendNsMin = 10 * kNsPerMs;  // the two clocks are read one after the other
constexpr std::int64_t kTablePeriodNs = 60 * kNsPerS;
constexpr std::int64_t kSlewPpmMax = 500;  // adjtime(3) and NTP bend the clock at most this fast: not a jump

}  // namespace

void ClockWatch::look(const ClockReading& reading, Batch& out) {
  bool must_write = !has_seen_ || reading.mono_ns - last_written_mono_ns_ >= kTablePeriodNs;
  if (has_seen_) {
    const std::int64_t passed_ns = reading.mono_ns - last_seen_.mono_ns;
    const std::int64_t slept_ns = (reading.boot_ns - last_seen_.boot_ns) - passed_ns;
    const std::int64_t jumped_ns = (reading.wall_ns - last_seen_.wall_ns) - (reading.boot_ns - last_seen_.boot_ns);
    if (slept_ns > kSuspendNsMin) {
      out.events.push_back({reading.mono_ns, EventKind::kSuspend, slept_ns, {}});
      must_write = true;
    }
    if (std::abs(jumped_ns) > kStepNsMin + passed_ns / 1'000'000 * kSlewPpmMax) {
      out.events.push_back({reading.mono_ns, EventKind::kClockStep, jumped_ns, {}});
      must_write = true;
    }
  }
  last_seen_ = reading;
  has_seen_ = true;
  if (!must_write) return;
  last_written_mono_ns_ = reading.mono_ns;
  out.clock.push_back(reading);
}

}  // namespace hotlap
