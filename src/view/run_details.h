#pragma once
// What a run recorded, as `show` and the API tell it: processes, series, phases, events, losses, files. Reads every
// recording once; for long ones it counts from the tiers instead of decoding each sample.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/losses.h"
#include "model/process.h"
#include "model/span.h"
#include "store/run_reader.h"
#include "view/run_document.h"

namespace hotlap {

// The series of one collector: those whose metric names share the part before the first dot.
struct SeriesGroup {
  std::string collector;
  std::uint64_t series = 0;
  std::uint64_t values = 0;
  std::uint64_t missing = 0;
  std::map<std::string, std::uint64_t> missing_by_reason;  // of the samples that were looked at for it
  std::optional<double> samples_per_s;                     // of its fastest series
};

struct PhaseStretch {
  std::string name;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

struct SpanCount {
  SpanKind kind;
  std::uint64_t count = 0;
};

struct RecordingDetails {
  std::filesystem::path file;
  std::uint64_t bytes = 0;
  RecordingInfo info;
  bool is_closed = false;
  std::optional<TimeRange> extent;
  bool is_every_sample_read = true;  // false: reasons of missing values are those of the last minutes
  std::vector<SeriesGroup> groups;   // sorted by name
  std::vector<SpanCount> spans;      // by kind; empty when there are none or too many to count
  std::vector<ProcessInfo> processes;
  std::vector<PhaseStretch> phases;
  std::vector<Event> events;
  std::vector<Loss> losses;
  std::map<std::string, std::string> attributes;
};

struct RunDetails {
  RunSummary summary;
  std::vector<RecordingDetails> recordings;
  std::vector<std::string> problems;  // recordings, or parts of them, that could not be read
};

// What cannot be read is named in `problems`; the rest is there.
RunDetails read_run_details(const RunFolder& folder, std::int64_t now_wall_ns);
std::string run_details_json(const RunDetails& details);

}  // namespace hotlap
