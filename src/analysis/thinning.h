#pragma once
// Which parts of a long recording are looked at closely. Reading each sample of a day takes longer than anybody waits
// for, and means, extremes and sums of minutes, which are stored beside the samples, tell the same for nearly all that
// is asked of hours. So the begin, the end and some stretches in between, chosen by chance, are read in full, of the
// others the minutes.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store/recording_reader.h"

namespace hotlap {

struct ThinningLimits {
  std::int64_t long_ns = std::int64_t{4} * 3600 * 1'000'000'000;  // what is shorter is read in full
  std::uint64_t few_samples = 4'000'000;                          // and what has fewer samples that could be spared
  std::uint64_t sampled = 2'000'000;                              // of these about so many are read
  std::size_t every_max = 16;                                     // and at least one stretch in so many
};

class Thinning {
 public:
  Thinning() = default;  // nothing is spared
  // `by_minute` of a recording's `series` could be read by minutes.
  Thinning(std::span<const TickStretch> stretches, std::size_t series, std::size_t by_minute,
           const ThinningLimits& limits);
  // Whether of this stretch the minutes are read.
  bool is_coarse(std::size_t stretch) const { return stretch < is_coarse_.size() && is_coarse_[stretch]; }

 private:
  std::vector<bool> is_coarse_;
};

}  // namespace hotlap
