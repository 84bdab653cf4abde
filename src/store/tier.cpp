#include "store/tier.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace hotlap {
namespace {

constexpr std::uint64_t kPointsMax = 1'000'000;  // of one series in one block

}  // namespace

std::int64_t bucket_start(std::int64_t t_ns, std::int64_t width_ns) {
  std::int64_t index = t_ns / width_ns;
  if (t_ns % width_ns < 0) --index;
  if (index < std::numeric_limits<std::int64_t>::min() / width_ns) ++index;
  return index * width_ns;
}

void merge_into(TierPoint& point, const TierPoint& later) {
  if (later.count > 0) {
    if (point.count == 0) {
      const TierPoint before = point;
      point = later;
      point.from_ns = before.from_ns;
      point.to_ns = before.to_ns;
      point.missing = before.missing;
    } else {
      const auto a = static_cast<double>(point.count);
      const auto b = static_cast<double>(later.count);
      point.mean += (later.mean - point.mean) * (b / (a + b));
      point.min = std::min(point.min, later.min);
      point.max = std::max(point.max, later.max);
      point.last = later.last;
      point.count += later.count;
    }
    point.missing += later.missing;
  } else {
    point.missing += later.missing;
  }
}

TierPoint& TierSeries::bucket(std::int64_t t_ns) {
  const std::int64_t from = bucket_start(t_ns, width_ns_);
  if (!points_.empty() && points_.back().from_ns == from) return points_.back();
  const TierPoint fresh{.from_ns = from,
                        .to_ns = from > std::numeric_limits<std::int64_t>::max() - width_ns_
                                     ? std::numeric_limits<std::int64_t>::max()
                                     : from + width_ns_};
  if (points_.empty() || points_.back().from_ns < from) return points_.emplace_back(fresh);
  auto place = std::lower_bound(points_.begin(), points_.end(), from,
                                [](const TierPoint& point, std::int64_t t) { return point.from_ns < t; });
  if (place->from_ns != from) place = points_.insert(place, fresh);
  return *place;
}

void TierSeries::add(std::int64_t t_ns, Value value) {
  TierPoint& point = bucket(t_ns);
  const std::optional<double> number = value.number();
  if (!number || !std::isfinite(*number)) {
    ++point.missing;
    return;
  }
  const double v = *number;
  if (point.count == 0) {
    point.min = point.max = point.mean = point.first = v;
  } else {
    point.min = std::min(point.min, v);
    point.max = std::max(point.max, v);
    point.mean += (v - point.mean) / static_cast<double>(point.count + 1);
  }
  point.last = v;
  ++point.count;
}

void TierSeries::add(const TierPoint& part) { merge_into(bucket(part.from_ns), part); }

void encode_points(std::span<const TierPoint> points, std::int64_t width_ns, Bytes& out) {
  put_varint(out, points.size());
  std::int64_t last_bucket = 0;
  for (const TierPoint& point : points) {
    const std::int64_t bucket = point.from_ns / width_ns;
    put_varint(out, zigzag(bucket - last_bucket));
    last_bucket = bucket;
    put_varint(out, point.count);
    put_varint(out, point.missing);
    if (point.count == 0) continue;
    for (const double v : {point.min, point.mean, point.max, point.first, point.last}) put_fixed(out, v);
  }
}

bool decode_points(ByteView bytes_untrusted, std::int64_t width_ns, std::vector<TierPoint>& out) {
  ByteReader reader(bytes_untrusted);
  const std::uint64_t count = reader.varint();
  if (!reader.ok() || count > kPointsMax || count > reader.remaining()) return false;
  const std::int64_t bucket_max = std::numeric_limits<std::int64_t>::max() / width_ns - 1;
  std::int64_t bucket = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t step = unzigzag(reader.varint());
    if (i > 0 && step <= 0) return false;
    if (__builtin_add_overflow(bucket, step, &bucket) || bucket > bucket_max || bucket < -bucket_max) return false;
    TierPoint point{.from_ns = bucket * width_ns, .to_ns = (bucket + 1) * width_ns};
    point.count = reader.varint();
    point.missing = reader.varint();
    if (point.count > 0) {
      for (double* v : {&point.min, &point.mean, &point.max, &point.first, &point.last}) *v = reader.fixed<double>();
    }
    if (!reader.ok()) return false;
    out.push_back(point);
  }
  return reader.remaining() == 0;
}

}  // namespace hotlap
