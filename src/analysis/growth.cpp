#include "analysis/growth.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/block_means.h"

namespace hotlap {
namespace {

constexpr std::size_t kPointsMin = 8;
constexpr std::size_t kPointsMax = 64;
constexpr double kPoolShare = 0.4;     // the last part of the window that must be flat for a pool
constexpr double kStepShare = 0.7;     // of the whole rise, in one place
constexpr double kStairShare = 0.6;    // of the whole rise, in few places
constexpr double kRisingShare = 0.65;  // of the parts of a leak that rise
constexpr double kSpikeShare = 0.05;   // of the level, for a peak above the floor to be one

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

struct Point {
  double t_s = 0;
  double low = 0;
  double high = 0;
};

// Of points that are few: neighbours together, the lowest of the lows.
std::vector<Point> thinned(const std::vector<Point>& points) {
  const std::size_t join = (points.size() + kPointsMax - 1) / kPointsMax;
  std::vector<Point> out;
  for (std::size_t i = 0; i < points.size(); i += join) {
    Point one = points[i];
    for (std::size_t k = i + 1; k < std::min(i + join, points.size()); ++k) {
      one.low = std::min(one.low, points[k].low);
      one.high = std::max(one.high, points[k].high);
    }
    out.push_back(one);
  }
  return out;
}

// Theil and Sen: the median of all slopes, which single points do not move.
double median_slope(const std::vector<Point>& points, std::size_t from) {
  std::vector<double> slopes;
  for (std::size_t i = from; i < points.size(); ++i) {
    for (std::size_t k = i + 1; k < points.size(); ++k) {
      const double dt = points[k].t_s - points[i].t_s;
      if (dt > 0) slopes.push_back((points[k].low - points[i].low) / dt);
    }
  }
  return median(std::move(slopes)).value_or(0);
}

double span_of(const std::vector<Point>& points, std::size_t from) {
  double low = points[from].low;
  double high = low;
  for (std::size_t i = from; i < points.size(); ++i) {
    low = std::min(low, points[i].low);
    high = std::max(high, points[i].low);
  }
  return high - low;
}

// Half the 95 % interval of the slope, from the slopes of eight parts.
double slope_half_width(const std::vector<Point>& points) {
  constexpr std::size_t kParts = 8;
  std::vector<double> slopes;
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::size_t a = part * (points.size() - 1) / kParts;
    const std::size_t b = (part + 1) * (points.size() - 1) / kParts;
    const double dt = points[b].t_s - points[a].t_s;
    if (b > a && dt > 0) slopes.push_back((points[b].low - points[a].low) / dt);
  }
  return half_width_95(slopes).value_or(0);
}

struct Rises {
  std::vector<std::size_t> at;  // index of the point after it
  double sum = 0;
};

// Where most of the rise happens at once: differences far above the usual one.
Rises jumps(const std::vector<Point>& points, double noise) {
  std::vector<double> sizes;
  for (std::size_t i = 1; i < points.size(); ++i) sizes.push_back(std::abs(points[i].low - points[i - 1].low));
  const double usual = median(sizes).value_or(0);
  const double limit = std::max({noise / 2, 6 * usual});
  Rises out;
  for (std::size_t i = 1; i < points.size();) {
    std::size_t end = i;
    while (end < points.size() && points[end].low - points[end - 1].low >= limit) ++end;
    // A rise that a bucket cuts in two is one; what goes on for longer is a ramp, not a step.
    if (end > i && end - i <= 2) {
      out.at.push_back(i);
      out.sum += points[end - 1].low - points[i - 1].low;
    }
    i = std::max(end, i + 1);
  }
  return out;
}

}  // namespace

std::string_view to_string(GrowthShape shape) {
  switch (shape) {
    case GrowthShape::kFlat: return "flat";
    case GrowthShape::kLeak: return "leak";
    case GrowthShape::kStairs: return "stairs";
    case GrowthShape::kStep: return "step";
    case GrowthShape::kPool: return "pool";
    case GrowthShape::kSpikes: return "spikes";
  }
  return "flat";
}

