#pragma once
// How counters and gauges went over time, in bounded memory, so that they can be asked for a window that is known only
// later. Each takes samples, or points of minutes where a long recording is not looked at more closely, in time.
#include <cstdint>
#include <optional>
#include <span>

#include "analysis/counter_track.h"
#include "analysis/spread_buckets.h"
#include "store/recording_reader.h"

namespace hotlap {

// One amount.
class TimeProfile {
 public:
  static constexpr std::size_t kBucketsMax = 512;

  explicit TimeProfile(std::size_t buckets_max = kBucketsMax) : buckets_(buckets_max) {}
  // Spreads `amount` evenly over [from_ns, to_ns); a point when both are equal.
  void add(std::int64_t from_ns, std::int64_t to_ns, double amount) { buckets_.add(from_ns, to_ns, {amount}); }
  // Of [from_ns, to_ns); of a bucket that lies partly inside, its share.
  double sum(std::int64_t from_ns, std::int64_t to_ns) const { return buckets_.sum(0, from_ns, to_ns); }
  std::int64_t width_ns() const { return buckets_.width_ns(); }

 private:
  SpreadBuckets<1> buckets_;
};

// The rate of one stored counter over time.
class RateProfile {
 public:
  // `hot_rate`: from here on a stretch between two samples counts as hot.
  explicit RateProfile(double hot_rate = 0.95, std::size_t buckets_max = TimeProfile::kBucketsMax)
      : hot_rate_(hot_rate), amounts_(buckets_max), coarse_s_(buckets_max), gap_s_(buckets_max) {}
  void add(std::span<const SamplePoint> points, double scale);
  // How much it grew is known to the minute then, whether it was hot is not.
  void add(std::span<const TierPoint> minutes, double scale);
  // Mean rate in the window; nothing when less than a tenth of it was observed, gaps that are marked as such aside.
  std::optional<double> rate(std::int64_t from_ns, std::int64_t to_ns) const;
  // What was counted in the window, observed or not elsewhere.
  double amount(std::int64_t from_ns, std::int64_t to_ns) const { return amounts_.sum(kAmount, from_ns, to_ns); }
  // Seconds of the window that were observed; of these, that were looked at closely enough to tell whether it was hot.
  double observed_s(std::int64_t from_ns, std::int64_t to_ns) const { return amounts_.sum(kObserved, from_ns, to_ns); }
  double looked_s(std::int64_t from_ns, std::int64_t to_ns) const {
    return observed_s(from_ns, to_ns) - coarse_s_.sum(0, from_ns, to_ns);
  }
  double hot_s(std::int64_t from_ns, std::int64_t to_ns) const { return amounts_.sum(kHot, from_ns, to_ns); }
  // Share of the time looked at that was hot.
  std::optional<double> hot_share(std::int64_t from_ns, std::int64_t to_ns) const;
  // Stretches of time that are shorter are not told apart.
  std::int64_t width_ns() const;
  std::int64_t begin_ns() const { return amounts_.begin_ns(); }
  std::int64_t end_ns() const { return amounts_.end_ns(); }

 private:
  enum : std::size_t { kAmount, kObserved, kHot, kAmounts };

  double awake_s(std::int64_t from_ns, std::int64_t to_ns) const;

  double hot_rate_;
  CounterTrack counter_;
  SpreadBuckets<kAmounts> amounts_;
  SpreadBuckets<1> coarse_s_;
  SpreadBuckets<1> gap_s_;
};

// The mean of a gauge over time.
class GaugeProfile {
 public:
  explicit GaugeProfile(std::size_t buckets_max = TimeProfile::kBucketsMax) : sums_(buckets_max) {}
  void add(std::span<const SamplePoint> points, double scale);
  void add(std::span<const TierPoint> minutes, double scale);
  std::optional<double> mean(std::int64_t from_ns, std::int64_t to_ns) const;
  std::optional<double> last() const { return last_; }
  std::int64_t width_ns() const;

 private:
  enum : std::size_t { kSum, kCount, kSums };

  SpreadBuckets<kSums> sums_;
  bool has_minutes_ = false;
  std::optional<double> last_;
};

}  // namespace hotlap
