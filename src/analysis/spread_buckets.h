#pragma once
// How N amounts are spread over time, in bounded memory, so that they can be asked for a window that is known only
// later (the steady part of a run). Buckets become twice as wide when there are too many. Order and chunking of what
// is added do not matter.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hotlap {

template <std::size_t N>
class SpreadBuckets {
 public:
  using Amounts = std::array<double, N>;

  explicit SpreadBuckets(std::size_t buckets_max) : buckets_max_(static_cast<std::int64_t>(buckets_max)) {}

  // Spreads each amount evenly over [from_ns, to_ns); a point when both are equal.
  void add(std::int64_t from_ns, std::int64_t to_ns, const Amounts& amounts) {
    // Nearly all of a long run's samples lie within the bucket of the one before.
    if (from_ns >= last_from_ns_ && to_ns <= last_to_ns_ && from_ns <= to_ns && from_ns < last_to_ns_) {
      add_to(buckets_[last_], amounts, 1);
      return;
    }
    if (to_ns < from_ns) return;
    // Widen first: a long gap must not make a long vector.
    while (buckets_needed(from_ns, to_ns) > buckets_max_) widen();
    const std::int64_t low = floor_div(from_ns, width_ns_);
    const std::int64_t high = floor_div(std::max(to_ns - 1, from_ns), width_ns_);
    make_room(low);
    make_room(high);
    const auto length = static_cast<double>(to_ns - from_ns);
    for (std::int64_t bucket = low; bucket <= high; ++bucket) {
      const std::int64_t inside = std::min(to_ns, (bucket + 1) * width_ns_) - std::max(from_ns, bucket * width_ns_);
      add_to(buckets_[index(bucket)], amounts, to_ns == from_ns ? 1.0 : static_cast<double>(inside) / length);
    }
    last_ = index(high);
    last_from_ns_ = high * width_ns_;
    last_to_ns_ = last_from_ns_ + width_ns_;
  }

  // Of [from_ns, to_ns); of a bucket that lies partly inside, its share.
  double sum(std::size_t which, std::int64_t from_ns, std::int64_t to_ns) const {
    if (buckets_.empty() || to_ns <= from_ns) return 0;
    const std::int64_t begin = std::max(floor_div(from_ns, width_ns_), first_);
    const std::int64_t end = std::min(floor_div(to_ns - 1, width_ns_), first_ + std::ssize(buckets_) - 1);
    double total = 0;
    for (std::int64_t bucket = begin; bucket <= end; ++bucket) {
      const std::int64_t start_ns = bucket * width_ns_;
      const std::int64_t low = std::max(from_ns, start_ns);
      const std::int64_t high = std::min(to_ns, start_ns + width_ns_);
      total += buckets_[index(bucket)][which] * (static_cast<double>(high - low) / static_cast<double>(width_ns_));
    }
    return total;
  }

  bool empty() const { return buckets_.empty(); }
  std::int64_t width_ns() const { return width_ns_; }
  std::int64_t begin_ns() const { return first_ * width_ns_; }
  std::int64_t end_ns() const { return (first_ + std::ssize(buckets_)) * width_ns_; }

 private:
  static std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
  static void add_to(Amounts& bucket, const Amounts& amounts, double share) {
    for (std::size_t i = 0; i < N; ++i) bucket[i] += amounts[i] * share;
  }
  std::size_t index(std::int64_t bucket) const { return static_cast<std::size_t>(bucket - first_); }

  std::int64_t buckets_needed(std::int64_t from_ns, std::int64_t to_ns) const {
    const std::int64_t low = floor_div(from_ns, width_ns_);
    const std::int64_t high = floor_div(std::max(to_ns - 1, from_ns), width_ns_);
    if (buckets_.empty()) return high - low + 1;
    return std::max(high, first_ + std::ssize(buckets_) - 1) - std::min(low, first_) + 1;
  }

  void widen() {
    std::vector<Amounts> wide;
    const std::int64_t wide_first = floor_div(first_, 2);
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const auto at = static_cast<std::size_t>(floor_div(first_ + static_cast<std::int64_t>(i), 2) - wide_first);
      if (at >= wide.size()) wide.resize(at + 1);
      add_to(wide[at], buckets_[i], 1);
    }
    buckets_ = std::move(wide);
    first_ = wide_first;
    width_ns_ *= 2;
  }

  void make_room(std::int64_t bucket) {
    if (buckets_.empty()) {
      first_ = bucket;
      buckets_.resize(1);
    } else if (bucket < first_) {
      buckets_.insert(buckets_.begin(), static_cast<std::size_t>(first_ - bucket), Amounts{});
      first_ = bucket;
    } else if (bucket >= first_ + std::ssize(buckets_)) {
      buckets_.resize(static_cast<std::size_t>(bucket - first_) + 1);
    }
  }

  std::int64_t buckets_max_;
  std::vector<Amounts> buckets_;
  std::int64_t first_ = 0;  // bucket i covers [(first_ + i) * width, …)
  std::int64_t width_ns_ = 500'000'000;
  // The bucket that was added to last.
  std::size_t last_ = 0;
  std::int64_t last_from_ns_ = 0;
  std::int64_t last_to_ns_ = INT64_MIN;
};

}  // namespace hotlap
