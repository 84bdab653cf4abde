#pragma once
// Ranges that have begun and not ended: a stack in each thread for push and pop, a table of all threads for start and
// end. Bounded; what is beyond is counted by the caller. Lies in zeroed memory; there are no constructors.
#include <cstddef>
#include <cstdint>

#include "observe/words.h"

namespace hotlap {

struct OpenRange {
  std::int64_t start_ns;
  std::int64_t payload;  // -1: none
  std::int64_t category;
  std::uint32_t name;
  std::uint32_t domain;  // 0: the default one
  std::uint32_t thread;
  std::int32_t depth;  // below others of its domain in this thread
};

// Of one thread. Each domain has its own order; they share the room.
class RangeStack {
 public:
  static constexpr std::size_t kDepthMax = 64;

  // The range's depth in its domain; -1: too many are open, and pop() of it will find nothing.
  std::int32_t push(OpenRange range) {
    range.depth = 0;
    for (std::size_t at = used_; at > 0; --at) {
      if (ranges_[at - 1].domain != range.domain) continue;
      range.depth = ranges_[at - 1].depth + 1;
      break;
    }
    if (used_ == kDepthMax) {
      ++beyond_;
      return -1;
    }
    ranges_[used_++] = range;
    return range.depth;
  }

  // False: none is open in that domain, or it was one too many.
  bool pop(std::uint32_t domain, OpenRange& out) {
    if (beyond_ > 0) {
      --beyond_;
      return false;
    }
    for (std::size_t at = used_; at > 0; --at) {
      if (ranges_[at - 1].domain != domain) continue;
      out = ranges_[at - 1];
      for (std::size_t next = at; next < used_; ++next) ranges_[next - 1] = ranges_[next];
      --used_;
      return true;
    }
    return false;
  }

 private:
  OpenRange ranges_[kDepthMax];
  std::size_t used_;
  std::uint64_t beyond_;
};

// Of all threads. Thread-safe, without a lock.
class RangeTable {
 public:
  static constexpr std::uint32_t kRangesMax = 4096;

  // 0: there is no place near the next one.
  std::uint64_t start(const OpenRange& range) {
    constexpr std::uint32_t kProbesMax = 32;
    const std::uint32_t first = add_word<std::uint32_t>(next_, 1);
    for (std::uint32_t probe = 0; probe < kProbesMax; ++probe) {
      Place& place = places_[(first + probe) % kRangesMax];
      const std::uint64_t lap = load_word(place.lap);
      // Laps: even when free, then odd while it is filled or in use.
      if (lap % 2 != 0 || !swap_word(place.lap, lap, lap + 1)) continue;
      place.range = range;
      return (lap + 1) * kRangesMax + (first + probe) % kRangesMax;
    }
    return 0;
  }

  // False: no such range, or it has ended already.
  bool end(std::uint64_t id, OpenRange& out) {
    Place& place = places_[id % kRangesMax];
    const std::uint64_t lap = id / kRangesMax;
    if (lap % 2 == 0 || load_word(place.lap) != lap) return false;
    const OpenRange range = place.range;
    if (!swap_word(place.lap, lap, lap + 1)) return false;
    out = range;
    return true;
  }

 private:
  struct Place {
    std::uint64_t lap;
    OpenRange range;
  };
  Place places_[kRangesMax];
  std::uint32_t next_;
};

}  // namespace hotlap
