#include "store/run_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "store/home.h"
#include "store/recording_reader.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunJsonBytesMax = std::size_t{4} << 20U;
constexpr std::size_t kNamedMax = 5;  // runs that a message lists

bool is_recording(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.extension() == ".hotlap" && name != "derived.hotlap" && !name.starts_with('.');
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string label(const RunFolder& run) {
  return run.info().name.empty() ? run.info().id : format("{} ({})", run.info().id, strip_control(run.info().name));
}

std::string labels(const std::vector<RunFolder>& runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.size() && i < kNamedMax; ++i) text += (i > 0 ? ", " : "") + label(runs[i]);
  if (runs.size() > kNamedMax) text += format(" and {} more", runs.size() - kNamedMax);
  return text;
}

std::string nearest_name(std::string_view typed, const std::vector<RunFolder>& runs) {
  std::vector<std::string_view> names;
  for (const RunFolder& run : runs) names.emplace_back(run.info().name);
  return strip_control(nearest_text(typed, names));
}

// Ids of the folders in <home>/runs, newest first.
std::vector<std::string> run_ids(const fs::path& home) {
  std::vector<std::string> ids;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(home / "runs", failed)) {
    const std::string name = entry.path().filename().string();
    if (is_ulid(name)) ids.push_back(name);
  }
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

// What lies there is no recording, whatever it is called: the request was right.
Result<void> check_is_file(const fs::path& path) {
  Result<void> checked = check_regular_file(path);
  if (checked.ok() || checked.error().code != ErrorCode::kInvalidInput) return checked;
  return Error{ErrorCode::kNotFound, std::move(checked).error().message};
}

}  // namespace

Result<RunFolder> RunFolder::create(const fs::path& home, const RunInfo& info) {
  if (!is_ulid(info.id)) return Error{ErrorCode::kInternal, format("\"{}\" is not the id of a run", info.id)};
  RunFolder run;
  run.path_ = home / "runs" / info.id;
  if (Result<void> made = make_private_folders(run.path_); !made.ok()) {
    Error error = std::move(made).error();
    error.message += ": set HOTLAP_HOME to a folder where you may write";
    return error;
  }
  if (Result<void> described = run.update(info); !described.ok()) {
    std::error_code stays;
    fs::remove(run.path_, stays);  // a folder that says nothing is no run
    return std::move(described).error();
  }
  return run;
}

Result<RunFolder> RunFolder::open(const fs::path& folder) {
  RunFolder run;
  run.path_ = folder;
  HOTLAP_TRY(run.reload());
  return run;
}

Result<void> RunFolder::reload() {
  if (!only_.empty()) return {};
  const std::string file = (path_ / "run.json").string();
  HOTLAP_TRY_ASSIGN(const std::string text, read_regular_file(file, kRunJsonBytesMax));
  Result<RunInfo> info = run_info_from_json(text);
  if (!info.ok()) return std::move(info).error().with_context(file);
  info_ = std::move(info).value();
  return {};
}

Result<void> RunFolder::update(const RunInfo& info) {
  HOTLAP_TRY(write_private_file(path_ / "run.json", run_info_to_json(info)));
  info_ = info;
  return {};
}

Result<void> RunFolder::write_text(std::string_view name, std::string_view text) const {
  return write_private_file(path_ / name, text);
}

Result<void> RunFolder::remove() const {
  // The folder last: while its run.json is there, the other is found.
  for (const fs::path& folder : {stand_in(), path_}) {
    std::error_code failed;
    if (!folder.empty()) fs::remove_all(folder, failed);
    if (failed) return errno_error(format("cannot delete {}", folder.string()), failed.value());
  }
  return {};
}

fs::path RunFolder::stand_in() const {
  return is_stand_in(info_.recording_folder, info_.id) ? fs::path(info_.recording_folder) : fs::path();
}

std::vector<fs::path> RunFolder::recordings() const {
  if (!only_.empty()) return {only_};
  std::vector<fs::path> found;
  for (const fs::path& folder : {path_, path_ / "trace"}) {
    const auto begin = static_cast<std::ptrdiff_t>(found.size());
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
      if (is_recording(entry.path())) found.push_back(entry.path());
    }
    std::sort(found.begin() + begin, found.end());
  }
  // What is recorded there is newer than its copy here.
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(stand_in(), failed)) {
    if (!is_recording(entry.path())) continue;
    const auto same = [&](const fs::path& copy) { return copy.filename() == entry.path().filename(); };
    const auto copy = std::find_if(found.begin(), found.end(), same);
    copy == found.end() ? static_cast<void>(found.push_back(entry.path())) : static_cast<void>(*copy = entry.path());
  }
  return found;
}

