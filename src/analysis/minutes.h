#pragma once
// What an analyzer asks of samples and of points of minutes alike.
#include <cstdint>
#include <optional>

#include "store/recording_reader.h"

namespace hotlap {

inline std::int64_t begin_ns(const SamplePoint& point) { return point.t_ns; }
inline std::int64_t begin_ns(const TierPoint& minute) { return minute.from_ns; }
inline std::int64_t end_ns(const SamplePoint& point) { return point.t_ns; }
inline std::int64_t end_ns(const TierPoint& minute) { return minute.to_ns; }

// The value, of a minute the last, largest and smallest one; nothing where it is missing.
inline std::optional<double> last_value(const SamplePoint& point) { return point.value.number(); }
inline std::optional<double> largest_value(const SamplePoint& point) { return point.value.number(); }
inline std::optional<double> smallest_value(const SamplePoint& point) { return point.value.number(); }
inline std::optional<double> last_value(const TierPoint& minute) {
  return minute.count > 0 ? std::optional(minute.last) : std::nullopt;
}
inline std::optional<double> largest_value(const TierPoint& minute) {
  return minute.count > 0 ? std::optional(minute.max) : std::nullopt;
}
inline std::optional<double> smallest_value(const TierPoint& minute) {
  return minute.count > 0 ? std::optional(minute.min) : std::nullopt;
}

}  // namespace hotlap
