#pragma once
// From a recording's monotonic time to Unix time, by its clock table.
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace hotlap {

class WallClock {
 public:
  explicit WallClock(std::vector<ClockReading> readings);

  // By the last reading at or before `mono_ns`, else the first one; nothing when there is none.
  std::optional<std::int64_t> wall_ns(std::int64_t mono_ns) const;

 private:
  std::vector<ClockReading> readings_;  // by mono_ns
};

}  // namespace hotlap
