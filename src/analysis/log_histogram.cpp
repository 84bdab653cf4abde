#include "analysis/log_histogram.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hotlap {
namespace {
constexpr double kGrowth = 1.01;
constexpr double kMax = 1e13;

std::int32_t bucket_of(double value) {
  const double clamped = std::clamp(std::isnan(value) ? 1.0 : value, 1.0, kMax);
  return static_cast<std::int32_t>(std::floor(std::log(clamped) / std::log(kGrowth)));
}
// The geometric middle of a bucket.
double value_of(std::int32_t bucket) { return std::exp((bucket + 0.5) * std::log(kGrowth)); }
}  // namespace

void LogHistogram::add(double value, std::uint64_t times) {
  if (times == 0) return;
  const std::int32_t bucket = bucket_of(value);
  if (counts_.empty()) {
    first_ = bucket;
    counts_.resize(1);
  } else if (bucket < first_) {
    counts_.insert(counts_.begin(), static_cast<std::size_t>(first_ - bucket), 0);
    first_ = bucket;
  } else if (static_cast<std::size_t>(bucket - first_) >= counts_.size()) {
    counts_.resize(static_cast<std::size_t>(bucket - first_) + 1);
  }
  counts_[static_cast<std::size_t>(bucket - first_)] += times;
  count_ += times;
}

void LogHistogram::merge(const LogHistogram& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    add(value_of(other.first_ + static_cast<std::int32_t>(i)), other.counts_[i]);
  }
}

std::optional<double> LogHistogram::quantile(double q) const {
  HOTLAP_CHECK(q >= 0 && q <= 1);
  if (count_ == 0) return std::nullopt;
  const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= std::max<std::uint64_t>(rank, 1)) return value_of(first_ + static_cast<std::int32_t>(i));
  }
  return value_of(first_ + static_cast<std::int32_t>(counts_.size()) - 1);
}

std::uint64_t LogHistogram::count_above(double value) const {
  const std::int32_t bucket = bucket_of(value);
  std::uint64_t above = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (first_ + static_cast<std::int32_t>(i) > bucket) above += counts_[i];
  }
  return above;
}

std::optional<double> LogHistogram::deviation() const {
  if (count_ < 2) return std::nullopt;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const double value = value_of(first_ + static_cast<std::int32_t>(i));
    sum += value * static_cast<double>(counts_[i]);
  }
  const double mean = sum / static_cast<double>(count_);
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const double off = value_of(first_ + static_cast<std::int32_t>(i)) - mean;
    squares += off * off * static_cast<double>(counts_[i]);
  }
  return std::sqrt(squares / static_cast<double>(count_ - 1));
}

}  // namespace hotlap
