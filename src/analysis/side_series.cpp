#include "analysis/side_series.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace hotlap {
namespace {

// What is less counts as nothing: twice as much of it moves nobody.
double least(std::string_view name) {
  if (name.find("bytes") != std::string_view::npos) return 5e6;
  if (name.find("seconds") != std::string_view::npos) return 0.2;
  if (name.starts_with("gpu.busy")) return 5;
  return 50;
}

// A change of this size, up or down, and a figure that is known to move less.
double smallest_ratio(std::string_view name) {
  return name.starts_with("gpu.clock") || name.starts_with("gpu.temperature") ? 1.1 : 1.5;
}

double length_ns(const SideSeries::Stretches& stretches) {
  double sum = 0;
  for (const auto& [from, to] : stretches) sum += static_cast<double>(to - from);
  return stretches.empty() ? 0 : sum / static_cast<double>(stretches.size());
}

std::optional<double> mean_of(const RateProfile& profile, const SideSeries::Stretches& stretches) {
  double amount = 0;
  double seconds = 0;
  for (const auto& [from, to] : stretches) {
    amount += profile.amount(from, to);
    seconds += profile.observed_s(from, to);
  }
  return seconds > 0 ? std::optional(amount / seconds) : std::nullopt;
}

std::optional<double> mean_of(const GaugeProfile& profile, const SideSeries::Stretches& stretches) {
  double sum = 0;
  double count = 0;
  for (const auto& [from, to] : stretches) {
    const auto mean = profile.mean(from, to);
    if (!mean) continue;
    sum += *mean * static_cast<double>(to - from);
    count += static_cast<double>(to - from);
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

bool is_of(std::string_view name, std::string_view metric) {
  return name.starts_with(metric) && (name.size() == metric.size() || name[metric.size()] == ' ');
}

}  // namespace

template <class Point>
void SideSeries::take(const StoredSeries& series, std::span<const Point> points) {
  const std::string name = series.instance.empty() ? series.metric : series.metric + " " + series.instance;
  if (series.kind == MetricKind::kCounter) {
    if (rates_.size() >= kSeriesMax && !rates_.contains(name)) return;
    rates_.try_emplace(name, 0.95, kBuckets).first->second.add(points, series.scale);
    return;
  }
  if (gauges_.size() >= kSeriesMax && !gauges_.contains(name)) return;
  gauges_.try_emplace(name, kBuckets).first->second.add(points, series.scale);
}

template void SideSeries::take(const StoredSeries&, std::span<const SamplePoint>);
template void SideSeries::take(const StoredSeries&, std::span<const TierPoint>);

std::optional<SideSeries::Move> SideSeries::mover(const Stretches& during, const Stretches& otherwise) const {
  std::optional<Move> best;
  double best_score = 0;
  const double shortest_ns = std::min(length_ns(during), length_ns(otherwise));
  const auto consider = [&](const std::string& name, double width_ns, const auto& mean_of) {
    if (width_ns > 2 * shortest_ns && width_ns > 1e9) return;
    const auto now = mean_of(during);
    const auto else_ = mean_of(otherwise);
    if (!now || !else_) return;
    const double floor = least(name);
    if (std::max(*now, *else_) < floor) return;
    const double ratio = (*now + 0.1 * floor) / (*else_ + 0.1 * floor);
    const double limit = smallest_ratio(name);
    if (ratio < limit && ratio > 1 / limit) return;
    const double score = std::abs(std::log(ratio)) / std::log(limit);
    if (score <= best_score) return;
    best_score = score;
    best = Move{name, *now, *else_};
  };
  for (const auto& [name, profile] : rates_) {
    consider(name, static_cast<double>(profile.width_ns()),
             [&](const Stretches& stretches) { return mean_of(profile, stretches); });
  }
  for (const auto& [name, profile] : gauges_) {
    consider(name, static_cast<double>(profile.width_ns()),
             [&](const Stretches& stretches) { return mean_of(profile, stretches); });
  }
  return best;
}

std::optional<double> SideSeries::mean(std::string_view metric, const Stretches& stretches) const {
  std::optional<double> sum;
  for (const auto& [name, profile] : rates_) {
    if (!is_of(name, metric)) continue;
    if (const auto one = mean_of(profile, stretches)) sum = sum.value_or(0) + *one;
  }
  if (sum) return sum;
  double gauges = 0;
  for (const auto& [name, profile] : gauges_) {
    if (!is_of(name, metric)) continue;
    const auto one = mean_of(profile, stretches);
    if (!one) continue;
    sum = sum.value_or(0) + *one;
    gauges += 1;
  }
  return sum ? std::optional(*sum / gauges) : std::nullopt;
}

}  // namespace hotlap
