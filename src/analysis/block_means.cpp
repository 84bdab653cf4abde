#include "analysis/block_means.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace hotlap {

std::optional<double> half_width_95(const std::vector<double>& values, std::size_t values_min) {
  const std::size_t n = values.size();
  if (n < std::max<std::size_t>(values_min, 2)) return std::nullopt;
  double mean = 0;
  for (const double v : values) mean += v / static_cast<double>(n);
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(n - 1));
  const boost::math::students_t_distribution<double> t(static_cast<double>(n - 1));
  return boost::math::quantile(t, 0.975) * deviation / std::sqrt(static_cast<double>(n));
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void BlockMeans::add(double value) {
  if (blocks_.empty() || blocks_.back().values >= block_values_) {
    if (blocks_.size() == kBlocksMax) {
      for (std::size_t i = 0; i < kBlocksMax / 2; ++i) {
        blocks_[i] = {blocks_[2 * i].sum + blocks_[2 * i + 1].sum, blocks_[2 * i].values + blocks_[2 * i + 1].values};
      }
      blocks_.resize(kBlocksMax / 2);
      block_values_ *= 2;
    }
    blocks_.emplace_back();
  }
  blocks_.back().sum += value;
  ++blocks_.back().values;
  ++count_;
  sum_ += value;
}

std::vector<double> BlockMeans::means() const {
  std::vector<double> result;
  for (const Block& block : blocks_) {
    if (block.values >= block_values_) result.push_back(block.sum / static_cast<double>(block.values));
  }
  return result;
}

std::optional<MeanInterval> BlockMeans::interval() const {
  if (count_ == 0) return std::nullopt;
  return MeanInterval{.mean = sum_ / static_cast<double>(count_), .half_width = half_width_95(means())};
}

}  // namespace hotlap
