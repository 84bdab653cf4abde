#pragma once
// The three clocks of a node in nanoseconds, behind an interface so that tests and the scheduler run under a fake one.
#include <cstdint>

namespace hotlap {

struct ClockReading {
  std::int64_t mono_ns;  // CLOCK_MONOTONIC: the time base of every recording; stops during suspend
  std::int64_t wall_ns;  // CLOCK_REALTIME: Unix time, only for the edges
  std::int64_t boot_ns;  // CLOCK_BOOTTIME: monotonic plus suspended time
};

// Thread-safe: stateless or fixed by the test.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t mono_ns() const = 0;
  virtual ClockReading read() const = 0;
  // Returns at `deadline_mono_ns` or when `wake_fd` (−1: none) becomes readable; true if it was the deadline.
  virtual bool sleep_until(std::int64_t deadline_mono_ns, int wake_fd) const = 0;
};

const Clock& system_clock();

inline constexpr std::int64_t kNsPerUs = 1'000;
inline constexpr std::int64_t kNsPerMs = 1'000'000;
inline constexpr std::int64_t kNsPerS = 1'000'000'000;

}  // namespace hotlap
