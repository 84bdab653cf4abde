#pragma once
// What one tick of one lane hands to the write thread, and the table that gives series their numbers before the writer
// has seen them.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "model/event.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/sink.h"
#include "model/span.h"
#include "store/recording_writer.h"

namespace hotlap {

struct LossCount {
  std::string_view counter;  // a name of model/losses.h
  std::uint64_t count = 0;
};

// Sample::series counts in the SeriesTable, Span::name in the recorder's own numbering of names: `names` holds the ones
// that are new with this batch, in that order.
struct Batch {
  std::int64_t t_ns = 0;
  std::vector<Sample> samples;
  std::vector<std::string> names;
  std::vector<Span> spans;
  std::vector<Event> events;
  std::vector<ClockReading> clock;
  std::vector<ProcessInfo> processes;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<LossCount> losses;

  bool empty() const {
    return samples.empty() && names.empty() && spans.empty() && events.empty() && clock.empty() && processes.empty() &&
           attributes.empty() && losses.empty();
  }
  // Keeps the memory.
  void clear() {
    samples.clear();
    names.clear();
    spans.clear();
    events.clear();
    clock.clear();
    processes.clear();
    attributes.clear();
    losses.clear();
  }
};

// Thread-safe: lanes add at a series' first use, the write thread reads what came since it last looked.
class SeriesTable {
 public:
  struct Entry {
    const MetricDesc* metric = nullptr;  // of a constinit spec
    std::string instance;
  };

  explicit SeriesTable(std::uint32_t series_max) : series_max_(series_max) {}

  // The same pair gives the same handle; invalid beyond the bound.
  SeriesHandle add(const MetricDesc& metric, std::string_view instance);
  // Entries from number `from` on.
  std::vector<Entry> since(std::size_t from) const;
  std::size_t size() const;

 private:
  const std::uint32_t series_max_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_ HOTLAP_GUARDED_BY(mutex_);
  std::map<std::pair<const MetricDesc*, std::string>, std::uint32_t, std::less<>> numbers_ HOTLAP_GUARDED_BY(mutex_);
};

}  // namespace hotlap
