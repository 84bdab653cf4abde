#include "base/clock.h"

#include <poll.h>
#include <time.h>

#include <cerrno>

namespace hotlap {
namespace {

std::int64_t read_clock(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * kNsPerS + t.tv_nsec;
}

class SystemClock final : public Clock {
 public:
  std::int64_t mono_ns() const override { return read_clock(CLOCK_MONOTONIC); }

  ClockReading read() const override {
    return {read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_REALTIME), read_clock(CLOCK_BOOTTIME)};
  }

  bool sleep_until(std::int64_t deadline_mono_ns, int wake_fd) const override {
    for (;;) {
      const std::int64_t left_ns = deadline_mono_ns - mono_ns();
      if (left_ns <= 0) return true;
      const timespec timeout{left_ns / kNsPerS, left_ns % kNsPerS};
      pollfd waited{wake_fd, POLLIN, 0};
      const int ready = ::ppoll(&waited, wake_fd >= 0 ? 1 : 0, &timeout, nullptr);
      if (ready > 0) return false;
      if (ready < 0 && errno != EINTR) return true;
    }
  }
};

}  // namespace

// Never destroyed: threads may ask for the time to the very end.
const Clock& system_clock() {
  static const Clock* const clock = new SystemClock;
  return *clock;
}

}  // namespace hotlap
