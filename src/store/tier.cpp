#include "store/tier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "base/check.h"
#include "store/format.h"
#include "store/residual_models.h"
#include "store/value_codec.h"

namespace hotlap {
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

namespace {

// One set of models for each thing that is said of a point, learnt over all series of the block. What is written is
// always the difference to what is expected: the same as in the point or series before.
struct TierModels {
  ResidualModels gap, points, first_bucket, bucket_step, count, missing, digits, shift;
  ResidualModels first, rise, below, above, last;
  BitModel constant, monotone;
  // Of the series or point before.
  std::uint64_t points_before = 1;
  std::uint64_t bucket_before = 0;
  std::uint64_t count_before = 0;
  std::uint64_t missing_before = 0;
  std::uint64_t digits_before = 0;
  std::uint64_t shift_before = 0;
};

constexpr std::uint64_t kAsBits = kDecimalDigitsMax + 1;  // "digits" of values that are no decimals
constexpr unsigned kMeanBits = 10;
constexpr std::uint64_t kMeanTop = (1U << kMeanBits) - 1;
constexpr std::uint64_t kPointsPerSeriesMax = 4096;  // of one series in one block

void put(RangeEncoder& coder, ResidualModels& models, std::uint64_t& before, std::uint64_t value) {
  models.encode(coder, value - before);
  before = value;
}
std::uint64_t get(RangeDecoder& coder, ResidualModels& models, std::uint64_t& before) {
  return before += models.decode(coder);
}

// How the doubles of one series are written as integers: as decimals when all are, else as their bits.
struct Scale {
  std::uint64_t digits = kAsBits;
  std::uint64_t shift = 0;  // zero bits that all of them end with

  std::uint64_t to_int(double value) const {
    const std::uint64_t number = digits == kAsBits
                                     ? std::bit_cast<std::uint64_t>(value)
                                     : static_cast<std::uint64_t>(to_decimal(value, static_cast<unsigned>(digits)));
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(number) >> shift);
  }
  double to_double(std::uint64_t number) const {
    number <<= shift;
    return digits == kAsBits ? std::bit_cast<double>(number)
                             : from_decimal(static_cast<std::int64_t>(number), static_cast<unsigned>(digits));
  }
};

Scale scale_of(std::span<const TierPoint> points) {
  std::vector<double> values;
  for (const TierPoint& point : points) {
    if (point.count > 0) values.insert(values.end(), {point.min, point.max, point.first, point.last});
  }
  Scale scale;
  if (const std::optional<unsigned> digits = decimal_digits(values)) scale.digits = *digits;
  std::uint64_t all = 0;
  for (const double value : values) all |= scale.to_int(value);
  scale.shift = all == 0 ? 0 : static_cast<std::uint64_t>(std::countr_zero(all));
  return scale;
}

double lerp(double low, double high, double part) { return low * (1 - part) + high * part; }

std::uint64_t mean_part(const TierPoint& point) {
  // Halves, because the distance of two doubles may be no double.
  const double part = (point.mean / 2 - point.min / 2) / (point.max / 2 - point.min / 2);
  return static_cast<std::uint64_t>(std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(kMeanTop)));
}

void encode_values(RangeEncoder& coder, TierModels& models, const Scale& scale, const TierPoint& point,
                   std::uint64_t& last_before) {
  const std::uint64_t min = scale.to_int(point.min);
  const std::uint64_t max = scale.to_int(point.max);
  const std::uint64_t first = scale.to_int(point.first);
  const std::uint64_t last = scale.to_int(point.last);
  models.first.encode(coder, first - last_before);
  last_before = last;
  const bool is_constant = min == max;
  coder.bit(models.constant, is_constant);
  if (is_constant) return;
  const bool is_monotone = first == min && last == max;
  coder.bit(models.monotone, is_monotone);
  if (is_monotone) {
    models.rise.encode(coder, last - first);
  } else {
    models.below.encode(coder, first - min);
    models.above.encode(coder, max - first);
    models.last.encode(coder, last - first);
  }
  coder.raw(mean_part(point), kMeanBits);
}

