#include "analysis/block_means.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <utility>

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
    if (blocks_.size() == kBlocksMax) join_neighbours();
    blocks_.emplace_back();
  }
  blocks_.back().sum += value;
  ++blocks_.back().values;
  ++count_;
  sum_ += value;
}

void BlockMeans::join_neighbours() {
  std::vector<Block> joined((blocks_.size() + 1) / 2);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    joined[i / 2].sum += blocks_[i].sum;
    joined[i / 2].values += blocks_[i].values;
  }
  blocks_ = std::move(joined);
  block_values_ *= 2;
}

void BlockMeans::append(BlockMeans later) {
  while (block_values_ < later.block_values_) join_neighbours();
  while (later.block_values_ < block_values_) later.join_neighbours();
  blocks_.insert(blocks_.end(), later.blocks_.begin(), later.blocks_.end());
  while (blocks_.size() > kBlocksMax) join_neighbours();
  count_ += later.count_;
  sum_ += later.sum_;
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
