#pragma once
// Sums per stretch of time in bounded memory: buckets become twice as wide when there are too many. What `T` is, is up
// to its owner; it starts empty and can be added to another with +=. Order and chunking of what is added do not matter.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace hotlap {

template <class T>
class WideningBuckets {
 public:
  explicit WideningBuckets(std::size_t buckets_max, std::int64_t width_ns = 500'000'000)
      : buckets_max_(static_cast<std::int64_t>(buckets_max)), width_ns_(width_ns) {}

  // The bucket of t_ns, made where there is none.
  T& at(std::int64_t t_ns) {
    std::int64_t bucket = floor_div(t_ns, width_ns_);
    if (buckets_.empty()) {
      first_ = bucket;
      buckets_.resize(1);
    }
    while (std::max(bucket, first_ + size() - 1) - std::min(bucket, first_) >= buckets_max_) {
      widen();
      bucket = floor_div(t_ns, width_ns_);
    }
    if (bucket < first_) {
      buckets_.insert(buckets_.begin(), static_cast<std::size_t>(first_ - bucket), T{});
      first_ = bucket;
    } else if (bucket >= first_ + size()) {
      buckets_.resize(static_cast<std::size_t>(bucket - first_) + 1);
    }
    return buckets_[static_cast<std::size_t>(bucket - first_)];
  }

  // `visit(const T&)` for the buckets whose middle lies in [from_ns, to_ns), in time.
  template <class Visit>
  void visit(std::int64_t from_ns, std::int64_t to_ns, const Visit& visit_one) const {
    for (std::int64_t i = 0; i < size(); ++i) {
      const std::int64_t middle_ns = (first_ + i) * width_ns_ + width_ns_ / 2;
      if (middle_ns >= from_ns && middle_ns < to_ns) visit_one(buckets_[static_cast<std::size_t>(i)]);
    }
  }

 private:
  static std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
  std::int64_t size() const { return static_cast<std::int64_t>(buckets_.size()); }

  void widen() {
    std::vector<T> wide;
    const std::int64_t wide_first = floor_div(first_, 2);
    for (std::int64_t i = 0; i < size(); ++i) {
      const auto at = static_cast<std::size_t>(floor_div(first_ + i, 2) - wide_first);
      if (at >= wide.size()) wide.resize(at + 1);
      wide[at] += buckets_[static_cast<std::size_t>(i)];
    }
    buckets_ = std::move(wide);
    first_ = wide_first;
    width_ns_ *= 2;
  }

  std::int64_t buckets_max_;
  std::int64_t width_ns_;
  std::vector<T> buckets_;
  std::int64_t first_ = 0;
};

}  // namespace hotlap
