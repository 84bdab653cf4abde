#pragma once
// How a percentage was distributed over time, in bounded memory, so that quantiles can be asked for a window that is
// known only later. Buckets become twice as wide when there are too many. Order and chunking do not matter.
#include <array>
#include <cstdint>
#include <optional>

#include "analysis/widening_buckets.h"

namespace hotlap {

class LevelProfile {
 public:
  static constexpr std::size_t kBucketsMax = 64;
  static constexpr std::size_t kLevels = 101;  // whole percents

  // `weight`: time for which the level held, in any unit. Beyond 0 to 100 it counts as the nearest of them.
  void add(std::int64_t t_ns, double percent, double weight);
  // q in [0, 1]; of the buckets whose middle lies in the window. Nothing when there are none.
  std::optional<double> quantile(double q, std::int64_t from_ns, std::int64_t to_ns) const;
  std::optional<double> mean(std::int64_t from_ns, std::int64_t to_ns) const;
  double weight(std::int64_t from_ns, std::int64_t to_ns) const;
  // Share of the weight at `percent` or below it, 0 to 1.
  std::optional<double> share_up_to(double percent, std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  struct Levels {
    std::array<float, kLevels> weights{};
    Levels& operator+=(const Levels& other) {
      for (std::size_t i = 0; i < kLevels; ++i) weights[i] += other.weights[i];
      return *this;
    }
  };
  std::array<double, kLevels> levels(std::int64_t from_ns, std::int64_t to_ns) const;

  WideningBuckets<Levels> buckets_{kBucketsMax};
};

}  // namespace hotlap