void LevelTrack::widen() {
  width_ns_ *= 2;
  std::vector<Bucket> wide;
  for (const Bucket& bucket : buckets_) {
    const std::int64_t t_ns = floor_div(bucket.t_ns, width_ns_) * width_ns_;
    if (wide.empty() || wide.back().t_ns != t_ns) {
      wide.push_back(bucket);
      wide.back().t_ns = t_ns;
      continue;
    }
    Bucket& into = wide.back();
    into.low = std::min(into.low, bucket.low);
    into.high = std::max(into.high, bucket.high);
    into.sum += bucket.sum;
    into.count += bucket.count;
  }
  buckets_ = std::move(wide);
}

void LevelTrack::add(std::int64_t t_ns, double value) {
  if (std::isnan(value)) return;
  add(t_ns, Bucket{.low = value, .high = value, .sum = value, .count = 1});
  if (end_ns_ == t_ns) last_ = value;
}

void LevelTrack::add(const SamplePoint& point, double scale) {
  if (const auto number = point.value.number()) add(point.t_ns, *number * scale);
}

void LevelTrack::add(const TierPoint& minute, double scale) {
  if (minute.count == 0) return;
  add(minute.from_ns, Bucket{.low = minute.min * scale,
                             .high = minute.max * scale,
                             .sum = minute.mean * scale * static_cast<double>(minute.count),
                             .count = minute.count});
  last_ = minute.last * scale;
  end_ns_ = std::max(end_ns_, minute.to_ns);
}

// `values` that were seen from t_ns on.
void LevelTrack::add(std::int64_t t_ns, const Bucket& values) {
  const std::int64_t begin_ns = floor_div(t_ns, width_ns_) * width_ns_;
  if (!buckets_.empty() && begin_ns < buckets_.back().t_ns) return;  // samples of a series come in time
  end_ns_ = t_ns;
  if (!buckets_.empty() && buckets_.back().t_ns == begin_ns) {
    Bucket& bucket = buckets_.back();
    bucket.low = std::min(bucket.low, values.low);
    bucket.high = std::max(bucket.high, values.high);
    bucket.sum += values.sum;
    bucket.count += values.count;
    return;
  }
  buckets_.push_back(values);
  buckets_.back().t_ns = begin_ns;
  while (buckets_.size() > kBucketsMax) widen();
}

std::optional<double> LevelTrack::peak(std::int64_t from_ns, std::int64_t to_ns) const {
  std::optional<double> out;
  for (const Bucket& bucket : buckets_) {
    if (bucket.t_ns + width_ns_ > from_ns && bucket.t_ns < to_ns)
      out = std::max(out.value_or(bucket.high), bucket.high);
  }
  return out;
}

std::optional<double> LevelTrack::mean(std::int64_t from_ns, std::int64_t to_ns) const {
  double sum = 0;
  std::uint64_t count = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.t_ns + width_ns_ <= from_ns || bucket.t_ns >= to_ns) continue;
    sum += bucket.sum;
    count += bucket.count;
  }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

LevelTrack LevelTrack::sum(const std::vector<const LevelTrack*>& tracks) {
  LevelTrack out;
  std::int64_t width_ns = 0;
  std::int64_t spacing_ns = 0;  // of the level that is sampled most rarely: between its samples nothing is known
  std::int64_t from_ns = INT64_MIN;
  std::int64_t to_ns = INT64_MAX;
  for (const LevelTrack* track : tracks) {
    if (track->is_empty()) return out;
    width_ns = std::max(width_ns, track->width_ns_);
    const auto gaps = static_cast<std::int64_t>(std::max<std::size_t>(track->buckets_.size(), 2)) - 1;
    spacing_ns = std::max(spacing_ns, (track->end_ns_ - track->begin_ns()) / gaps);
    from_ns = std::max(from_ns, track->begin_ns());
    to_ns = std::min(to_ns, track->end_ns_);
  }
  if (tracks.empty() || to_ns <= from_ns) return out;
  out.width_ns_ = width_ns;
  // Each level holds until it is next sampled; slow ones (PSS, every ten seconds) are read at the same times.
  std::vector<std::size_t> at(tracks.size(), 0);
  const std::int64_t step_ns =
      std::max({width_ns, spacing_ns, (to_ns - from_ns) / static_cast<std::int64_t>(kBucketsMax)});
  for (std::int64_t t = from_ns; t <= to_ns; t += step_ns) {
    double total = 0;
    for (std::size_t i = 0; i < tracks.size(); ++i) {
      const std::vector<Bucket>& buckets = tracks[i]->buckets_;
      while (at[i] + 1 < buckets.size() && buckets[at[i] + 1].t_ns <= t) ++at[i];
      total += buckets[at[i]].low;
    }
    out.add(t, total);
  }
  return out;
}

