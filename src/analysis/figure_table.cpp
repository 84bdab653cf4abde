#include "analysis/figure_table.h"

#include <algorithm>

namespace hotlap {

FigureSums* FigureTable::sums_of(const StoredSeries& series) {
  const std::pair key(series.metric, series.instance);
  const auto found = sums_.find(key);
  if (found != sums_.end()) return &found->second;
  return sums_.size() < kSeriesMax ? &sums_[key] : nullptr;
}

void FigureTable::add(const StoredSeries& series, std::span<const SamplePoint> points) {
  FigureSums* sums = nullptr;
  for (const SamplePoint& point : points) {
    const auto number = point.value.number();
    if (!number) continue;
    if (sums == nullptr) sums = sums_of(series);
    if (sums == nullptr) return;
    const double value = *number * series.scale;
    if (sums->count == 0) sums->first = sums->largest = value;
    ++sums->count;
    sums->last = value;
    sums->largest = std::max(sums->largest, value);
    sums->sum += value;
  }
}

void FigureTable::add(const StoredSeries& series, std::span<const TierPoint> minutes) {
  FigureSums* sums = nullptr;
  for (const TierPoint& minute : minutes) {
    if (minute.count == 0) continue;
    if (sums == nullptr) sums = sums_of(series);
    if (sums == nullptr) return;
    if (sums->count == 0) {
      sums->first = minute.first * series.scale;
      sums->largest = minute.max * series.scale;
    }
    sums->count += minute.count;
    sums->last = minute.last * series.scale;
    sums->largest = std::max(sums->largest, minute.max * series.scale);
    sums->sum += minute.mean * series.scale * static_cast<double>(minute.count);
  }
}

void FigureTable::merge(const FigureTable& other) {
  for (const auto& [key, from] : other.sums_) {
    const auto found = sums_.find(key);
    if (found == sums_.end()) {
      if (sums_.size() < kSeriesMax) sums_.emplace(key, from);
      continue;
    }
    FigureSums& into = found->second;
    into.count += from.count;
    into.last = from.last;
    into.largest = std::max(into.largest, from.largest);
    into.sum += from.sum;
  }
}

const FigureSums* FigureTable::find(std::string_view metric, std::string_view instance) const {
  const auto found = sums_.find(std::pair(std::string(metric), std::string(instance)));
  return found == sums_.end() ? nullptr : &found->second;
}

std::vector<std::string> FigureTable::instances(std::string_view metric, std::string_view prefix) const {
  std::vector<std::string> out;
  for (auto one = sums_.lower_bound(std::pair(std::string(metric), std::string(prefix)));
       one != sums_.end() && one->first.first == metric && one->first.second.starts_with(prefix); ++one) {
    out.push_back(one->first.second);
  }
  return out;
}

}  // namespace hotlap
