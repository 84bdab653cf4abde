#include "analysis/second_join.h"

#include <algorithm>

#include "base/clock.h"

namespace hotlap {
namespace {
std::int64_t second_of(std::int64_t t_ns) { return t_ns / kNsPerS - (t_ns % kNsPerS < 0 ? 1 : 0); }
// A stretch between two samples that is longer says nothing of its seconds.
constexpr std::int64_t kStretchMaxS = 15;
// More than the engine's widest window in a recording of months.
constexpr std::int64_t kGapMaxS = 16'384;
}  // namespace

void SecondJoin::Row::add(std::size_t channel, double sum, double weight) {
  if (channel >= sums_.size()) {
    sums_.resize(channel + 1);
    weights_.resize(channel + 1);
  }
  sums_[channel] += static_cast<float>(sum);
  weights_[channel] += static_cast<float>(weight);
}

void SecondJoin::add(std::size_t channel, std::int64_t second, double sum, double weight) {
  if (channel >= kChannelsMax) return;
  if (rows_.empty()) {
    if (has_released_ && second < first_) return;
    first_ = second;
    rows_.emplace_back();
  }
  if (second < first_) {
    if (has_released_ || first_ - second > kSecondsMax) return;
    for (; first_ > second; --first_) rows_.emplace_front();
  }
  const std::int64_t at = second - first_;
  if (at >= kGapMaxS) {
    // The machine slept, or a time is damaged: a second time of the same kind tells which.
    if (!far_second_ || *far_second_ > second || second - *far_second_ > kStretchMaxS) {
      far_second_ = second;
      return;
    }
    rows_.clear();
    rows_.emplace_back();
    first_ = second;
    has_released_ = true;
    far_second_.reset();
    return;
  }
  if (at >= static_cast<std::int64_t>(rows_.size())) rows_.resize(static_cast<std::size_t>(at) + 1);
  rows_[static_cast<std::size_t>(at)].add(channel, sum, weight);
}

void SecondJoin::add_level(std::size_t channel, std::int64_t t_ns, double value) {
  add(channel, second_of(t_ns), value, 1);
}

void SecondJoin::add_amount(std::size_t channel, std::int64_t from_ns, std::int64_t to_ns, double amount) {
  if (to_ns <= from_ns || to_ns - from_ns > kStretchMaxS * kNsPerS) return;
  const double length = static_cast<double>(to_ns - from_ns);
  for (std::int64_t second = second_of(from_ns); second <= second_of(to_ns - 1); ++second) {
    const std::int64_t inside = std::min(to_ns, (second + 1) * kNsPerS) - std::max(from_ns, second * kNsPerS);
    const double share = static_cast<double>(inside) / length;
    add(channel, second, amount * share, static_cast<double>(inside) / static_cast<double>(kNsPerS));
  }
}

void SecondJoin::release(const Visit& visit) {
  while (static_cast<std::int64_t>(rows_.size()) > kHoldS) {
    visit(first_, rows_.front());
    rows_.pop_front();
    ++first_;
    has_released_ = true;
  }
}

void SecondJoin::visit_waiting(const Visit& visit) const {
  std::int64_t second = first_;
  for (const Row& row : rows_) visit(second++, row);
}

}  // namespace hotlap
