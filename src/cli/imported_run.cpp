#include "cli/imported_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <set>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/shown.h"
#include "ingest/import.h"
#include "record/identity.h"
#include "store/home.h"
#include "store/import_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstProgressNs = kNsPerS;  // what is done sooner needs no bar
constexpr std::int64_t kProgressNs = kNsPerS / 5;

// Set by a signal: the import ends with the window under way.
volatile sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

// While it lives, SIGINT and SIGTERM end the import and not the program. A second one ends the program.
class InterruptWatch {
 public:
  InterruptWatch() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = &on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &interrupt_before_);
    ::sigaction(SIGTERM, &action, &terminate_before_);
  }
  ~InterruptWatch() {
    ::sigaction(SIGINT, &interrupt_before_, nullptr);
    ::sigaction(SIGTERM, &terminate_before_, nullptr);
  }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
};

// One line on the terminal that is written over: "a.json  43 %, 612 MB/s, 9 s left".
class ProgressLine {
 public:
  ProgressLine(Streams& streams, bool is_quiet)
      : err_(streams.err), is_shown_(streams.err_is_terminal && !is_quiet), begin_ns_(system_clock().mono_ns()) {}

  void file(const fs::path& path) {
    name_ = one_line(path.filename().string());
    begin_ns_ = system_clock().mono_ns();
  }

  void show(const ImportProgress& progress) {
    if (!is_shown_) return;
    const std::int64_t now_ns = system_clock().mono_ns();
    if (now_ns - begin_ns_ < kFirstProgressNs || now_ns - last_ns_ < kProgressNs) return;
    last_ns_ = now_ns;
    const double seconds = static_cast<double>(now_ns - begin_ns_) / static_cast<double>(kNsPerS);
    constexpr double kMegabyte = 1e6;
    std::string text =
        format("{}  {:.0f} MB/s", name_, static_cast<double>(progress.bytes_given) / seconds / kMegabyte);
    if (progress.file_bytes > 0 && progress.bytes_read > 0) {
      const double part =
          std::min(1.0, static_cast<double>(progress.bytes_read) / static_cast<double>(progress.file_bytes));
      text += format(", {:.0f} %, {:.0f} s left", 100 * part, seconds * (1 - part) / part);
    }
    err_ << "\r\x1B[K" << text;
    has_text_ = true;
  }

  void clear() {
    if (std::exchange(has_text_, false)) err_ << "\r\x1B[K";
  }

 private:
  std::ostream& err_;
  bool is_shown_;
  bool has_text_ = false;
  std::string name_;
  std::int64_t begin_ns_;
  std::int64_t last_ns_ = 0;
};

// Where a run's files agree on the clock the run has begin and end.
void set_times(const ImportWriter& writer, RunInfo& info) {
  if (!writer.is_absolute() || !writer.extent()) return;
  const TimeRange& extent = *writer.extent();
  info.start_wall_ns = info.start_wall_ns < 0 ? extent.from_ns : std::min(info.start_wall_ns, extent.from_ns);
  info.end_wall_ns = std::max(info.end_wall_ns, extent.to_ns);
}

}  // namespace

bool is_foreign(const fs::path& path) {
  std::error_code failed;
  if (path.extension() == ".hotlap") return false;
  if (fs::is_directory(path, failed)) {
    if (fs::exists(path / "run.json", failed)) return false;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, failed)) {
      if (entry.path().extension() == ".hotlap") return false;
    }
    return !failed;
  }
  return fs::exists(path, failed);
}

ImportedRun::ImportedRun(ImportedRun&& other) noexcept
    : folder_(std::move(other.folder_)),
      borrowed_(std::exchange(other.borrowed_, {})),
      files_(std::move(other.files_)),
      is_cancelled_(other.is_cancelled_) {}

ImportedRun& ImportedRun::operator=(ImportedRun&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(borrowed_, other.borrowed_);
  std::swap(files_, other.files_);
  std::swap(is_cancelled_, other.is_cancelled_);
  return *this;
}

ImportedRun::~ImportedRun() {
  std::error_code ignored;
  if (!borrowed_.empty()) fs::remove_all(borrowed_, ignored);
}

Result<ImportedRun> ImportedRun::keep(const fs::path& home, const ImportRequest& request, Streams& streams) {
  return import(home, request, streams);
}

