#pragma once
// One run as a list shows it, and the JSON of that list: the same for the command line, the API and tests.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/json_writer.h"
#include "base/result.h"
#include "model/run.h"
#include "store/run_folder.h"

namespace hotlap {

struct RunSummary {
  RunInfo info;
  std::filesystem::path folder;
  // info.status, but kUnknown where run.json says "running" and nothing records any more: the end was not seen.
  RunStatus status = RunStatus::kUnknown;
  std::optional<std::int64_t> duration_ns;  // so far, while it runs
  std::uint64_t bytes = 0;                  // of the folder
  // From verdict.json; absent before the first verdict.
  std::optional<std::int64_t> steps;
  std::optional<std::string> verdict_kind;
  std::optional<std::string> verdict_line;  // the first line of its text
};

RunSummary summarize_run(const RunFolder& folder, std::int64_t now_wall_ns);

// True while something still records into the run: rm leaves it alone.
bool is_live_run(const RunFolder& folder, std::int64_t now_wall_ns);

// {"schema": 1, "runs": […], "unreadable": 0}
std::string run_list_json(std::span<const RunSummary> runs, std::size_t unreadable);

// The members that a run has in every document, into an open object.
void add_run_members(const RunSummary& run, JsonWriter& json);

// {"text": …, "kind": …}, or null before the first verdict.
void add_verdict(const RunSummary& run, JsonWriter& json);

// Unix time and monotonic time are decimal strings: a double loses nanoseconds. Below 0 (not known): null.
void add_time_field(std::string_view name, std::int64_t ns, JsonWriter& json);

}  // namespace hotlap
