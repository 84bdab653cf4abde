#pragma once
// A mean with an interval that can be trusted although neighbouring steps depend on each other (a slow disk stays
// slow for a while, loader workers deliver in bursts): means of consecutive blocks are nearly independent, single
// steps are not. At most kBlocksMax blocks; when they are full, neighbours are joined and blocks become twice as
// long.
#include <cstdint>
#include <optional>
#include <vector>

namespace hotlap {

// A mean and half the width of its 95 % interval; half_width is absent below 4 blocks.
struct MeanInterval {
  double mean = 0;
  std::optional<double> half_width;
};

class BlockMeans {
 public:
  static constexpr std::size_t kBlocksMax = 64;
  explicit BlockMeans(std::uint32_t block_values = 8) : block_values_(block_values) {}

  void add(double value);
  // The blocks of values that came after; `later` was made with the same block_values.
  void append(BlockMeans later);
  std::uint64_t count() const { return count_; }
  // Nothing when empty. An unfinished last block counts for the mean, not for the interval.
  std::optional<MeanInterval> interval() const;
  // Means of whole blocks, in order; for medians that one bad block cannot move.
  std::vector<double> means() const;

 private:
  struct Block {
    double sum = 0;
    std::uint64_t values = 0;
  };
  void join_neighbours();

  std::vector<Block> blocks_;  // the last one may be unfinished
  std::uint64_t block_values_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

// Half the width of the 95 % interval of the mean of independent values; nothing below `values_min`.
std::optional<double> half_width_95(const std::vector<double>& values, std::size_t values_min = 4);
// Nothing when empty.
std::optional<double> median(std::vector<double> values);

}  // namespace hotlap
