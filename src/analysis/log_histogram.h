#pragma once
// Quantiles of positive numbers in bounded memory: counts in buckets whose bounds grow by 1 %, so that a quantile is
// within 0.5 % of the true one. Order and chunking of what is added do not matter; two histograms merge exactly.
#include <cstdint>
#include <optional>
#include <vector>

namespace hotlap {

class LogHistogram {
 public:
  // Values below 1 count as 1, above 1e13 as 1e13 (nanoseconds: 1 ns to 2.8 h).
  void add(double value, std::uint64_t times = 1);
  void merge(const LogHistogram& other);
  std::uint64_t count() const { return count_; }
  // q in [0, 1]; nothing when empty.
  std::optional<double> quantile(double q) const;
  // How many lie above `value`; of the bucket that it falls in, none.
  std::uint64_t count_above(double value) const;
  // Standard deviation; nothing below two values.
  std::optional<double> deviation() const;

 private:
  std::vector<std::uint64_t> counts_;  // from bucket first_ on
  std::int32_t first_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace hotlap