std::vector<RunFolder> RunFolder::list(const fs::path& home, std::size_t* unreadable) {
  std::vector<RunFolder> runs;
  for (const std::string& id : run_ids(home)) {
    Result<RunFolder> run = open(home / "runs" / id);
    if (run.ok()) {
      runs.push_back(std::move(run).value());
    } else if (unreadable != nullptr) {
      ++*unreadable;
    }
  }
  const auto newest_first = [](const RunFolder& a, const RunFolder& b) {
    return std::tie(a.info_.start_wall_ns, a.info_.id) > std::tie(b.info_.start_wall_ns, b.info_.id);
  };
  std::sort(runs.begin(), runs.end(), newest_first);
  return runs;
}

Result<RunFolder> RunFolder::find(const fs::path& home, std::string_view run_untrusted) {
  const fs::path as_path(run_untrusted);
  std::error_code ignored;
  const bool is_folder = fs::is_directory(as_path, ignored);
  if (as_path.extension() == ".hotlap" && !is_folder) {
    HOTLAP_TRY(check_is_file(as_path));
    const fs::path folder = fs::absolute(as_path).parent_path();
    for (const fs::path& candidate : {folder, folder.parent_path()}) {
      // A run.json that is damaged, or somebody else's, does not hide a recording that can be read.
      if (Result<RunFolder> run = open(candidate); run.ok()) return run;
    }
    HOTLAP_TRY_ASSIGN(const std::unique_ptr<RecordingReader> recording, RecordingReader::open(as_path));
    RunFolder run;
    run.path_ = folder;
    run.only_ = fs::absolute(as_path);
    run.info_.id = recording->info().run_id;
    run.info_.name = as_path.stem().string();
    run.info_.node = recording->info().node;
    run.info_.hotlap_version = recording->info().hotlap_version;
    run.info_.interval_ns = recording->info().interval_ns;
    // How a job that was recorded ended is in its run.json alone; what was imported is whole once it is closed.
    if (recording->is_closed()) {
      run.info_.status =
          recording->info().attributes.contains("source.file") ? RunStatus::kFinished : RunStatus::kEnded;
    }
    return run;
  }
  const bool is_path = run_untrusted.find('/') != std::string_view::npos || as_path.extension() == ".hotlap";
  if (is_path || run_untrusted == "." || run_untrusted == "..") {
    const fs::path folder = fs::absolute(as_path);
    std::error_code hidden;
    if (!fs::exists(folder / "run.json", hidden) && !hidden && fs::exists(folder, ignored)) {
      return Error{ErrorCode::kNotFound,
                   format("{}: no run is here (no run.json); a run is its folder or a .hotlap file",
                          strip_control(folder.string()))};
    }
    return open(folder);
  }
  const std::vector<RunFolder> runs = list(home, nullptr);
  if (run_untrusted == "last" && !runs.empty()) return runs.front();
  const std::string id = upper(run_untrusted);
  for (const RunFolder& run : runs) {
    if (run.info_.id == id) return run;
  }
  for (const RunFolder& run : runs) {
    if (!run_untrusted.empty() && run.info_.name == run_untrusted) return run;
  }
  std::vector<RunFolder> candidates;
  for (const RunFolder& run : runs) {
    if (!id.empty() && run.info_.id.starts_with(id)) candidates.push_back(run);
  }
  if (candidates.size() == 1) return candidates.front();
  const std::string asked = strip_control(run_untrusted);
  if (candidates.size() > 1) {
    return Error{ErrorCode::kInvalidInput, format("\"{}\" may be any of {} runs: {}: type more of the id", asked,
                                                  candidates.size(), labels(candidates))};
  }
  if (fs::exists(as_path / "run.json", ignored)) return open(fs::absolute(as_path));
  // A folder that is there but cannot be read deserves its own reason.
  if (is_ulid(id) && fs::exists(home / "runs" / id, ignored)) return open(home / "runs" / id);
  HOTLAP_TRY(check_home(home));
  if (runs.empty()) {
    return Error{ErrorCode::kNotFound, format("no run \"{}\": nothing is recorded in {} yet; `hotlap run -- COMMAND` "
                                              "records one",
                                              asked, home.string())};
  }
  const std::string nearest = nearest_name(run_untrusted, runs);
  return Error{ErrorCode::kNotFound, format("no run \"{}\" in {}; {}there are: {}", asked, home.string(),
                                            nearest.empty() ? "" : format("did you mean {}? ", nearest), labels(runs))};
}

}  // namespace hotlap
