// Deletes runs: only folders of the home that hold a run.
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <map>
#include <ostream>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/shown.h"
#include "config/config.h"
#include "store/run_folder.h"
#include "view/run_document.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFlags{
    FlagSpec{.name = "--dry-run", .help = "say what would be deleted, delete nothing"},
    FlagSpec{.name = "--force", .help = "also a run that is still recorded"},
    FlagSpec{.name = "--old", .help = "also all finished runs that ended longer ago than the configuration's keep"},
    FlagSpec{.name = "--older-than",
             .type = FlagType::kDuration,
             .placeholder = "30d",
             .help = "also all finished runs that ended longer ago"},
};
constexpr std::array kPositionals{
    PositionalSpec{.name = "RUN",
                   .help = "ids, starts of ids, names (the newest of that name) or paths",
                   .is_repeated = true,
                   .names_runs = true},
};

struct Wish {
  bool is_dry_run;
  bool is_forced;
};

// The folder must lie directly in the home's runs, be a real folder and hold a run: nothing else is ever deleted.
Result<void> check_deletable(const fs::path& home, const RunFolder& folder) {
  const fs::path& path = folder.path();
  std::error_code failed;
  const fs::path parent = fs::canonical(path.parent_path(), failed);
  const fs::path runs = failed ? fs::path() : fs::canonical(home / "runs", failed);
  if (failed || parent != runs) {
    return Error{ErrorCode::kInvalidInput,
                 format("{} is not in {}: delete it by hand if you mean it", path.string(), (home / "runs").string())};
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno_error(path.string(), errno);
  if (!S_ISDIR(info.st_mode)) {
    return Error{ErrorCode::kInvalidInput,
                 format("{} is a link, not the run itself: delete it by hand if you mean it", path.string())};
  }
  if (::lstat((path / "run.json").c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kInvalidInput, format("{} holds no run.json: it is left alone", path.string())};
  }
  return {};
}

Result<void> delete_run(const fs::path& home, const RunFolder& folder, const Wish& wish, Streams& streams) {
  HOTLAP_TRY(check_deletable(home, folder));
  const std::int64_t now_ns = system_clock().read().wall_ns;
  const RunSummary run = summarize_run(folder, now_ns);
  const std::string what =
      format("{} {} ({}, {}, {})", one_line(run.info.id), one_line(run.info.name), shown_status(run.status, run.info),
             shown_wall_time(run.info.start_wall_ns), format_bytes(static_cast<double>(run.bytes)));
  if (run.status == RunStatus::kRunning && !wish.is_forced) {
    return Error{ErrorCode::kInvalidInput, format("{} is still recorded; --force deletes it all the same", what)};
  }
  if (wish.is_dry_run) {
    streams.out << "would delete " << what << '\n';
    return {};
  }
  HOTLAP_TRY(folder.remove());
  streams.out << "deleted " << what << '\n';
  return {};
}

// Finished runs that ended before `age_ns` ago. A run whose end was not seen ended when it was last written.
std::vector<RunFolder> old_runs(const fs::path& home, std::int64_t age_ns) {
  const std::int64_t now_ns = system_clock().read().wall_ns;
  std::vector<RunFolder> old;
  for (RunFolder& folder : RunFolder::list(home, nullptr)) {
    const RunSummary run = summarize_run(folder, now_ns);
    if (run.status == RunStatus::kRunning || run.info.start_wall_ns < 0 || !run.duration_ns) continue;
    if (now_ns - (run.info.start_wall_ns + *run.duration_ns) > age_ns) old.push_back(std::move(folder));
  }
  return old;
}

Result<std::optional<std::int64_t>> wished_age(const Args& args, const fs::path& home) {
  if (args.has("--older-than")) return args.duration_ns("--older-than");
  if (!args.has("--old")) return std::optional<std::int64_t>();
  std::error_code unknown;
  HOTLAP_TRY_ASSIGN(const Config config,
                    load_config({.home = home, .working_directory = fs::current_path(unknown), .file = {}}));
  if (config.keep_ns) return config.keep_ns;
  return Error{ErrorCode::kInvalidInput, "--old: no configuration sets keep; use --older-than 30d"};
}

Result<int> run(const Args& args, Streams& streams) {
  HOTLAP_TRY_ASSIGN(const fs::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const std::optional<std::int64_t> age_ns, wished_age(args, home));
  const std::vector<std::string>& named = args.positional("RUN");
  if (named.empty() && !age_ns) return Error{ErrorCode::kInvalidInput, "RUN is missing, as in: hotlap rm last"};
  const Wish wish{.is_dry_run = args.has("--dry-run"), .is_forced = args.has("--force")};

  int code = kExitSuccess;
  const auto complain = [&](const Error& error) {
    streams.err << "hotlap rm: " << one_line(error.message) << '\n';
    code = kExitFailed;
  };
  // All names are looked up before anything is deleted: "last" twice must not delete two runs.
  std::map<fs::path, RunFolder> wanted;  // by canonical path
  const auto want = [&](RunFolder folder) {
    std::error_code unknown;
    wanted.emplace(fs::weakly_canonical(folder.path(), unknown), std::move(folder));
  };
  if (age_ns) {
    for (RunFolder& folder : old_runs(home, *age_ns)) want(std::move(folder));
  }
  for (const std::string& name : named) {
    if (fs::path(name).extension() == ".hotlap") {
      complain({ErrorCode::kInvalidInput, format("{}: is a recording; name the run to delete all of it", name)});
      continue;
    }
    Result<RunFolder> folder = RunFolder::find(home, name);
    if (folder.ok()) {
      want(std::move(folder).value());
    } else {
      complain(folder.error());
    }
  }
  for (const auto& [path, folder] : wanted) {
    const Result<void> deleted = delete_run(home, folder, wish, streams);
    if (!deleted.ok()) complain(deleted.error());
  }
  if (wanted.empty() && code == kExitSuccess) streams.err << "hotlap rm: no run is that old\n";
  return code;
}

}  // namespace

extern constinit const CommandSpec command_rm{
    .name = "rm",
    .summary = "Delete runs.",
    .example = "hotlap rm --older-than 30d --dry-run",
    .help =
        "Deletes without asking, but only runs of hotlap's home, never what is reached through a link, and no run "
        "that is still recorded. When one of several cannot be deleted the others are, and the exit code is 1.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
