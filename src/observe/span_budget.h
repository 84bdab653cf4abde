#pragma once
// Which spans are kept one by one: all while there are few, the longer ones where there are many. Thread: one at a
// time. Lies in zeroed memory; there is no constructor.
#include <algorithm>
#include <cstdint>

namespace hotlap {

class SpanBudget {
 public:
  static constexpr std::int64_t kSpansPerS = 2'000;
  static constexpr std::int64_t kBurst = 10'000;

  // Time goes on; there is room for so many spans until the reader comes, who may be slow. The limit on length moves at
  // most each 20 ms, by a factor of two.
  void advance(std::int64_t now_ns, std::int64_t room) {
    constexpr std::int64_t kNsPerSpan = 1'000'000'000 / kSpansPerS;
    constexpr std::int64_t kStepNs = 20'000'000;
    constexpr std::int64_t kShortestNs = 1'000;
    if (last_ns_ == 0) {
      last_ns_ = limit_moved_ns_ = now_ns;
      left_ = left_when_moved_ = kBurst;
    }
    const std::int64_t earned = std::clamp<std::int64_t>((now_ns - last_ns_) / kNsPerSpan, 0, kBurst);
    left_ = std::min({kBurst, left_ + earned, room});
    last_ns_ += earned == kBurst ? now_ns - last_ns_ : earned * kNsPerSpan;
    if (now_ns - limit_moved_ns_ < kStepNs) return;
    limit_moved_ns_ = now_ns;
    const bool still_falls = left_ < left_when_moved_ || has_refused_;
    left_when_moved_ = left_;
    has_refused_ = false;
    if (left_ < kBurst / 4) {
      if (still_falls) shortest_ns_ = std::min(std::max(2 * shortest_ns_, kShortestNs), kLongestNs);
    } else if (left_ > kBurst * 3 / 4) {
      shortest_ns_ = shortest_ns_ > kShortestNs ? shortest_ns_ / 2 : 0;
    }
  }

  // What is long may overdraw: it came at the end of a burst by chance. -1: how long is not known.
  bool keeps(std::int64_t duration_ns) {
    constexpr std::int64_t kLongNs = 1'000'000;
    const std::int64_t least = duration_ns >= kLongNs ? -kBurst / 4 : 0;
    if (duration_ns >= 0 && duration_ns < shortest_ns_) return false;
    if (left_ <= least) {
      has_refused_ = true;
      return false;
    }
    --left_;
    return true;
  }

 private:
  static constexpr std::int64_t kLongestNs = 1'000'000'000;

  std::int64_t last_ns_;
  std::int64_t limit_moved_ns_;
  std::int64_t left_;
  std::int64_t left_when_moved_;
  std::int64_t shortest_ns_;  // what is shorter is left out
  bool has_refused_;          // since the limit moved: what was long enough
};

}  // namespace hotlap
