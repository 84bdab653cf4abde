#include "cli/imported_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <ostream>
#include <span>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/clock_join.h"
#include "cli/shown.h"
#include "ingest/import.h"
#include "ingest/trace_file_name.h"
#include "record/identity.h"
#include "store/home.h"
#include "store/import_writer.h"
#include "store/recording_reader.h"

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

bool means_foreign(const fs::path& home, const std::string& word) {
  if (!is_foreign(word)) return false;
  const Result<RunFolder> run = RunFolder::find(home, word);
  return !run.ok() || (run->info().script.empty() && run->info().name == word);
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

// Imports the files of one run, one after the other; those whose times can only be told from the others' are read a
// second time, once where they belong is known.
class RunImport {
 public:
  // All outlive it.
  RunImport(const fs::path& folder, RunInfo& info, const ImportRequest& request, Streams& streams)
      : folder_(folder), info_(info), request_(request), streams_(streams), progress_(streams, request.is_quiet) {}

  Result<void> import(const std::vector<fs::path>& paths, std::uint64_t skipped) {
    skipped_ = skipped;
    is_one_of_several_ = paths.size() > 1;
    for (const fs::path& path : paths) {
      if (is_cancelled_) break;
      Result<Imported> imported = import_file_as(path, files_.size() + 1, std::nullopt);
      if (!imported.ok()) {
        // A file of a folder that turns out to be something else costs itself.
        const bool was_named = std::ranges::find(request_.paths, path) != request_.paths.end();
        if (was_named || imported.error().code != ErrorCode::kUnsupported)
          return with_what_else_is_there(std::move(imported).error(), path, paths);
        streams_.err << "hotlap: left out: " << one_line(imported.error().message) << '\n';
        ++skipped_;
        continue;
      }
      files_.push_back(std::move(imported->file));
      clocks_.push_back(imported->clock);
    }
    if (files_.empty()) return Error{ErrorCode::kUnsupported, "none of the files is of a format that hotlap reads"};
    if (files_.size() > 1 && !is_cancelled_) HOTLAP_TRY(join());
    set_times();
    return {};
  }
  std::vector<ImportedFile> take_files() { return std::move(files_); }
  bool is_cancelled() const { return is_cancelled_; }

 private:
  // One that cannot be read ends it all, since it was named: then how many of the others could.
  static Error with_what_else_is_there(Error error, const fs::path& failed, const std::vector<fs::path>& paths) {
    const auto others = std::ranges::count_if(paths, [&](const fs::path& other) {
      const Result<const ImporterSpec*> spec = other == failed ? nullptr : recognise(other);
      return spec.ok() && *spec != nullptr;
    });
    if (others > 0 && error.code == ErrorCode::kUnsupported) {
      error.message += format("; without it the other {} would be read, or name their folder",
                              others == 1 ? "file" : format("{} files", others));
    }
    return error;
  }

  struct Imported {
    ImportedFile file;
    FileClock clock;
  };

  fs::path trace_path(std::size_t number) const { return folder_ / "trace" / format("{:04}.hotlap", number); }

  Result<Imported> import_file_as(const fs::path& path, std::size_t number, const std::optional<JoinedClock>& joined) {
    const std::int64_t begin_ns = system_clock().mono_ns();
    progress_.file(path);
    const std::string file_name = to_valid_utf8(path.filename().string());
    const RecordingInfo recording{
        .id = new_ulid(system_clock()),
        .run_id = info_.id,
        .hotlap_version = std::string(hotlap_version()),
        .attributes = {{"source.file", file_name}},
    };
    ImportWriterOptions writer_options;
    if (is_one_of_several_) writer_options.main_label = file_name;
    if (const auto rank = read_trace_file_name(file_name).rank) writer_options.main_rank = *rank;
    if (joined) {
      writer_options.shift_ns = joined->shift_ns;
      writer_options.is_absolute = joined->is_absolute;
    }
    const fs::path written = trace_path(number);
    std::error_code ignored;
    fs::remove(written, ignored);
    HOTLAP_TRY_ASSIGN(const std::unique_ptr<ImportWriter> writer,
                      ImportWriter::create(written, recording, std::move(writer_options)));
    ImportOptions options{.is_strict = request_.is_strict,
                          .is_cancelled = [] { return interrupted != 0; },
                          .on_progress = [this](const ImportProgress& now) { progress_.show(now); },
                          .format = request_.format,
                          .keep_arguments = request_.keep_arguments};
    if (request_.expansion_max > 0) options.expansion_max = request_.expansion_max;
    Result<ImportOutcome> outcome = import_file(path, *writer, options);
    progress_.clear();
    if (!outcome.ok()) {
      fs::remove(written, ignored);
      return std::move(outcome).error();
    }
    writer->attribute("source.format", outcome->format);
    if (joined) {
      const std::string how = describe(*joined, name_of_file(joined->to));
      writer->attribute("clock.joined", how);
      const double seconds = static_cast<double>(joined->shift_ns) / static_cast<double>(kNsPerS);
      writer->attribute("import.shift." + file_name, format("{} s, {}", seconds, how));
    }
    if (is_one_of_several_) writer->attribute(kClockAxisAttribute, kAxisOfTheImport);
    if (skipped_ > 0) writer->count_loss("ingest.files_skipped", std::exchange(skipped_, 0), -1);
    HOTLAP_TRY(writer->close());
    is_cancelled_ = outcome->is_cancelled;
    const std::uintmax_t bytes = fs::file_size(path, ignored);
    Imported imported{
        .file = {.path = path,
                 .format = outcome->format,
                 .file_bytes = ignored ? 0 : std::uint64_t{bytes},
                 .bytes = outcome->stats.bytes,
                 .events = outcome->stats.events,
                 .seconds = static_cast<double>(system_clock().mono_ns() - begin_ns) / static_cast<double>(kNsPerS),
                 .clock = {}},
        .clock = {.format = outcome->format,
                  .is_absolute = writer->is_absolute(),
                  .has_year = writer->file_clock().has_year || joined.has_value(),
                  .has_only_events = !writer->extent() && writer->extent_of_events(),
                  .uncertainty_ns = writer->file_clock().uncertainty_ns}};
    const auto& extent = writer->extent() ? writer->extent() : writer->extent_of_events();
    if (extent) imported.clock.extent = *extent;
    return imported;
  }

  std::string name_of_file(std::size_t i) const {
    return i < files_.size() ? files_[i].path.filename().string() : std::string{};
  }

  // Which steps and collectives ended when, of the files that have been written.
  Result<void> read_marks(std::size_t i) {
    constexpr std::size_t kMarksMax = 100'000;
    HOTLAP_TRY_ASSIGN(const std::unique_ptr<RecordingReader> reader, RecordingReader::open(trace_path(i + 1)));
    FileClock& clock = clocks_[i];
    std::map<std::uint32_t, std::string> collectives;  // by name; empty: none
    std::size_t marks = 0;
    const auto collective = [&](const Span& span) -> const std::string& {
      const auto [found, is_new] = collectives.try_emplace(span.name);
      if (is_new) {
        const std::string name = reader->name(span.name);
        const bool is_one = span.kind == SpanKind::kCollective || name.find("nccl") != std::string::npos ||
                            name.find("rccl") != std::string::npos;
        if (is_one) found->second = name;
      }
      return found->second;
    };
    constexpr std::array kKinds{SpanKind::kStep, SpanKind::kCollective, SpanKind::kKernel};
    return reader->read_spans(kKinds, {}, [&](std::span<const Span> spans) {
      for (const Span& span : spans) {
        if (span.duration_ns < 0 || marks >= kMarksMax) continue;
        const std::int64_t end_ns = span.start_ns + span.duration_ns;
        if (span.kind == SpanKind::kStep) {
          if (span.step < 0) continue;
          clock.step_ends_ns[span.step] = end_ns;
          ++marks;
        } else if (const std::string& name = collective(span); !name.empty()) {
          clock.collective_ends_ns[name].push_back(end_ns);
          ++marks;
        }
      }
    });
  }

  Result<void> join() {
    const auto needs = [](const FileClock& clock) {
      return clock.extent.from_ns <= clock.extent.to_ns && (!clock.is_absolute || clock.uncertainty_ns > kNsPerS);
    };
    if (std::ranges::none_of(clocks_, needs)) return {};
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      if (Result<void> read = read_marks(i); !read.ok()) return read;
    }
    const std::vector<std::optional<JoinedClock>> joined = join_clocks(clocks_);
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      if (!needs(clocks_[i])) continue;
      const std::string name = one_line(name_of_file(i));
      if (!joined[i]) continue;  // the others are brought to it
      files_[i].clock = "times joined " + describe(*joined[i], one_line(name_of_file(joined[i]->to)));
      if (joined[i]->shift_ns != 0) {
        HOTLAP_TRY_ASSIGN(Imported again, import_file_as(files_[i].path, i + 1, joined[i]));
        clocks_[i] = std::move(again.clock);
      }
      if (!request_.is_quiet) streams_.err << format("hotlap: {}: {}\n", name, files_[i].clock);
    }
    return {};
  }

  // Where the files agree on the clock the run has begin and end. Messages of its machine may be older.
  void set_times() {
    for (const FileClock& clock : clocks_) {
      if (!clock.is_absolute || clock.extent.from_ns > clock.extent.to_ns) continue;
      if (clock.has_only_events) continue;
      info_.start_wall_ns =
          info_.start_wall_ns < 0 ? clock.extent.from_ns : std::min(info_.start_wall_ns, clock.extent.from_ns);
      info_.end_wall_ns = std::max(info_.end_wall_ns, clock.extent.to_ns);
    }
  }

  const fs::path& folder_;
  RunInfo& info_;
  const ImportRequest& request_;
  Streams& streams_;
  ProgressLine progress_;
  std::vector<ImportedFile> files_;
  std::vector<FileClock> clocks_;  // as files_
  bool is_cancelled_ = false;
  std::uint64_t skipped_ = 0;
  bool is_one_of_several_ = false;
};

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
  RunImport all(run.folder_.path(), info, request, streams);
  if (Result<void> done = all.import(paths, skipped); !done.ok()) return give_up(std::move(done).error());
  run.files_ = all.take_files();
  run.is_cancelled_ = all.is_cancelled();
  if (run.is_cancelled_) streams.err << "hotlap: interrupted: what was read until then is there\n";
  info.status = run.is_cancelled_ ? RunStatus::kKilled : RunStatus::kFinished;
  if (Result<void> updated = run.folder_.update(info); !updated.ok()) return give_up(std::move(updated).error());
  return run;
}

}  // namespace hotlap
