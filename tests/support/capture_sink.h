#pragma once
// Keeps all that collectors push, as text for golden files and as values for tests.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collect/collector.h"
#include "model/sink.h"

namespace hotlap::test {

// Not thread-safe.
class CaptureSink final : public SampleSink {
 public:
  // The spec whose metrics the next calls mean. `series_max` bounds all of them together.
  explicit CaptureSink(std::size_t series_max = SIZE_MAX) : series_max_(series_max) {}
  void set_spec(const CollectorSpec& spec) { spec_ = &spec; }
  void begin_tick() { ++tick_; }  // from 0

  SeriesHandle series(std::uint16_t metric, std::string_view instance) override;
  void add(SeriesHandle series, Value value) override;
  void event(EventKind kind, std::int64_t value, std::string_view text) override;
  void count_loss(std::string_view counter, std::uint64_t count) override;
  void note_error(std::string_view text);  // a collector's Error, by the test that ran it

  // The value at a tick (kNotSampled when there is none); the last tick by default.
  Value value(std::string_view metric, std::string_view instance = {}, std::int64_t tick = -1) const;
  bool has_series(std::string_view metric, std::string_view instance = {}) const;
  std::size_t series_count() const { return series_.size(); }
  std::uint64_t loss(std::string_view counter) const;
  const std::vector<std::string>& events() const { return events_; }  // "1 cpu offline 3"

  // Every series with every tick, in name order, then events, losses and errors.
  std::string to_text() const;

 private:
  struct Series {
    std::string metric;
    std::string instance;
    std::vector<Value> values;  // by tick
  };

  const CollectorSpec* spec_ = nullptr;
  std::size_t series_max_;
  std::int64_t tick_ = -1;
  std::vector<Series> series_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> index_;
  std::map<std::string, std::uint64_t, std::less<>> losses_;
  std::vector<std::string> events_;
  std::vector<std::string> errors_;
};

std::string to_text(const Value& value);

// Opens `spec` on `host` and samples it whenever it is due, as the recorder does. A source that this host does not
// have adds nothing.
class CollectorRun {
 public:
  CollectorRun(const CollectorSpec& spec, const Host& host, CaptureSink& sink);
  void tick(const TickInfo& tick);
  bool is_open() const { return collector_ != nullptr; }

 private:
  const CollectorSpec& spec_;
  CaptureSink& sink_;
  std::unique_ptr<Collector> collector_;
  std::int64_t last_ns_ = INT64_MIN;
  std::uint64_t number_ = 0;
};

}  // namespace hotlap::test
