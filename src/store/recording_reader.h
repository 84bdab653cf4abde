#pragma once
// Reads one recording, live or closed. The file is hostile until proven otherwise: defensive mode, untrusted
// schema, sizes and checksums are checked; a damaged block is skipped and counted. Holds no transaction longer than
// 1 s and never checkpoints. Confined to one thread; several readers may be open.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/event.h"
#include "model/losses.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/run.h"
#include "model/sink.h"
#include "model/span.h"
#include "store/tier.h"

namespace hotlap {

// [from_ns, to_ns)
struct TimeRange {
  std::int64_t from_ns = INT64_MIN;
  std::int64_t to_ns = INT64_MAX;
};

// A series as stored; owns its texts.
struct StoredSeries {
  SeriesHandle handle;
  std::string metric;
  std::string unit;
  std::string instance;
  MetricKind kind = MetricKind::kGauge;
  double scale = 1.0;
  std::int64_t window_ns = 0;
  std::int64_t min_period_ns = 0;
};

// One sample of a series; samples that were not taken are not there.
struct SamplePoint {
  std::int64_t t_ns;
  Value value;
};

// Consecutive ticks of all series that are stored together: who reads along them has each decoded once.
struct TickStretch {
  std::int64_t from_ns = 0;  // first and last tick
  std::int64_t to_ns = 0;
  std::uint64_t samples = 0;
};

class RecordingReader {
 public:
  // kNotFound, kCorrupt (not one of ours, damaged), kUnsupported (a newer format: says which version can read it).
  static Result<std::unique_ptr<RecordingReader>> open(const std::filesystem::path& path);
  virtual ~RecordingReader() = default;

  virtual const RecordingInfo& info() const = 0;
  virtual bool is_closed() const = 0;  // closed by its writer; false: live, or its writer died
  virtual Result<void> refresh() = 0;  // sees what was committed since; series, names and processes may have grown
  virtual const std::vector<StoredSeries>& series() const = 0;
  virtual Result<TimeRange> extent() const = 0;  // of ticks and spans; from > to when empty

  // Calls `visit` once per series that has samples in `range`, in the order of `wanted`.
  virtual Result<void> read_samples(std::span<const SeriesHandle> wanted, TimeRange range,
                                    const std::function<void(SeriesHandle, std::span<const SamplePoint>)>& visit) = 0;
  // At most about `points_max` buckets per series, from the coarsest tier that gives at least a third of them;
  // buckets that overlap the range are whole.
  virtual Result<void> read_tiers(std::span<const SeriesHandle> wanted, TimeRange range, std::size_t points_max,
                                  const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) = 0;
  // Those that are complete, in the order they were recorded. None: this reader reads everything as fast.
  virtual std::vector<TickStretch> stretches() const { return {}; }
  // Points of a minute, or the part of one that the stretch has, of each stretch that begins in `range`: for who need
  // not look closer at a long recording. Once per series, in time. Only where there are stretches.
  virtual Result<void> read_minutes(std::span<const SeriesHandle> /*wanted*/, TimeRange /*range*/,
                                    const std::function<void(SeriesHandle, std::span<const TierPoint>)>& /*visit*/) {
    return {};
  }
  // Spans that start in `range`, by block, in the order they were recorded. `kinds` empty: all.
  virtual Result<void> read_spans(std::span<const SpanKind> kinds, TimeRange range,
                                  const std::function<void(std::span<const Span>)>& visit) = 0;
  // The same spans for who follows a live recording: those recorded since `cursor` (0: from the beginning), which
  // advances. A span is recorded at its end, so its start does not tell what is new.
  virtual Result<void> read_spans_since(std::uint64_t& cursor, std::span<const SpanKind> kinds,
                                        const std::function<void(std::span<const Span>)>& visit) = 0;
  virtual Result<std::vector<Event>> read_events(TimeRange range) = 0;
  virtual Result<std::vector<Event>> read_events_since(std::uint64_t& cursor) = 0;
  virtual Result<std::vector<ClockReading>> read_clock() = 0;
  virtual Result<std::vector<ProcessInfo>> read_processes() = 0;
  virtual Result<std::vector<Loss>> read_losses() = 0;  // the writer's counters and what this reader skipped
  virtual Result<std::map<std::string, std::string>> read_attributes() = 0;
  virtual std::string name(std::uint32_t id) = 0;  // empty: unknown
};

}  // namespace hotlap
