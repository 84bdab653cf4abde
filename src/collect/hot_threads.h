#pragma once
// The hottest threads of one process: finds them by comparing two looks at /proc/PID/task, then keeps a series of
// the CPU time of each. One full core hides behind a low average, and behind a process that has many threads.
//
// Bounded: 256 threads looked at, 8 followed. Names come from the process: cleaned, and a second thread of the same
// name is "name #2".
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "model/sink.h"

namespace hotlap {

class HotThreads {
 public:
  // One look; `metric` is the index of the CPU time in the spec. A thread that used less than a twentieth of a core
  // since the look before is not taken up. Costs about 3 µs per thread: call it for busy processes only, seconds
  // apart.
  void look(const Host& host, std::int32_t pid, std::string_view slot, std::int64_t t_ns, std::uint16_t metric,
            SampleSink& out);
  // The process ended or has another slot: followed threads are given up, with `is_lost` as missing.
  void forget(SampleSink& out, bool is_lost);

 private:
  struct Thread {
    std::int32_t id = 0;
    std::uint64_t run_ns = 0;
    std::uint64_t grown_ns = 0;  // since the look before; 0 for one that is new
  };
  struct Followed {
    std::int32_t id = 0;
    std::string label;
    SeriesHandle series;
    std::uint64_t grown_ns = 0;
  };

  void read_threads(const Host& host, std::int32_t pid);
  std::vector<Followed> take_out_ended();
  void take_up(const Host& host, std::int32_t pid, std::string_view slot, const Thread& thread, std::uint16_t metric,
               SampleSink& out);
  std::string free_label(std::string_view slot, const std::string& name) const;

  std::vector<Thread> threads_;   // sorted by id
  std::vector<Thread> previous_;  // of the look before
  std::vector<Followed> followed_;
  std::int64_t last_ns_ = 0;
};

}  // namespace hotlap