LevelTrack LevelTrack::taken_of(double total) const {
  LevelTrack out = *this;
  const auto taken = [total](double left) { return std::max(total - left, 0.0); };
  for (Bucket& bucket : out.buckets_) {
    const double low = taken(bucket.high);
    bucket.high = taken(bucket.low);
    bucket.low = low;
    bucket.sum = std::max(static_cast<double>(bucket.count) * total - bucket.sum, 0.0);
  }
  if (last_) out.last_ = taken(*last_);
  return out;
}

std::optional<Growth> LevelTrack::growth(std::int64_t from_ns, std::int64_t to_ns, double noise) const {
  std::vector<Point> all;
  for (const Bucket& bucket : buckets_) {
    if (bucket.t_ns + width_ns_ <= from_ns || bucket.t_ns >= to_ns) continue;
    all.push_back({static_cast<double>(bucket.t_ns - from_ns) / 1e9, bucket.low, bucket.high});
  }
  if (all.size() < kPointsMin) return std::nullopt;
  const std::vector<Point> points = thinned(all);
  Growth out;
  out.first = points.front().low;
  out.last = points.back().low;
  out.peak = std::ranges::max_element(points, {}, &Point::high)->high;
  const double rise = out.last - out.first;
  const double seconds = points.back().t_s - points.front().t_s;
  if (seconds <= 0) return std::nullopt;

  const auto tail = static_cast<std::size_t>((1 - kPoolShare) * static_cast<double>(points.size()));
  if (rise > noise) {
    const Rises rises = jumps(points, noise);
    // A shape is what the rise is made of: one jump, several, or all of the time.
    if (rises.at.size() == 1 && rises.sum >= kStepShare * rise) {
      out.shape = GrowthShape::kStep;
    } else if (rises.at.size() >= 2 && rises.sum >= kStairShare * rise && rises.at.size() * 3 <= points.size()) {
      out.shape = GrowthShape::kStairs;
    } else if (span_of(points, tail) <= std::max(noise / 2, 0.1 * rise)) {
      out.shape = GrowthShape::kPool;
      for (const Point& point : points) {
        if (!out.from_s && point.low >= out.first + 0.9 * rise) out.from_s = point.t_s;
      }
    } else {
      std::size_t rising = 0;
      constexpr std::size_t kParts = 8;
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t a = part * (points.size() - 1) / kParts;
        const std::size_t b = (part + 1) * (points.size() - 1) / kParts;
        if (points[b].low > points[a].low) ++rising;
      }
      const bool is_rising = static_cast<double>(rising) >= kRisingShare * kParts;
      out.shape = is_rising ? GrowthShape::kLeak : GrowthShape::kFlat;
    }
    if (out.shape == GrowthShape::kStep || out.shape == GrowthShape::kStairs) {
      out.rises = static_cast<std::int64_t>(rises.at.size());
      out.rise = rises.sum / static_cast<double>(rises.at.size());
      out.from_s = points[rises.at.front()].t_s;
    }
    // The last stair may be the last: only what goes on has a slope.
    if (out.shape == GrowthShape::kStairs && points.size() - rises.at.back() > points.size() / 2) {
      out.shape = GrowthShape::kPool;
    }
  }
  if (out.shape == GrowthShape::kFlat &&
      out.peak - std::max(out.first, out.last) > std::max(noise, kSpikeShare * out.last)) {
    out.shape = GrowthShape::kSpikes;
  }
  if (out.shape == GrowthShape::kLeak || out.shape == GrowthShape::kStairs) {
    out.per_s = out.shape == GrowthShape::kLeak ? median_slope(points, 0) : rise / seconds;
    out.half_width = slope_half_width(points);
  }
  return out;
}

}  // namespace hotlap
