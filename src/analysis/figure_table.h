#pragma once
// Sums over the samples of series, for analyzers that need no more than mean, last and largest value. Bounded: at most
// kSeriesMax series.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/recording_reader.h"

namespace hotlap {

struct FigureSums {
  std::uint64_t count = 0;  // values; what was missing is not in it
  double first = 0;
  double last = 0;
  double largest = 0;
  double sum = 0;

  std::optional<double> mean() const {
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }
  // Without the first value, which is of a time when the program warmed up; with it when there is no other.
  std::optional<double> settled_mean() const {
    return count < 2 ? mean() : std::optional((sum - first) / static_cast<double>(count - 1));
  }
};

class FigureTable {
 public:
  static constexpr std::size_t kSeriesMax = 4096;

  void add(const StoredSeries& series, std::span<const SamplePoint> points);
  void add(const StoredSeries& series, std::span<const TierPoint> minutes);
  void merge(const FigureTable& other);
  // Null: no value so far.
  const FigureSums* find(std::string_view metric, std::string_view instance) const;
  // Instances of a metric that begin with `prefix`, sorted.
  std::vector<std::string> instances(std::string_view metric, std::string_view prefix = {}) const;

 private:
  FigureSums* sums_of(const StoredSeries& series);

  std::map<std::pair<std::string, std::string>, FigureSums> sums_;  // by metric and instance
};

// Bytes, milliseconds: a series' value if it has any.
inline std::optional<double> last_of(const FigureSums* sums) {
  return sums == nullptr ? std::nullopt : std::optional(sums->last);
}
inline std::optional<double> largest_of(const FigureSums* sums) {
  return sums == nullptr ? std::nullopt : std::optional(sums->largest);
}
inline std::optional<double> settled_mean_of(const FigureSums* sums) {
  return sums == nullptr ? std::nullopt : sums->settled_mean();
}

}  // namespace hotlap
