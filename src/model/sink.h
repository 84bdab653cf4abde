#pragma once
// Where collectors and importers push what they read. Implemented by the recorder, the store and by tests.
#include <cstdint>
#include <string_view>

#include "model/event.h"
#include "model/losses.h"
#include "model/value.h"

namespace hotlap {

// Names one series (metric × instance) at its sink. Cheap to copy; kept by the collector for as long as it lives.
struct SeriesHandle {
  std::uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
};

// Confined to the lane's thread.
class SampleSink {
 public:
  virtual ~SampleSink() = default;
  // The handle for `metric` (index into the collector's spec) and `instance` ("core 3", "eth0"; empty: the only one).
  // Registers at first use. Beyond the sink's bound an invalid handle comes back; adding to it is counted, not stored.
  virtual SeriesHandle series(std::uint16_t metric, std::string_view instance) = 0;
  // At most once per series and tick; a second value is dropped and counted as collect.duplicates.
  virtual void add(SeriesHandle series, Value value) = 0;
  virtual void event(EventKind kind, std::int64_t value, std::string_view text) = 0;
  // What a device is, in words, for the recording's attributes ("gpu0.uuid"); a later text replaces the earlier one.
  virtual void attribute(std::string_view /*key*/, std::string_view /*text*/) {}
  virtual void count_loss(std::string_view counter, std::uint64_t count) = 0;
};

}  // namespace hotlap
