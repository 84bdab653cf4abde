#include "view/run_document.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/host.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "record/control.h"
#include "record/identity.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kVerdictBytesMax = std::size_t{16} << 20U;
// Where nothing else tells: the recorder commits once a second; a machine that swaps may take longer.
constexpr std::int64_t kStillWrittenNs = 30 * kNsPerS;

bool is_this_node(const RunInfo& info) { return node_name(system_host()) == info.node; }

std::optional<std::int64_t> last_change_wall_ns(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return info.st_mtim.tv_sec * kNsPerS + info.st_mtim.tv_nsec;
}

// The newest change of a file of the run; absent when it has none.
std::optional<std::int64_t> last_write_wall_ns(const RunFolder& folder) {
  std::optional<std::int64_t> newest = last_change_wall_ns(folder.path() / "run.json");
  for (const fs::path& recording : folder.recordings()) {
    for (const std::string& name : {recording.string(), recording.string() + "-wal"}) {
      const auto changed = last_change_wall_ns(name);
      if (changed) newest = std::max(newest.value_or(*changed), *changed);
    }
  }
  return newest;
}

std::uint64_t bytes_on_disk(const fs::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512U : 0;
}

std::uint64_t bytes_of_run(const RunFolder& folder) {
  std::uint64_t bytes = 0;
  std::error_code failed;
  if (!fs::exists(folder.path() / "run.json", failed)) {  // a recording that lies alone in somebody's folder
    for (const fs::path& recording : folder.recordings()) bytes += bytes_on_disk(recording);
    return bytes;
  }
  for (const fs::path& root : {folder.path(), folder.stand_in()}) {
    fs::recursive_directory_iterator entry(root, fs::directory_options::skip_permission_denied, failed);
    while (!failed && entry != fs::recursive_directory_iterator()) {
      bytes += bytes_on_disk(entry->path());
      entry.increment(failed);
    }
  }
  return bytes;
}

void read_verdict(const fs::path& folder, RunSummary& out) {
  const Result<std::string> text = read_regular_file(folder / "verdict.json", kVerdictBytesMax);
  if (!text.ok()) return;
  const Result<JsonDocument> document = JsonDocument::parse(*text);
  if (!document.ok()) return;
  const JsonValue verdict = document->root()["verdict"];
  out.verdict_kind = verdict["kind"].text();
  if (const auto words = verdict["text"].text()) out.verdict_line = words->substr(0, words->find('\n'));
  out.steps = document->root()["steps"]["count"].integer();
}

}  // namespace

bool is_live_run(const RunFolder& folder, std::int64_t now_wall_ns) {
  const RunInfo& info = folder.info();
  if (info.status != RunStatus::kRunning) return false;
  if (is_this_node(info)) {
    if (is_job_alive(system_host(), info)) return true;
    // Names of machines are not always different; the number of a start of the kernel is.
    const bool is_this_machine = !info.boot_id.empty() && info.boot_id == boot_id(system_host());
    if (const auto is_recorded = has_recorder(folder.path()); is_this_machine && is_recorded) return *is_recorded;
  }
  const auto written = last_write_wall_ns(folder);
  return written && now_wall_ns - *written < std::max(kStillWrittenNs, 3 * info.interval_ns);
}

RunSummary summarize_run(const RunFolder& folder, std::int64_t now_wall_ns) {
  RunSummary run;
  run.info = folder.info();
  run.folder = folder.path();
  run.status = run.info.status;
  std::int64_t end_ns = run.info.end_wall_ns;
  if (run.status == RunStatus::kRunning) {
    const bool is_live = is_live_run(folder, now_wall_ns);
    if (!is_live) run.status = RunStatus::kUnknown;
    end_ns = is_live ? now_wall_ns : last_write_wall_ns(folder).value_or(-1);
  }
  if (run.info.start_wall_ns >= 0 && end_ns >= run.info.start_wall_ns)
    run.duration_ns = end_ns - run.info.start_wall_ns;
  run.bytes = bytes_of_run(folder);
  read_verdict(run.folder, run);
  return run;
}

void add_time_field(std::string_view name, std::int64_t ns, JsonWriter& json) {
  json.key(name);
  if (ns < 0) {
    json.null();
  } else {
    json.value(format("{}", ns));
  }
}

void add_verdict(const RunSummary& run, JsonWriter& json) {
  json.key("verdict");
  if (!run.verdict_kind && !run.verdict_line) {
    json.null();
    return;
  }
  json.begin_object().field("kind", run.verdict_kind).field("text", run.verdict_line).end_object();
}

void add_run_members(const RunSummary& run, JsonWriter& json) {
  const RunInfo& info = run.info;
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); };
  json.field("id", info.id).field("name", info.name).field("status", to_string(run.status));
  json.field("folder", run.folder.string()).field("node", info.node);
  json.key("command").begin_array();
  for (const std::string& word : info.command) json.value(word);
  json.end_array();
  add_time_field("start_unix_ns", info.start_wall_ns, json);
  add_time_field("end_unix_ns", info.end_wall_ns, json);
  json.field("duration_s", run.duration_ns ? std::optional(seconds(*run.duration_ns)) : std::nullopt);
  json.field("exit_code", info.exit_code ? std::optional<std::int64_t>(*info.exit_code) : std::nullopt);
  json.field("exit_signal", info.exit_signal ? std::optional<std::int64_t>(*info.exit_signal) : std::nullopt);
  json.field("attempt", int{info.attempt});
  json.field("interval_s", info.interval_ns > 0 ? std::optional(seconds(info.interval_ns)) : std::nullopt);
  json.field("bytes", run.bytes).field("steps", run.steps);
}

std::string run_list_json(std::span<const RunSummary> runs, std::size_t unreadable) {
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("schema", 1).key("runs").begin_array();
  for (const RunSummary& run : runs) {
    json.begin_object();
    add_run_members(run, json);
    add_verdict(run, json);
    json.end_object();
  }
  json.end_array().field("unreadable", std::uint64_t{unreadable}).end_object();
  return json.take();
}

}  // namespace hotlap
