#pragma once
// Tells apart why a level grows: a leak, a pool that fills and stays, spikes, one step, stairs. For memory of every
// kind; a figure over time in bounded memory goes in, its shape with slope and interval comes out.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "store/recording_reader.h"

namespace hotlap {

enum class GrowthShape : std::uint8_t {
  kFlat,
  kLeak,    // its floor rises all the time
  kStairs,  // its floor rises at intervals: at each epoch
  kStep,    // one rise, flat before and after
  kPool,    // it filled up and has stayed since: a cache, a pool
  kSpikes,  // flat, with rare peaks
};
std::string_view to_string(GrowthShape shape);

struct Growth {
  GrowthShape shape = GrowthShape::kFlat;
  double first = 0;  // at the window's begin and end, of the floor
  double last = 0;
  double peak = 0;               // highest value
  double per_s = 0;              // slope of the floor; of a step, a pool and spikes 0
  double half_width = 0;         // of the slope, 95 %
  std::int64_t rises = 0;        // steps and stairs
  double rise = 0;               // by how much each went up, mean
  std::optional<double> from_s;  // where it began to rise, or of the step, from the window's begin
};

// A level over time: lowest, highest and mean per bucket. Buckets become twice as wide when there are too many.
class LevelTrack {
 public:
  static constexpr std::size_t kBucketsMax = 512;

  void add(std::int64_t t_ns, double value);
  void add(const SamplePoint& point, double scale);
  void add(const TierPoint& minute, double scale);
  bool is_empty() const { return buckets_.empty(); }
  std::optional<double> last() const { return last_; }
  std::optional<double> peak(std::int64_t from_ns, std::int64_t to_ns) const;
  std::optional<double> mean(std::int64_t from_ns, std::int64_t to_ns) const;
  // Share of the samples at `limit` or above, 0 to 1, as whole buckets by their peak.
  std::int64_t begin_ns() const { return buckets_.empty() ? 0 : buckets_.front().t_ns; }
  std::int64_t end_ns() const { return end_ns_; }
  // Nothing when it saw fewer than 8 buckets with a value in the window. `noise`: a change below this is none.
  std::optional<Growth> growth(std::int64_t from_ns, std::int64_t to_ns, double noise) const;
  // The sum of several levels at the same time, as far as all of them were seen.
  static LevelTrack sum(const std::vector<const LevelTrack*>& tracks);
  // What is taken of `total` where this is what is left of it; never below 0.
  LevelTrack taken_of(double total) const;

 private:
  struct Bucket {
    std::int64_t t_ns = 0;  // begin
    double low = 0;
    double high = 0;
    double sum = 0;
    std::uint64_t count = 0;
  };
  void add(std::int64_t t_ns, const Bucket& values);
  void widen();

  std::vector<Bucket> buckets_;  // in time; gaps are not there
  std::int64_t width_ns_ = 1'000'000'000;
  std::int64_t end_ns_ = 0;
  std::optional<double> last_;
};

}  // namespace hotlap
