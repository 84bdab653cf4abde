#pragma once
// How an amount is spread over time, in bounded memory, so that it can be asked for a window that is known only
// later (the steady part of a run). Buckets become twice as wide when there are too many. Order and chunking of
// what is added do not matter.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/counter.h"
#include "model/value.h"
#include "store/recording_reader.h"

namespace hotlap {

class TimeProfile {
 public:
  static constexpr std::size_t kBucketsMax = 512;

  explicit TimeProfile(std::size_t buckets_max = kBucketsMax) : buckets_max_(buckets_max) {}
  // Spreads `amount` evenly over [from_ns, to_ns); a point when both are equal.
  void add(std::int64_t from_ns, std::int64_t to_ns, double amount);
  // Of [from_ns, to_ns); of a bucket that lies partly inside, its share.
  double sum(std::int64_t from_ns, std::int64_t to_ns) const;

  std::int64_t width_ns() const { return width_ns_; }
  std::int64_t begin_ns() const { return first_ * width_ns_; }
  std::int64_t end_ns() const { return (first_ + static_cast<std::int64_t>(buckets_.size())) * width_ns_; }

 private:
  void make_room(std::int64_t bucket);

  std::size_t buckets_max_;
  std::vector<double> buckets_;
  std::int64_t first_ = 0;  // bucket i covers [(first_ + i) * width, …)
  std::int64_t width_ns_ = 500'000'000;
};

// The rate of one stored counter over time.
class RateProfile {
 public:
  // `hot_rate`: from here on a stretch between two samples counts as hot.
  explicit RateProfile(double hot_rate = 0.95, std::size_t buckets_max = TimeProfile::kBucketsMax)
      : hot_rate_(hot_rate), amount_(buckets_max), observed_s_(buckets_max), hot_s_(buckets_max) {}
  void add(std::span<const SamplePoint> points, double scale);
  // Mean rate in the window; nothing when less than a tenth of it was observed.
  std::optional<double> rate(std::int64_t from_ns, std::int64_t to_ns) const;
  // What was counted in the window, observed or not elsewhere.
  double amount(std::int64_t from_ns, std::int64_t to_ns) const { return amount_.sum(from_ns, to_ns); }
  // Share of the observed time that was hot.
  std::optional<double> hot_share(std::int64_t from_ns, std::int64_t to_ns) const;
  const TimeProfile& observed() const { return observed_s_; }
  const TimeProfile& hot() const { return hot_s_; }

 private:
  double hot_rate_;
  std::int64_t last_ns_ = INT64_MIN;
  Value last_;
  TimeProfile amount_;
  TimeProfile observed_s_;
  TimeProfile hot_s_;
};

// The mean of a gauge over time.
class GaugeProfile {
 public:
  explicit GaugeProfile(std::size_t buckets_max = TimeProfile::kBucketsMax)
      : sums_(buckets_max), counts_(buckets_max) {}
  void add(std::span<const SamplePoint> points, double scale);
  std::optional<double> mean(std::int64_t from_ns, std::int64_t to_ns) const;
  std::optional<double> last() const { return last_; }
  std::int64_t width_ns() const { return sums_.width_ns(); }

 private:
  TimeProfile sums_;
  TimeProfile counts_;
  std::optional<double> last_;
};

}  // namespace hotlap
