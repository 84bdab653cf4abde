// Where runs are kept, and the folder for rings.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/doctor/doctor.h"
#include "cli/shown.h"
#include "record/identity.h"
#include "record/runtime_folder.h"
#include "store/home.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHome = "home";
constexpr std::string_view kSetHome = "export HOTLAP_HOME=/a/folder/where/you/may/write";

Check made(std::string name, Health health, std::string text, std::string_view mend = {}) {
  return {.area = kHome, .name = std::move(name), .health = health, .text = std::move(text), .mend = std::string(mend)};
}

// Folders above and with `path` that are not there yet: those that doctor makes and takes away again.
std::vector<fs::path> absent_folders(fs::path path) {
  std::vector<fs::path> absent;
  std::error_code failed;
  for (; path.has_relative_path() && !fs::exists(path, failed); path = path.parent_path()) absent.push_back(path);
  return absent;  // deepest first
}

// A recording written and read back in `folder`, as a run's would be.
Result<void> try_recording(const fs::path& folder) {
  constexpr MetricDesc kMetric{.name = "doctor.probe", .unit = "1", .help = "A value that is read back."};
  const fs::path file = folder / "probe.hotlap";
  const std::string id = new_ulid(system_clock());
  HOTLAP_TRY_ASSIGN(const std::unique_ptr<RecordingWriter> writer,
                    RecordingWriter::create(file, {.id = id, .run_id = id, .interval_ns = kNsPerS}, {}));
  HOTLAP_TRY_ASSIGN(const SeriesHandle series, writer->add_series(kMetric, ""));
  const Sample sample{.series = series, .value = Value::of(42.0)};
  writer->add_tick(1, std::span(&sample, 1));
  HOTLAP_TRY(writer->commit());
  HOTLAP_TRY(writer->close());
  HOTLAP_TRY_ASSIGN(const std::unique_ptr<RecordingReader> reader, RecordingReader::open(file));
  std::size_t seen = 0;
  for (const StoredSeries& stored : reader->series()) {
    HOTLAP_TRY(reader->read_samples(std::span(&stored.handle, 1), {},
                                    [&](SeriesHandle, std::span<const SamplePoint> points) { seen += points.size(); }));
  }
  if (seen == 1) return {};
  return Error{ErrorCode::kCorrupt, format("{}: what was written does not come back", file.string())};
}

void check_writing(const fs::path& home, Checks& out) {
  const std::vector<fs::path> absent = absent_folders(home);
  const std::string id = "doctor-" + new_ulid(system_clock());
  const fs::path folder = home / id;
  Result<void> done = make_private_folders(folder);
  std::string where = "a recording was written and read back";
  fs::path stand_in;
  if (done.ok()) {
    const Result<RecordingPlace> place = recording_place(folder, id);
    if (place.ok()) {
      if (place->is_stand_in) stand_in = place->folder;
      if (place->is_stand_in) where += format(" in {}: {}", place->folder.string(), place->why);
      done = try_recording(place->folder);
    } else {
      done = place.error();
    }
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!stand_in.empty()) fs::remove_all(stand_in, ignored);
  for (const fs::path& made_folder : absent) ::rmdir(made_folder.c_str());  // only what is empty
  out.push_back(done.ok() ? made("writing", Health::kGood, where)
                          : made("writing", Health::kBroken, done.error().message, kSetHome));
}

void check_filesystem(const fs::path& home, Checks& out) {
  switch (filesystem_kind(home)) {
    case FilesystemKind::kLocal: return;
    case FilesystemKind::kNetwork:
      out.push_back(made("file system", Health::kNote,
                         "a network file system: runs are recorded on local disk and moved here at intervals"));
      return;
    case FilesystemKind::kMemory:
      out.push_back(made("file system", Health::kWarning, "lies in memory: runs are gone when the machine restarts",
                         "export HOTLAP_HOME=/a/folder/on/a/disk"));
      return;
    case FilesystemKind::kOverlay:
      out.push_back(made("file system", Health::kWarning, "belongs to the container: runs are gone with it",
                         "mount a volume and set HOTLAP_HOME to a folder on it"));
      return;
  }
}

