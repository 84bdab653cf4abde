#pragma once
// Feeds the analyzers from a run's recordings. Each recording keeps a cursor, so that a live run is read on and a
// finished one is read once, by the same code and with the same facts: what an analyzer sees of one series, or of
// the spans, comes in the same order however the reading is cut.
//
// Confined to one thread. Bounded memory whatever the length of the run: samples are read in windows, analyzers are
// bounded by contract.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/step_builder.h"
#include "analysis/step_table.h"
#include "analysis/thinning.h"
#include "analysis/trace_phases.h"
#include "base/result.h"
#include "model/fact.h"
#include "model/losses.h"
#include "model/run.h"
#include "store/recording_reader.h"

namespace hotlap {

// How closely the samples of recordings were looked at.
struct Resolution {
  std::int64_t full_ns = 0;     // time of which every sample was read
  std::int64_t minutes_ns = 0;  // time of which means, extremes and sums of minutes were read, for all but few series
};

// The analysis of one recording. The reader and `run` outlive it.
class RecordingAnalysis {
 public:
  RecordingAnalysis(RecordingReader& reader, const RunInfo& run, std::span<const AnalyzerSpec* const> specs,
                    const ThinningLimits& limits);
  RecordingAnalysis(const RecordingAnalysis&) = delete;
  RecordingAnalysis& operator=(const RecordingAnalysis&) = delete;

  // Reads what was committed since the last call. The reader has been refreshed by the caller. Where the first call
  // finds a long recording with many samples, most of it is read by minutes (analysis/thinning.h).
  Result<void> advance();
  // After the last advance() of a recording that will not grow: gives out the step that is held back.
  void finish();

  const std::vector<std::unique_ptr<Analyzer>>& analyzers() const { return analyzers_; }
  const StepTable& steps() const { return table_; }
  const std::vector<ProcessInfo>& processes() const { return processes_; }
  std::vector<Loss> losses() const;
  // Whether this analyzer looks at operators or kernels: of a window of the profiler nothing else counts, since it is
  // recorded elsewhere, and where there are windows nothing else than they says what is inside steps.
  bool looks_inside(std::size_t analyzer) const;
  bool is_window() const { return is_profile_window(info_); }
  std::optional<std::int64_t> last_ns() const { return last_ns_; }  // of what was read
  const Resolution& resolution() const { return resolution_; }

 private:
  struct Feed {
    std::int64_t last_ns = INT64_MIN;
    bool is_side = false;
    std::vector<std::size_t> analyzers;
  };
  void meet_series();
  Result<void> read_processes();
  Result<void> read_events();
  Result<void> read_samples();
  Result<void> read_window(std::span<const SeriesHandle> wanted, TimeRange range);
  Result<void> read_minutes(TimeRange range);
  const StoredSeries& series_of(std::uint32_t handle) const { return reader_.series()[handle]; }
  Result<void> read_spans();
  void give_spans(std::span<const Span> spans);
  void give_steps();

  RecordingReader& reader_;
  std::span<const AnalyzerSpec* const> specs_;
  ThinningLimits limits_;
  RecordingInfo info_;
  std::vector<ProcessInfo> processes_;
  StepTable table_;
  StepTable no_steps_;
  SideSeries side_;
  RunDescription description_;
  RunDescription outside_description_;  // for analyzers that steps of a window are not for
  std::vector<std::unique_ptr<Analyzer>> analyzers_;
  std::vector<Step> steps_;  // of one call
  StepBuilder builder_;
  std::unique_ptr<TracePhases> phases_;      // of a recording that was imported from a trace
  std::vector<std::uint64_t> kinds_wanted_;  // by analyzer: bit of each SpanKind
  std::vector<Span> wanted_spans_;           // scratch
  std::map<std::uint32_t, Feed> feeds_;      // by series handle
  std::vector<SeriesHandle> wanted_;
  std::vector<SeriesHandle> wanted_in_full_;  // those of `wanted_` for which minutes do not suffice
  std::vector<SeriesHandle> wanted_by_minute_;
  std::size_t series_met_ = 0;
  std::uint64_t span_cursor_ = 0;
  std::uint64_t event_cursor_ = 0;
  std::int64_t sample_cursor_ns_ = INT64_MIN;
  std::optional<std::int64_t> last_ns_;
  Resolution resolution_;
};

// All recordings of a run together.
class RunAnalysis {
 public:
  // `run` outlives it. `specs`: all_analyzers(), or a test's own.
  RunAnalysis(const RunInfo& run, std::span<const AnalyzerSpec* const> specs, const ThinningLimits& limits = {})
      : run_(run), specs_(specs), limits_(limits) {}

  // Takes up recordings not seen before and reads on in all. A recording that cannot be read any more keeps what it
  // gave; the first such error is returned after the others were read.
  Result<void> advance(std::span<RecordingReader* const> recordings);
  // All errors of the last advance(), one of each recording that has one.
  const std::vector<Error>& damaged() const { return damaged_; }
  void finish();
  // The facts as they are now.
  FactTable facts() const;
  std::vector<Loss> losses() const;
  std::vector<ProcessInfo> processes() const;
  Resolution resolution() const;

 private:
  // The recordings that count for analyzers that look inside steps, or for the others.
  std::vector<const RecordingAnalysis*> counted(bool for_inside) const;

  const RunInfo& run_;
  std::span<const AnalyzerSpec* const> specs_;
  ThinningLimits limits_;
  std::vector<std::pair<RecordingReader*, std::unique_ptr<RecordingAnalysis>>> recordings_;
  std::vector<Error> damaged_;
};

}  // namespace hotlap