void decode_values(RangeDecoder& coder, TierModels& models, const Scale& scale, TierPoint& point,
                   std::uint64_t& last_before) {
  const std::uint64_t first = last_before + models.first.decode(coder);
  point.first = scale.to_double(first);
  point.min = point.max = point.mean = point.last = point.first;
  last_before = first;
  if (coder.bit(models.constant)) return;
  if (coder.bit(models.monotone)) {
    last_before = first + models.rise.decode(coder);
    point.last = point.max = scale.to_double(last_before);
  } else {
    point.min = scale.to_double(first - models.below.decode(coder));
    point.max = scale.to_double(first + models.above.decode(coder));
    last_before = first + models.last.decode(coder);
    point.last = scale.to_double(last_before);
  }
  point.mean = lerp(point.min, point.max, static_cast<double>(coder.raw(kMeanBits)) / static_cast<double>(kMeanTop));
}

}  // namespace

void encode_tier(std::span<const TierEntry> entries, std::int64_t width_ns, Bytes& out) {
  put_varint(out, entries.size());
  const auto models = std::make_unique<TierModels>();
  RangeEncoder coder(out);
  std::uint64_t series_before = 0;
  for (const TierEntry& entry : entries) {
    HOTLAP_CHECK(!entry.points.empty() && entry.points.size() <= kPointsPerSeriesMax);
    models->gap.encode(coder, entry.series - series_before - 1);
    series_before = entry.series;
    put(coder, models->points, models->points_before, entry.points.size());
    const Scale scale = scale_of(entry.points);
    put(coder, models->digits, models->digits_before, scale.digits);
    put(coder, models->shift, models->shift_before, scale.shift);
    std::uint64_t bucket = 0;
    std::uint64_t last_before = 0;
    for (std::size_t i = 0; i < entry.points.size(); ++i) {
      const TierPoint& point = entry.points[i];
      const auto now = static_cast<std::uint64_t>(point.from_ns / width_ns);
      if (i == 0) {
        put(coder, models->first_bucket, models->bucket_before, now);
      } else {
        models->bucket_step.encode(coder, now - bucket - 1);
      }
      bucket = now;
      put(coder, models->count, models->count_before, point.count);
      put(coder, models->missing, models->missing_before, point.missing);
      if (point.count > 0) encode_values(coder, *models, scale, point, last_before);
    }
  }
  coder.finish();
}

bool decode_tier(ByteView bytes_untrusted, std::int64_t width_ns,
                 const std::function<void(std::uint32_t, std::span<const TierPoint>)>& visit) {
  ByteReader reader(bytes_untrusted);
  const std::uint64_t entries = reader.varint();
  if (!reader.ok() || entries > kSeriesPerChunk) return false;
  const auto models = std::make_unique<TierModels>();
  RangeDecoder coder(reader.bytes(reader.remaining()));
  const std::int64_t bucket_max = std::numeric_limits<std::int64_t>::max() / width_ns - 1;
  std::uint64_t series = 0;
  std::vector<TierPoint> points;
  for (std::uint64_t e = 0; e < entries; ++e) {
    series += models->gap.decode(coder) + 1;
    const std::uint64_t count = get(coder, models->points, models->points_before);
    Scale scale;
    scale.digits = get(coder, models->digits, models->digits_before);
    scale.shift = get(coder, models->shift, models->shift_before);
    if (series >= kSeriesMax || count == 0 || count > kPointsPerSeriesMax || scale.digits > kAsBits ||
        scale.shift > 63) {
      return false;
    }
    points.clear();
    std::int64_t bucket = 0;
    std::uint64_t last_before = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i == 0) {
        bucket = static_cast<std::int64_t>(get(coder, models->first_bucket, models->bucket_before));
      } else {
        const std::uint64_t step = models->bucket_step.decode(coder) + 1;
        if (step == 0 || step > static_cast<std::uint64_t>(bucket_max)) return false;
        bucket += static_cast<std::int64_t>(step);
      }
      if (bucket > bucket_max || bucket < -bucket_max) return false;
      TierPoint point{.from_ns = bucket * width_ns, .to_ns = (bucket + 1) * width_ns};
      point.count = get(coder, models->count, models->count_before);
      point.missing = get(coder, models->missing, models->missing_before);
      if (point.count > 0) decode_values(coder, *models, scale, point, last_before);
      points.push_back(point);
    }
    visit(static_cast<std::uint32_t>(series), points);
  }
  return true;
}

}  // namespace hotlap