Result<ImportedRun> ImportedRun::borrow(const ImportRequest& request, Streams& streams) {
  std::error_code failed;
  const fs::path temporary = fs::temp_directory_path(failed);
  if (failed) return errno_error("no temporary folder (TMPDIR)", failed.value());
  std::string name = (temporary / "hotlap-analyze-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return errno_error(format("{}: cannot be made; set TMPDIR to a folder where you may write", name), errno);
  }
  Result<ImportedRun> run = import(name, request, streams);
  if (run.ok()) {
    run->borrowed_ = name;
  } else {
    fs::remove_all(name, failed);
  }
  return run;
}

Result<ImportedRun> ImportedRun::import(const fs::path& home, const ImportRequest& request, Streams& streams) {
  std::vector<fs::path> paths;
  std::uint64_t skipped = 0;
  for (const fs::path& given : request.paths) {
    HOTLAP_TRY_ASSIGN(const std::vector<fs::path> found, files_to_import(given, &skipped));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  RunInfo info{.id = new_ulid(system_clock()), .status = RunStatus::kUnknown};
  const fs::path first = fs::absolute(request.paths.front()).lexically_normal();
  info.name = request.name.empty() ? to_valid_utf8(first.filename().string()) : request.name;
  info.hotlap_version = hotlap_version();
  HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::create(home, info));
  ImportedRun run(std::move(folder));
  // Whatever fails from here on: nothing half imported stays behind.
  const auto give_up = [&](Error error) {
    (void)run.folder_.remove();
    return error;
  };
  if (Result<void> made = make_private_folders(run.folder_.path() / "trace"); !made.ok()) {
    return give_up(std::move(made).error());
  }

  const InterruptWatch watch;
  ProgressLine progress(streams, request.is_quiet);
  ImportOptions options{.is_strict = request.is_strict,
                        .is_cancelled = [] { return interrupted != 0; },
                        .on_progress = [&progress](const ImportProgress& now) { progress.show(now); },
                        .format = request.format};
  if (request.expansion_max > 0) options.expansion_max = request.expansion_max;
  for (const fs::path& path : paths) {
    if (run.is_cancelled_) break;
    progress.file(path);
    const RecordingInfo recording{
        .id = new_ulid(system_clock()),
        .run_id = info.id,
        .hotlap_version = std::string(hotlap_version()),
        .attributes = {{"source.file", to_valid_utf8(path.filename().string())}},
    };
    ImportWriterOptions writer_options;
    if (paths.size() > 1) writer_options.main_label = to_valid_utf8(path.filename().string());
    Result<std::unique_ptr<ImportWriter>> writer =
        ImportWriter::create(run.folder_.path() / "trace" / format("{:04}.hotlap", run.files_.size() + 1), recording,
                             std::move(writer_options));
    if (!writer.ok()) return give_up(std::move(writer).error());
    const std::int64_t begin_ns = system_clock().mono_ns();
    Result<ImportOutcome> outcome = import_file(path, **writer, options);
    progress.clear();
    if (!outcome.ok()) return give_up(std::move(outcome).error());
    (*writer)->attribute("source.format", outcome->format);
    if (skipped > 0 && run.files_.empty()) (*writer)->count_loss("ingest.files_skipped", skipped, -1);
    if (Result<void> closed = (*writer)->close(); !closed.ok()) return give_up(std::move(closed).error());
    set_times(**writer, info);
    std::error_code ignored;
    const std::uintmax_t bytes = fs::file_size(path, ignored);
    run.files_.push_back(
        {.path = path,
         .format = outcome->format,
         .file_bytes = ignored ? 0 : std::uint64_t{bytes},
         .bytes = outcome->stats.bytes,
         .events = outcome->stats.events,
         .seconds = static_cast<double>(system_clock().mono_ns() - begin_ns) / static_cast<double>(kNsPerS)});
    run.is_cancelled_ = outcome->is_cancelled;
  }
  if (run.is_cancelled_) streams.err << "hotlap: interrupted: what was read until then is there\n";
  info.status = run.is_cancelled_ ? RunStatus::kKilled : RunStatus::kFinished;
  if (Result<void> updated = run.folder_.update(info); !updated.ok()) return give_up(std::move(updated).error());
  return run;
}

}  // namespace hotlap
