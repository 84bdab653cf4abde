#pragma once
// Small steps that every collector takes: registering its series, adding what was found or why there is nothing, and
// doing the dear part of its work less often.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/counter.h"
#include "model/sink.h"

namespace hotlap {

// Why a read that ended in `error` gives no value.
inline MissingReason missing_reason(const Error& error) {
  constexpr int kPermissionDenied = 13;  // EACCES
  constexpr int kNotPermitted = 1;       // EPERM
  if (error.os_error == kPermissionDenied || error.os_error == kNotPermitted) return MissingReason::kNoPermission;
  switch (error.code) {
    case ErrorCode::kNotFound: return MissingReason::kSourceLost;
    case ErrorCode::kUnsupported: return MissingReason::kNotSupported;
    default: return MissingReason::kReadFailed;
  }
}

inline Value value_or_missing(std::optional<std::uint64_t> found, MissingReason reason = MissingReason::kNotSupported) {
  return found ? Value::of(*found) : Value::missing(reason);
}

// The series of one instance: handles of `Count` metrics that stand side by side in the spec.
template <std::size_t Count>
class SeriesSet {
 public:
  bool is_registered() const { return is_registered_; }
  void register_at(SampleSink& out, std::uint16_t first_metric, std::string_view instance) {
    for (std::size_t m = 0; m < Count; ++m) {
      handles_[m] = out.series(static_cast<std::uint16_t>(first_metric + m), instance);
    }
    is_registered_ = true;
  }
  SeriesHandle operator[](std::size_t m) const { return handles_[m]; }
  void add_missing(SampleSink& out, MissingReason reason) const {
    for (const SeriesHandle handle : handles_) out.add(handle, Value::missing(reason));
  }

 private:
  std::array<SeriesHandle, Count> handles_{};
  bool is_registered_ = false;
};

// True when `period_ns` have passed since it was last true, by the times of the ticks; the first time at once.
// Ticks jitter, so a sixteenth of the period is forgiven.
class Due {
 public:
  explicit constexpr Due(std::int64_t period_ns) : period_ns_(period_ns) {}
  bool at(std::int64_t t_ns) {
    if (is_started_ && t_ns - last_ns_ < period_ns_ - period_ns_ / 16) return false;
    last_ns_ = t_ns;
    is_started_ = true;
    return true;
  }
  void set_period(std::int64_t period_ns) { period_ns_ = period_ns; }
  std::int64_t period_ns() const { return period_ns_; }
  void restart() { is_started_ = false; }  // due at the next call

 private:
  std::int64_t period_ns_;
  std::int64_t last_ns_ = 0;
  bool is_started_ = false;
};

// A sum of counters that come, go, wrap and are reset: grows by what each of them grew. What a counter had counted
// before it was first seen does not enter, so that a device that appears makes no spike.
class SumMember {
 public:
  void add_to(std::uint64_t& sum, std::uint64_t reading) {
    if (is_started_) {
      const Value delta = counter_delta(Value::of(last_), Value::of(reading));
      if (!delta.is_missing()) sum += delta.u64();
    }
    last_ = reading;
    is_started_ = true;
  }
  void forget() { is_started_ = false; }  // it went away

 private:
  std::uint64_t last_ = 0;
  bool is_started_ = false;
};

}  // namespace hotlap
