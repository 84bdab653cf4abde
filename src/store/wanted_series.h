#pragma once
// Which series a reader gathers, by handle: quick to ask for each column of each block.
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/sink.h"

namespace hotlap {

class WantedSeries {
 public:
  explicit WantedSeries(std::span<const SeriesHandle> handles) {
    for (std::size_t i = 0; i < handles.size(); ++i) sorted_.emplace_back(handles[i].index, i);
    std::sort(sorted_.begin(), sorted_.end());
  }
  bool empty() const { return sorted_.empty(); }
  bool any_in(std::int64_t first, std::int64_t last) const {
    const auto place = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair<std::int64_t, std::size_t>(first, 0));
    return place != sorted_.end() && place->first <= last;
  }
  // Calls use(place among the handles) for every time that `series` was asked for.
  template <class Use>
  void for_each(std::uint32_t series, Use&& use) const {
    for (auto place = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair<std::int64_t, std::size_t>(series, 0));
         place != sorted_.end() && place->first == series; ++place) {
      use(place->second);
    }
  }
  bool has(std::uint32_t series) const { return any_in(series, series); }
  std::int64_t lowest() const { return sorted_.front().first; }
  std::int64_t highest() const { return sorted_.back().first; }

 private:
  std::vector<std::pair<std::int64_t, std::size_t>> sorted_;
};

}  // namespace hotlap
