#pragma once
// Keeps a dear look within a share of a core: after each look, the next one waits until its CPU time is at most one
// part in `cost_factor` of the time between them.
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace hotlap {

class CostGate {
 public:
  constexpr CostGate(std::int64_t period_ns_min, std::int64_t cost_factor)
      : period_ns_min_(period_ns_min), cost_factor_(cost_factor) {}

  // Runs `look` when it is due at `t_ns` (a tick's time).
  template <class F>
  void run(std::int64_t t_ns, F look) {
    // Ticks jitter: a sixteenth is forgiven.
    if (t_ns < next_ns_ - period_ns_min_ / 16) return;
    const std::int64_t begin_ns = thread_cpu_ns();
    look();
    next_ns_ = t_ns + std::max(period_ns_min_, (thread_cpu_ns() - begin_ns) * cost_factor_);
  }

 private:
  static std::int64_t thread_cpu_ns() {
    timespec spent{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return std::int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
  }

  std::int64_t period_ns_min_;
  std::int64_t cost_factor_;
  std::int64_t next_ns_ = INT64_MIN / 2;
};

}  // namespace hotlap
