#pragma once
// Identity of recordings and runs, and what run.json says.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

// ULID: 48 bits of Unix milliseconds and 80 random bits, 26 characters of Crockford's base 32; sorts by time.
std::string make_ulid(std::int64_t wall_ns, std::uint64_t random_high, std::uint64_t random_low);
bool is_ulid(std::string_view text);

// run.json "status". kEnded: it is over, but nobody could tell how (a process that we did not start). kUnknown: not
// even its end was seen.
enum class RunStatus : std::uint8_t { kRunning, kFinished, kFailed, kKilled, kEnded, kUnknown };
std::string_view to_string(RunStatus status);
std::optional<RunStatus> run_status_from(std::string_view text);

// Price of the machine per hour, and where the figure comes from.
struct Price {
  double per_hour = 0;
  std::string currency = "USD";
  std::string source;  // "--price", "catalogue aws-ec2 g5.2xlarge us-east-1 2026-07-20"
  friend bool operator==(const Price&, const Price&) = default;
};

// One run folder's run.json. Written when the run starts, at phase changes and at the end, by atomic replacement.
struct RunInfo {
  std::string id;    // ULID
  std::string name;  // --name, else the script's
  RunStatus status = RunStatus::kUnknown;
  std::vector<std::string> command;  // redacted
  std::string script;                // what "the same script" means: absolute path of the program or -m module
  std::string working_directory;
  std::string node;
  std::string hotlap_version;
  std::int64_t start_wall_ns = -1;  // Unix time
  std::int64_t end_wall_ns = -1;    // -1: running, or not known
  std::int64_t interval_ns = 0;
  std::optional<std::int32_t> exit_code;  // of the job
  std::optional<std::int32_t> exit_signal;
  std::int32_t job_pid = 0;
  // With these the pid means one process for ever: numbers are used again, most of all after a new start of a machine.
  std::optional<std::int64_t> job_start_ticks;  // /proc/PID/stat field 22
  std::string boot_id;                          // empty: not known
  std::int32_t attempt = 1;
  std::map<std::string, std::string> join_keys;    // blueprint 6
  std::map<std::string, std::string> environment;  // by allow-list
  std::optional<Price> price;
  // While the run folder lies on a network file system: the local folder in which the recording is made. Empty: in the
  // run folder itself.
  std::string recording_folder;
  friend bool operator==(const RunInfo&, const RunInfo&) = default;
};

// Inside a .hotlap file: what belongs to one recorder on one node.
// Attribute of a recording that was imported from what our own hook saw of some steps: they are recorded elsewhere too.
inline constexpr std::string_view kProfileWindowAttribute = "profile.window";
// Attribute of a recording that was imported with others: the import brought their times to one clock.
inline constexpr std::string_view kClockAxisAttribute = "clock.axis";
inline constexpr std::string_view kAxisOfTheImport = "of the import";

struct RecordingInfo {
  std::string id;  // ULID
  std::string run_id;
  std::string node;
  std::string hotlap_version;
  std::string boot_id;
  std::int64_t interval_ns = 0;
  std::map<std::string, std::string> attributes;  // host facts: cpu.model, cpu.count, memory.bytes, kernel …
  friend bool operator==(const RecordingInfo&, const RecordingInfo&) = default;
};

inline bool has_axis_of_import(const RecordingInfo& recording) {
  const auto axis = recording.attributes.find(std::string(kClockAxisAttribute));
  return axis != recording.attributes.end() && axis->second == kAxisOfTheImport;
}

inline bool is_profile_window(const RecordingInfo& recording) {
  return recording.attributes.contains(std::string(kProfileWindowAttribute));
}

}  // namespace hotlap
