#include "analysis/level_profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace hotlap {

void LevelProfile::add(std::int64_t t_ns, double percent, double weight) {
  if (std::isnan(percent) || !(weight > 0)) return;
  const auto level = static_cast<std::size_t>(std::lround(std::clamp(percent, 0.0, 100.0)));
  buckets_.at(t_ns).weights[level] += static_cast<float>(weight);
}

std::array<double, LevelProfile::kLevels> LevelProfile::levels(std::int64_t from_ns, std::int64_t to_ns) const {
  std::array<double, kLevels> sums{};
  buckets_.visit(from_ns, to_ns, [&](const Levels& bucket) {
    for (std::size_t level = 0; level < kLevels; ++level) sums[level] += static_cast<double>(bucket.weights[level]);
  });
  return sums;
}

double LevelProfile::weight(std::int64_t from_ns, std::int64_t to_ns) const {
  const auto sums = levels(from_ns, to_ns);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

std::optional<double> LevelProfile::quantile(double q, std::int64_t from_ns, std::int64_t to_ns) const {
  HOTLAP_CHECK(q >= 0 && q <= 1);
  const auto sums = levels(from_ns, to_ns);
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  if (!(total > 0)) return std::nullopt;
  double seen = 0;
  for (std::size_t level = 0; level < kLevels; ++level) {
    seen += sums[level];
    if (sums[level] > 0 && seen >= q * total * (1 - 1e-9)) return static_cast<double>(level);
  }
  return 100.0;
}

std::optional<double> LevelProfile::mean(std::int64_t from_ns, std::int64_t to_ns) const {
  const auto sums = levels(from_ns, to_ns);
  double total = 0;
  double weighted = 0;
  for (std::size_t level = 0; level < kLevels; ++level) {
    total += sums[level];
    weighted += sums[level] * static_cast<double>(level);
  }
  return total > 0 ? std::optional(weighted / total) : std::nullopt;
}

std::optional<double> LevelProfile::share_up_to(double percent, std::int64_t from_ns, std::int64_t to_ns) const {
  const auto sums = levels(from_ns, to_ns);
  double total = 0;
  double below = 0;
  for (std::size_t level = 0; level < kLevels; ++level) {
    total += sums[level];
    if (static_cast<double>(level) <= percent) below += sums[level];
  }
  return total > 0 ? std::optional(below / total) : std::nullopt;
}

}  // namespace hotlap
