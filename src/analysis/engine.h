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
#include "analysis/trace_phases.h"
#include "base/result.h"
#include "model/fact.h"
#include "model/losses.h"
#include "model/run.h"
#include "store/recording_reader.h"

namespace hotlap {

// The analysis of one recording. The reader and `run` outlive it.
class RecordingAnalysis {
 public:
  RecordingAnalysis(RecordingReader& reader, const RunInfo& run, std::span<const AnalyzerSpec* const> specs);
  RecordingAnalysis(const RecordingAnalysis&) = delete;
  RecordingAnalysis& operator=(const RecordingAnalysis&) = delete;

  // Reads what was committed since the last call. The reader has been refreshed by the caller.
  Result<void> advance();
  // After the last advance() of a recording that will not grow: gives out the step that is held back.
  void finish();

  const std::vector<std::unique_ptr<Analyzer>>& analyzers() const { return analyzers_; }
  const RunDescription& description() const { return description_; }
  const std::vector<ProcessInfo>& processes() const { return processes_; }
  std::vector<Loss> losses() const;
  // Whether this analyzer looks at operators or kernels: of a window of the profiler nothing else counts, since it is
  // recorded elsewhere, and where there are windows nothing else than they says what is inside steps.
  bool looks_inside(std::size_t analyzer) const;
  bool is_window() const { return is_profile_window(info_); }
  std::optional<std::int64_t> last_ns() const { return last_ns_; }  // of what was read

 private:
  struct Feed {
    std::int64_t last_ns = INT64_MIN;
    std::vector<std::size_t> analyzers;
  };
  void meet_series();
  Result<void> read_processes();
  Result<void> read_events();
  Result<void> read_samples();
  Result<void> read_spans();
  void give_spans(std::span<const Span> spans);
  void give_steps();

  RecordingReader& reader_;
  std::span<const AnalyzerSpec* const> specs_;
  RecordingInfo info_;
  std::vector<ProcessInfo> processes_;
  RunDescription description_;
  std::vector<std::unique_ptr<Analyzer>> analyzers_;
  std::vector<Step> steps_;  // of one call
  StepBuilder builder_;
  std::unique_ptr<TracePhases> phases_;      // of a recording that was imported from a trace
  std::vector<std::uint64_t> kinds_wanted_;  // by analyzer: bit of each SpanKind
  std::vector<Span> wanted_spans_;           // scratch
  std::map<std::uint32_t, Feed> feeds_;      // by series handle
  std::vector<SeriesHandle> wanted_;
  std::size_t series_met_ = 0;
  std::uint64_t span_cursor_ = 0;
  std::uint64_t event_cursor_ = 0;
  std::int64_t sample_cursor_ns_ = INT64_MIN;
  std::optional<std::int64_t> last_ns_;
};

// All recordings of a run together.
class RunAnalysis {
 public:
  // `run` outlives it. `specs`: all_analyzers(), or a test's own.
  RunAnalysis(const RunInfo& run, std::span<const AnalyzerSpec* const> specs) : run_(run), specs_(specs) {}

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

 private:
  const RunInfo& run_;
  std::span<const AnalyzerSpec* const> specs_;
  std::vector<std::pair<RecordingReader*, std::unique_ptr<RecordingAnalysis>>> recordings_;
  std::vector<Error> damaged_;
};

}  // namespace hotlap
