#pragma once
// Several files of one machine that were imported into one run, seen as one recording: what stands in a log, in a CSV
// of the GPUs and in copies of /proc belongs together. Their times are on one clock since the import. The recordings
// outlive it; confined to one thread.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/recording_reader.h"

namespace hotlap {

class JoinedReader final : public RecordingReader {
 public:
  // The recordings of one run put together by node; each list is to be read as one. Recordings that were recorded, and
  // those that cannot be put together, stand alone: a trace beside another one, two that have the same series at the
  // same time.
  static std::vector<std::vector<RecordingReader*>> group(std::span<RecordingReader* const> recordings);

  explicit JoinedReader(std::vector<RecordingReader*> recordings);

  const RecordingInfo& info() const override { return info_; }
  bool is_closed() const override { return true; }
  Result<void> refresh() override { return {}; }
  const std::vector<StoredSeries>& series() const override { return series_; }
  Result<TimeRange> extent() const override { return extent_; }
  Result<void> read_samples(std::span<const SeriesHandle> wanted, TimeRange range,
                            const std::function<void(SeriesHandle, std::span<const SamplePoint>)>& visit) override;
  Result<void> read_tiers(std::span<const SeriesHandle> wanted, TimeRange range, std::size_t points_max,
                          const std::function<void(SeriesHandle, std::span<const TierPoint>)>& visit) override;
  Result<void> read_spans(std::span<const SpanKind> kinds, TimeRange range,
                          const std::function<void(std::span<const Span>)>& visit) override;
  Result<void> read_spans_since(std::uint64_t& cursor, std::span<const SpanKind> kinds,
                                const std::function<void(std::span<const Span>)>& visit) override;
  Result<std::vector<Event>> read_events(TimeRange range) override;
  Result<std::vector<Event>> read_events_since(std::uint64_t& cursor) override;
  Result<std::vector<ClockReading>> read_clock() override;
  Result<std::vector<ProcessInfo>> read_processes() override;
  Result<std::vector<Loss>> read_losses() override;
  Result<std::map<std::string, std::string>> read_attributes() override { return info_.attributes; }
  std::string name(std::uint32_t id) override;

 private:
  struct Part {
    RecordingReader* reader;
    std::uint32_t number;  // of the recording, from 0
    std::size_t first_series = 0;
  };
  // The series of `wanted` that are of one part, by its own handles.
  static std::vector<SeriesHandle> wanted_of(const Part& part, std::span<const SeriesHandle> wanted);
  std::uint32_t joined_name(const Part& part, std::uint32_t own);
  Span joined(const Part& part, Span span);

  std::vector<Part> parts_;
  RecordingInfo info_;
  std::vector<StoredSeries> series_;
  std::vector<std::pair<RecordingReader*, std::uint32_t>> names_;              // by id - 1: whose, and its own id
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> name_ids_;  // part and its own id → id
  TimeRange extent_;
};

}  // namespace hotlap
