#include "analysis/time_profile.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr double kObservedShareMin = 0.1;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

}  // namespace

void TimeProfile::make_room(std::int64_t bucket) {
  if (buckets_.empty()) {
    first_ = bucket;
    buckets_.resize(1);
    return;
  }
  if (bucket < first_) {
    buckets_.insert(buckets_.begin(), static_cast<std::size_t>(first_ - bucket), 0.0);
    first_ = bucket;
  } else if (bucket >= first_ + static_cast<std::int64_t>(buckets_.size())) {
    buckets_.resize(static_cast<std::size_t>(bucket - first_) + 1);
  }
}

void TimeProfile::add(std::int64_t from_ns, std::int64_t to_ns, double amount) {
  if (to_ns < from_ns) return;
  // Widen first: a long gap must not make a long vector.
  const auto needed = [&] {
    const std::int64_t low = floor_div(from_ns, width_ns_);
    const std::int64_t high = floor_div(std::max(to_ns - 1, from_ns), width_ns_);
    if (buckets_.empty()) return high - low + 1;
    return std::max(high, first_ + static_cast<std::int64_t>(buckets_.size()) - 1) - std::min(low, first_) + 1;
  };
  while (needed() > static_cast<std::int64_t>(buckets_max_)) {
    std::vector<double> wide;
    const std::int64_t wide_first = floor_div(first_, 2);
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const auto at = static_cast<std::size_t>(floor_div(first_ + static_cast<std::int64_t>(i), 2) - wide_first);
      if (at >= wide.size()) wide.resize(at + 1);
      wide[at] += buckets_[i];
    }
    buckets_ = std::move(wide);
    first_ = wide_first;
    width_ns_ *= 2;
  }
  const std::int64_t low = floor_div(from_ns, width_ns_);
  const std::int64_t high = floor_div(std::max(to_ns - 1, from_ns), width_ns_);
  make_room(low);
  make_room(high);
  for (std::int64_t bucket = low; bucket <= high; ++bucket) {
    const std::int64_t inside = std::min(to_ns, (bucket + 1) * width_ns_) - std::max(from_ns, bucket * width_ns_);
    const double share = to_ns == from_ns ? 1.0 : static_cast<double>(inside) / static_cast<double>(to_ns - from_ns);
    buckets_[static_cast<std::size_t>(bucket - first_)] += amount * share;
  }
}

double TimeProfile::sum(std::int64_t from_ns, std::int64_t to_ns) const {
  if (buckets_.empty() || to_ns <= from_ns) return 0;
  const std::int64_t begin = std::max(floor_div(from_ns, width_ns_), first_);
  const std::int64_t end = std::min(floor_div(to_ns - 1, width_ns_), first_ + std::ssize(buckets_) - 1);
  double total = 0;
  for (std::int64_t bucket = begin; bucket <= end; ++bucket) {
    const std::int64_t start_ns = bucket * width_ns_;
    const std::int64_t low = std::max(from_ns, start_ns);
    const std::int64_t high = std::min(to_ns, start_ns + width_ns_);
    total += buckets_[static_cast<std::size_t>(bucket - first_)] *
             (static_cast<double>(high - low) / static_cast<double>(width_ns_));
  }
  return total;
}

void RateProfile::add(std::span<const SamplePoint> points, double scale) {
  for (const SamplePoint& point : points) {
    const Value delta = last_ns_ == INT64_MIN ? Value{} : counter_delta(last_, point.value);
    if (const auto grown = delta.number(); grown && point.t_ns > last_ns_) {
      const double amount = *grown * scale;
      const double time_s = seconds(point.t_ns - last_ns_);
      amount_.add(last_ns_, point.t_ns, amount);
      observed_s_.add(last_ns_, point.t_ns, time_s);
      if (amount >= hot_rate_ * time_s) hot_s_.add(last_ns_, point.t_ns, time_s);
    }
    last_ns_ = point.t_ns;
    last_ = point.value;
  }
}

std::optional<double> RateProfile::rate(std::int64_t from_ns, std::int64_t to_ns) const {
  const double observed = observed_s_.sum(from_ns, to_ns);
  if (to_ns <= from_ns || observed < kObservedShareMin * seconds(to_ns - from_ns)) return std::nullopt;
  return amount_.sum(from_ns, to_ns) / observed;
}

std::optional<double> RateProfile::hot_share(std::int64_t from_ns, std::int64_t to_ns) const {
  const double observed = observed_s_.sum(from_ns, to_ns);
  if (to_ns <= from_ns || observed < kObservedShareMin * seconds(to_ns - from_ns)) return std::nullopt;
  return std::min(hot_s_.sum(from_ns, to_ns) / observed, 1.0);
}

void GaugeProfile::add(std::span<const SamplePoint> points, double scale) {
  for (const SamplePoint& point : points) {
    const auto number = point.value.number();
    if (!number) continue;
    last_ = *number * scale;
    sums_.add(point.t_ns, point.t_ns, *last_);
    counts_.add(point.t_ns, point.t_ns, 1);
  }
}

std::optional<double> GaugeProfile::mean(std::int64_t from_ns, std::int64_t to_ns) const {
  const double count = counts_.sum(from_ns, to_ns);
  if (count < 0.5) return std::nullopt;
  return sums_.sum(from_ns, to_ns) / count;
}

}  // namespace hotlap
