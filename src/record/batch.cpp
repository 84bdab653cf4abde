#include "record/batch.h"

namespace hotlap {

SeriesHandle SeriesTable::add(const MetricDesc& metric, std::string_view instance) {
  const MutexLock lock(mutex_);
  auto key = std::pair(&metric, std::string(instance));
  if (const auto found = numbers_.find(key); found != numbers_.end()) return {found->second};
  if (entries_.size() >= series_max_) return {};
  const auto number = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({&metric, key.second});
  numbers_.emplace(std::move(key), number);
  return {number};
}

std::vector<SeriesTable::Entry> SeriesTable::since(std::size_t from) const {
  const MutexLock lock(mutex_);
  if (from >= entries_.size()) return {};
  return {entries_.begin() + static_cast<std::ptrdiff_t>(from), entries_.end()};
}

std::size_t SeriesTable::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace hotlap
