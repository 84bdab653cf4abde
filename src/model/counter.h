#pragma once
// What a counter grew by between two readings, without a false spike when it was reset or wrapped. Whoever makes a
// rate of stored counters uses this.
#include <cstdint>

#include "model/value.h"

namespace hotlap {

// Missing (kCounterReset) across a decrease, with one exception: a reading close below 2^32 that is followed by a
// small one is a counter of 32 bits (network drivers, milliseconds of disks) that wrapped. The band is narrow, 1/16
// of the range at each end, so that a 64-bit counter that happens to pass by when it is reset can't pretend more
// than 2^29. When either reading is missing, its reason.
constexpr Value counter_delta(const Value& previous, const Value& current) {
  if (current.is_missing()) return current;
  if (previous.is_missing()) return previous;
  if (previous.kind() != current.kind()) return Value::missing(MissingReason::kCounterReset);
  if (current.kind() == Value::Kind::kU64) {
    constexpr std::uint64_t kRange32 = std::uint64_t{1} << 32U;
    constexpr std::uint64_t kBand32 = std::uint64_t{1} << 28U;
    const std::uint64_t before = previous.u64();
    const std::uint64_t now = current.u64();
    if (now >= before) return Value::of(now - before);
    const bool is_wrap_32 = before < kRange32 && before >= kRange32 - kBand32 && now < kBand32;
    return is_wrap_32 ? Value::of(kRange32 - before + now) : Value::missing(MissingReason::kCounterReset);
  }
  if (current.kind() == Value::Kind::kI64) {
    if (current.i64() < previous.i64()) return Value::missing(MissingReason::kCounterReset);
    // In unsigned arithmetic: the difference of two i64 may not fit in one.
    return Value::of(static_cast<std::uint64_t>(current.i64()) - static_cast<std::uint64_t>(previous.i64()));
  }
  if (!(current.f64() >= previous.f64())) return Value::missing(MissingReason::kCounterReset);
  return Value::of(current.f64() - previous.f64());
}

}  // namespace hotlap
