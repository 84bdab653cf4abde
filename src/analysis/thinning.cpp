#include "analysis/thinning.h"

#include <algorithm>
#include <random>

namespace hotlap {

Thinning::Thinning(std::span<const TickStretch> stretches, std::size_t series, std::size_t by_minute,
                   const ThinningLimits& limits) {
  constexpr std::size_t kFirst = 1;
  constexpr std::size_t kLast = 2;  // the last one may be short
  if (stretches.size() <= kFirst + kLast || series == 0) return;
  const std::int64_t length_ns = stretches.back().to_ns - stretches.front().from_ns;
  std::uint64_t samples = 0;
  for (const TickStretch& stretch : stretches) samples += std::min<std::uint64_t>(stretch.samples, UINT32_MAX);
  samples = samples / series * by_minute;
  if (length_ns < limits.long_ns || samples <= limits.few_samples) return;

  is_coarse_.assign(stretches.size(), true);
  for (std::size_t i = 0; i < kFirst; ++i) is_coarse_[i] = false;
  const std::size_t end = stretches.size() - kLast;
  for (std::size_t i = end; i < stretches.size(); ++i) is_coarse_[i] = false;
  // One of each group, never at the same place: a fixed distance might be the period of what the job does.
  const std::size_t every = std::clamp<std::size_t>(samples / limits.sampled, 2, limits.every_max);
  std::minstd_rand random;  // the same choice each time
  for (std::size_t group = kFirst; group < end; group += every) {
    is_coarse_[group + random() % std::min(every, end - group)] = false;
  }
}

}  // namespace hotlap
