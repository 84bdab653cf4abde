#pragma once
// The analyzer contract: bounded state, fed in time order, the same code live and offline, mergeable over recordings.
// Analyzers make facts; rules see nothing else.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "analysis/side_series.h"
#include "analysis/step_table.h"
#include "model/event.h"
#include "model/fact.h"
#include "model/process.h"
#include "model/run.h"
#include "model/span.h"
#include "model/step.h"
#include "store/recording_reader.h"

namespace hotlap {

// What stands still, or only grows, while a run is analysed. Valid for the analyzer's whole life. An analyzer that
// others are merged into is of no recording: its node, attributes, processes and names are empty.
struct RunDescription {
  const RunInfo* run = nullptr;
  const RecordingInfo* recording = nullptr;
  const StepTable* steps = nullptr;                   // all steps that were given out so far; never null
  const SideSeries* side = nullptr;                   // how the machine did meanwhile; null where others are merged
  std::span<const ProcessInfo> processes;             // replaced through on_processes when it grows
  std::function<std::string(std::uint32_t)> name_of;  // text of a span's name; empty: unknown
};

// Confined to the analysis thread. State is bounded whatever the length of the run.
class Analyzer {
 public:
  virtual ~Analyzer() = default;
  virtual void on_processes(std::span<const ProcessInfo>) {}
  // Samples of one series the spec asked for; successive calls continue in time.
  virtual void on_samples(const StoredSeries&, std::span<const SamplePoint>) {}
  // Instead of samples, where a long recording is not looked at more closely: points of at most a minute of one such
  // series. Samples may follow and precede them, never of the same time. Only if the spec takes_minutes.
  virtual void on_minutes(const StoredSeries&, std::span<const TierPoint>) {}
  virtual void on_spans(std::span<const Span>) {}
  virtual void on_step(const Step&) {}
  virtual void on_event(const Event&) {}
  // Takes in what `other`, of the same spec, saw of a recording of the run. `other` outlives this.
  virtual void merge(const Analyzer& other) = 0;
  // Adds the facts as they are now; may be called again and again while live.
  virtual void snapshot(FactTable& out) const = 0;
};

struct AnalyzerSpec {
  std::string_view id;  // the file's name
  std::string_view summary;
  std::span<const FactSchema> produces;
  std::span<const std::string_view> metrics;  // metric names it is fed; "process." takes all with that prefix
  std::span<const SpanKind> spans;
  bool takes_minutes = false;
  std::span<const std::string_view> in_full{};  // of `metrics`: those that it needs every sample of all the same
  std::uint32_t version = 1;                    // raised when facts change meaning: derived data is made anew
  std::unique_ptr<Analyzer> (*open)(const RunDescription& run) = nullptr;
};

}  // namespace hotlap