void check_space(const Host& host, const fs::path& home, Checks& out) {
  constexpr std::uint64_t kFloorBytes = std::uint64_t{64} << 20U;  // WriterOptions::free_bytes_floor
  constexpr std::uint64_t kLowBytes = std::uint64_t{1} << 30U;
  const std::vector<fs::path> absent = absent_folders(home);
  const fs::path there = absent.empty() ? home : absent.back().parent_path();
  const Result<FilesystemUsage> usage = host.filesystem_usage(there.string());
  if (!usage.ok()) return;
  const Health health = usage->available_bytes < kFloorBytes ? Health::kBroken
                        : usage->available_bytes < kLowBytes ? Health::kWarning
                                                             : Health::kGood;
  out.push_back(made("space", health, format("{} free", format_bytes(static_cast<double>(usage->available_bytes))),
                     health == Health::kGood ? "" : "hotlap rm --older-than 30d, or set HOTLAP_HOME elsewhere"));
}

void check_mode(const fs::path& home, Checks& out) {
  struct stat found {};
  if (::stat(home.c_str(), &found) != 0) return;
  if ((found.st_mode & 0077U) != 0) {
    out.push_back(made("privacy", Health::kWarning, format("others may enter (mode {:o})", found.st_mode & 07777U),
                       format("chmod 700 {}", shown_command({home.string()}))));
  }
  if (found.st_uid != ::geteuid()) {
    out.push_back(made("owner", Health::kNote, format("belongs to user {}, you are {}", found.st_uid, ::geteuid())));
  }
}

void check_runs(const Host& host, const fs::path& home, Checks& out) {
  constexpr std::size_t kNamedMax = 5;
  std::size_t readable = 0;
  std::vector<std::string> damaged;
  for (const std::string& name : host.list((home / "runs").string()).value_or({})) {
    if (!is_ulid(name)) continue;
    const Result<RunFolder> run = RunFolder::open(home / "runs" / name);
    if (run.ok()) {
      ++readable;
    } else {
      damaged.push_back(run.error().message);
    }
  }
  out.push_back(made("runs", Health::kGood, format("{}", readable)));
  for (std::size_t i = 0; i < std::min(damaged.size(), kNamedMax); ++i) {
    out.push_back(made("run", Health::kWarning, damaged[i], "delete the folder if it holds nothing of worth"));
  }
  if (damaged.size() > kNamedMax) {
    out.push_back(made("run", Health::kWarning, format("and {} more that cannot be read", damaged.size() - kNamedMax)));
  }
}

void check_runtime(Checks& out) {
  const Result<fs::path> runtime = runtime_home();
  out.push_back(runtime.ok() ? made("rings", Health::kGood, runtime->string())
                             : made("rings", Health::kBroken, "no hook: " + runtime.error().message,
                                    "export TMPDIR=/a/local/folder/where/you/may/write"));
}

}  // namespace

void check_home(const Host& host, Checks& out) {
  const Result<fs::path> home = hotlap_home();
  if (!home.ok()) {
    out.push_back(made("folder", Health::kBroken, home.error().message, kSetHome));
    check_runtime(out);
    return;
  }
  const Result<void> usable = check_home(*home);
  if (!usable.ok()) {
    out.push_back(made("folder", Health::kBroken, usable.error().message, kSetHome));
    check_runtime(out);
    return;
  }
  std::error_code ignored;
  out.push_back(made("folder", Health::kGood, home->string() + (fs::exists(*home, ignored) ? "" : " (not made yet)")));
  check_filesystem(*home, out);
  check_space(host, *home, out);
  check_mode(*home, out);
  check_writing(*home, out);
  check_runs(host, *home, out);
  check_runtime(out);
}

}  // namespace hotlap
