#pragma once
// Keeps the recording's clock table: a reading at start, each minute, and at each jump of the wall clock or suspend.
#include <cstdint>

#include "base/clock.h"
#include "record/batch.h"

namespace hotlap {

// Confined to one thread.
class ClockWatch {
 public:
  // Adds a reading and the events kClockStep and kSuspend to `out` when there is reason to.
  void look(const ClockReading& reading, Batch& out);

 private:
  ClockReading last_seen_{};
  std::int64_t last_written_mono_ns_ = 0;
  bool has_seen_ = false;
};

}  // namespace hotlap
