#pragma once
// The median of a figure over those that a rule compares one of them with. Thread-safe: nothing here has state.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace hotlap {

// Of an even number the upper one of the two in the middle. `values` must not be empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// `figure_of` over all of `ranks` but the one at `but`, which must not be the only one.
template <class Rank, class F>
double median_of_others(const std::vector<Rank>& ranks, const Rank* but, F figure_of) {
  std::vector<double> values;
  for (const Rank& rank : ranks) {
    if (&rank != but) values.push_back(figure_of(rank));
  }
  return median(std::move(values));
}

}  // namespace hotlap
