#pragma once
// Tiers: one point per minute and one per hour of every series, so that a long time is drawn without decoding it.
// Points of the same bucket may come in parts (a stretch ends inside a minute); merging them gives the whole.
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "model/value.h"

namespace hotlap {

// One bucket of a downsampled series. Integers beyond 2^53 are rounded. A counter was reset inside the bucket when
// min < first or max > last; its rate is then unknown.
struct TierPoint {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  double min = 0;
  double mean = 0;  // stored to 1/65,535 of max − min
  double max = 0;
  double first = 0;
  double last = 0;
  std::uint64_t count = 0;    // values; 0: min … last mean nothing
  std::uint64_t missing = 0;  // samples without a value, not-a-number and infinite ones among them
  friend bool operator==(const TierPoint&, const TierPoint&) = default;
};

// Start of the bucket of `width_ns` > 0 that holds `t_ns`; buckets lie on multiples of their width.
std::int64_t bucket_start(std::int64_t t_ns, std::int64_t width_ns);

// `later` follows in time.
void merge_into(TierPoint& point, const TierPoint& later);

// Gathers samples and points of one series into buckets of one width, in time order.
class TierSeries {
 public:
  explicit TierSeries(std::int64_t width_ns) : width_ns_(width_ns) {}
  void add(std::int64_t t_ns, Value value);
  void add(const TierPoint& part);
  const std::vector<TierPoint>& points() const { return points_; }
  void clear() { points_.clear(); }

 private:
  TierPoint& bucket(std::int64_t t_ns);

  std::int64_t width_ns_;
  std::vector<TierPoint> points_;
};

// The points of one series inside a block. `width_ns` is the tier's; from_ns must lie on its multiples.
void encode_points(std::span<const TierPoint> points, std::int64_t width_ns, Bytes& out);
// Appends to `out`; false when the bytes are not such points. Points are rising in time.
bool decode_points(ByteView bytes_untrusted, std::int64_t width_ns, std::vector<TierPoint>& out);

}  // namespace hotlap
