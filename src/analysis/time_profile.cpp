#include "analysis/time_profile.h"

#include <algorithm>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr double kObservedShareMin = 0.1;
constexpr std::int64_t kCoarseNs = 60 * kNsPerS;  // width of the minutes that are added

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

}  // namespace

void RateProfile::add(std::span<const SamplePoint> points, double scale) {
  counter_.add(
      points,
      [&](std::int64_t from_ns, std::int64_t to_ns, double grown) {
        const double amount = grown * scale;
        const double time_s = seconds(to_ns - from_ns);
        amounts_.add(from_ns, to_ns, {amount, time_s, amount >= hot_rate_ * time_s ? time_s : 0});
      },
      [&](std::int64_t from_ns, std::int64_t to_ns) { gap_s_.add(from_ns, to_ns, {seconds(to_ns - from_ns)}); });
}

double RateProfile::awake_s(std::int64_t from_ns, std::int64_t to_ns) const {
  return seconds(to_ns - from_ns) - gap_s_.sum(0, from_ns, to_ns);
}

void RateProfile::add(std::span<const TierPoint> minutes, double scale) {
  counter_.add(minutes, [&](std::int64_t from_ns, std::int64_t to_ns, double grown) {
    const double time_s = seconds(to_ns - from_ns);
    amounts_.add(from_ns, to_ns, {grown * scale, time_s, 0});
    coarse_s_.add(from_ns, to_ns, {time_s});
  });
}

std::optional<double> RateProfile::rate(std::int64_t from_ns, std::int64_t to_ns) const {
  const double observed = observed_s(from_ns, to_ns);
  if (to_ns <= from_ns || observed < kObservedShareMin * awake_s(from_ns, to_ns)) return std::nullopt;
  return amount(from_ns, to_ns) / observed;
}

std::optional<double> RateProfile::hot_share(std::int64_t from_ns, std::int64_t to_ns) const {
  const double looked = looked_s(from_ns, to_ns);
  const double least = coarse_s_.empty() ? kObservedShareMin * awake_s(from_ns, to_ns) : 1;
  if (to_ns <= from_ns || looked < least) return std::nullopt;
  return std::min(hot_s(from_ns, to_ns) / looked, 1.0);
}

std::int64_t RateProfile::width_ns() const {
  return coarse_s_.empty() ? amounts_.width_ns() : std::max(amounts_.width_ns(), kCoarseNs);
}

void GaugeProfile::add(std::span<const SamplePoint> points, double scale) {
  for (const SamplePoint& point : points) {
    const auto number = point.value.number();
    if (!number) continue;
    last_ = *number * scale;
    sums_.add(point.t_ns, point.t_ns, {*last_, 1});
  }
}

void GaugeProfile::add(std::span<const TierPoint> minutes, double scale) {
  for (const TierPoint& minute : minutes) {
    if (minute.count == 0) continue;
    has_minutes_ = true;
    last_ = minute.last * scale;
    const auto count = static_cast<double>(minute.count);
    sums_.add(minute.from_ns, minute.to_ns, {minute.mean * scale * count, count});
  }
}

std::optional<double> GaugeProfile::mean(std::int64_t from_ns, std::int64_t to_ns) const {
  const double count = sums_.sum(kCount, from_ns, to_ns);
  if (count < 0.5) return std::nullopt;
  return sums_.sum(kSum, from_ns, to_ns) / count;
}

std::int64_t GaugeProfile::width_ns() const {
  return has_minutes_ ? std::max(sums_.width_ns(), kCoarseNs) : sums_.width_ns();
}

}  // namespace hotlap
