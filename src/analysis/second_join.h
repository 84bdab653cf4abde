#pragma once
// Puts samples of several series together, second by second: what was the one while the other was so. Series come one
// after the other, in windows of many minutes, so seconds wait until all of them have been told; what comes out does
// not depend on how the reading was cut. Bounded: kHoldS seconds of every channel wait between two calls of release().
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace hotlap {

class SecondJoin {
 public:
  static constexpr std::int64_t kHoldS = 700;  // longer than a window of the engine and what may come late
  static constexpr std::int64_t kSecondsMax = 4096;
  static constexpr std::size_t kChannelsMax = 2048;

  // One second: the mean of each channel in it; nothing where it was not seen.
  class Row {
   public:
    std::optional<double> value(std::size_t channel) const {
      if (channel >= weights_.size() || weights_[channel] <= 0) return std::nullopt;
      return static_cast<double>(sums_[channel] / weights_[channel]);
    }

    void add(std::size_t channel, double sum, double weight);

   private:
    std::vector<float> sums_;
    std::vector<float> weights_;
  };
  using Visit = std::function<void(std::int64_t second, const Row&)>;

  // Of a level that was sampled at t_ns.
  void add_level(std::size_t channel, std::int64_t t_ns, double value);
  // Of a rate: `amount` in [from_ns, to_ns); its mean is per second.
  void add_amount(std::size_t channel, std::int64_t from_ns, std::int64_t to_ns, double amount);
  // Gives out the seconds that are complete, in order.
  void release(const Visit& visit);
  // The seconds that still wait, as they are.
  void visit_waiting(const Visit& visit) const;

 private:
  void add(std::size_t channel, std::int64_t second, double sum, double weight);

  std::deque<Row> rows_;  // second first_ + i
  std::int64_t first_ = 0;
  bool has_released_ = false;
  std::optional<std::int64_t> far_second_;
};

}  // namespace hotlap
