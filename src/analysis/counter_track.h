#pragma once
// What one stored counter grew by from one reading to the next.
#include <cstdint>
#include <span>

#include "model/counter.h"
#include "model/value.h"
#include "store/recording_reader.h"

namespace hotlap {

class CounterTrack {
 public:
  // use(from_ns, to_ns, grown) for each stretch between two samples in which that is known.
  template <class Use>
  void add(std::span<const SamplePoint> points, const Use& use) {
    add(points, use, [](std::int64_t, std::int64_t) {});
  }

  // The same, with gap(from_ns, to_ns) for each stretch that is marked as one in which nobody looked: asleep.
  template <class Use, class Gap>
  void add(std::span<const SamplePoint> points, const Use& use, const Gap& gap) {
    for (const SamplePoint& point : points) {
      const bool is_mark = point.value.is_missing() && point.value.reason() == MissingReason::kNotSampled;
      if (is_mark && gap_from_ns_ == INT64_MIN && !last_.is_missing()) gap_from_ns_ = last_ns_;
      if (!is_mark && gap_from_ns_ != INT64_MIN) {
        if (point.t_ns > gap_from_ns_) gap(gap_from_ns_, point.t_ns);
        gap_from_ns_ = INT64_MIN;
      }
      const Value delta = last_ns_ == INT64_MIN ? Value{} : counter_delta(last_, point.value);
      if (const auto grown = delta.number(); grown && point.t_ns > last_ns_) use(last_ns_, point.t_ns, *grown);
      last_ns_ = point.t_ns;
      last_ = point.value;
    }
  }

  // The same of minutes: each speaks for the time from the last value before it to its own last one.
  template <class Use>
  void add(std::span<const TierPoint> minutes, const Use& use) {
    for (const TierPoint& minute : minutes) {
      const bool is_known = last_ns_ != INT64_MIN && !last_.is_missing() && minute.count > 0;
      const double before = last_.number().value_or(0);
      const bool is_reset = minute.min < minute.first || minute.max > minute.last || before > minute.first;
      last_ = minute.count > 0 ? Value::of(minute.last) : Value{};
      if (is_known && !is_reset && minute.to_ns > last_ns_) use(last_ns_, minute.to_ns, minute.last - before);
      last_ns_ = minute.to_ns;
    }
  }

 private:
  std::int64_t last_ns_ = INT64_MIN;
  std::int64_t gap_from_ns_ = INT64_MIN;  // INT64_MIN: in none
  Value last_;
};

}  // namespace hotlap
