#pragma once
// Tiers: one point per minute and one per hour of every series, so that a long time is drawn without decoding it.
// Points of the same bucket may come in parts (a stretch ends inside a minute); merging them gives the whole.
#include <cstdint>
#include <functional>
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
  double mean = 0;  // stored to 1/2,046 of max − min
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

// The points of one series within a block.
struct TierEntry {
  std::uint32_t series = 0;
  std::vector<TierPoint> points;  // rising in time, on multiples of the tier's width
};

// Writes the points of up to kSeriesPerChunk series, rising, through one range coder: what a host's series have in
// common (the minute, how many samples) then costs next to nothing. A series that was sampled is never a series of
// zeros: no points, no entry.
void encode_tier(std::span<const TierEntry> entries, std::int64_t width_ns, Bytes& out);
// Calls visit(series, points) for each; false, perhaps after some, when the bytes are not such a block.
bool decode_tier(ByteView bytes_untrusted, std::int64_t width_ns,
                 const std::function<void(std::uint32_t, std::span<const TierPoint>)>& visit);

}  // namespace hotlap
