// A folder of SageMaker Debugger ("profiler-output", or its parts): system metrics and timelines of all files together,
// so that each process has one slot and its steps go on from one file to the next; and TensorFlow's own traces, whose
// times count from a moment that the name of a file beside them tells.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/byte_stream.h"
#include "ingest/civil_time.h"
#include "ingest/importer.h"
#include "ingest/smdebug.h"
#include "ingest/trace_assembler.h"
#include "ingest/trace_reader.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFilesMax = 1'000'000;                   // a minute each: two years
constexpr std::size_t kFileBytesMax = std::size_t{256} << 20;  // they are closed at 10 MiB
constexpr int kDepthMax = 16;
constexpr std::array<std::string_view, 6> kNames{"profiler-output/", "framework/",   "pevents/",
                                                 "system/",          "incremental/", "detailed_profiling/"};

// Passes on everything but the clock, which each file declares anew, with its times moved to Unix time.
class OneClock final : public ImportSink {
 public:
  explicit OneClock(ImportSink& out) : out_(out) {}
  // Of the files that follow: what their times have to be moved by.
  void move_by(std::int64_t shift_ns) { shift_ns_ = shift_ns; }

  void clock(const ImportClock& clock) override {
    if (shift_ns_ == 0 && !std::exchange(is_told_, true)) out_.clock(clock);
  }
  SeriesHandle series(const MetricDesc& metric, std::string_view instance) override {
    return out_.series(metric, instance);
  }
  void sample(SeriesHandle series, std::int64_t t_ns, Value value) override {
    out_.sample(series, t_ns + shift_ns_, value);
  }
  std::uint32_t name(std::string_view text) override { return out_.name(text); }
  std::uint32_t process(const ProcessInfo& process) override { return out_.process(process); }
  void span(const Span& span) override {
    Span moved = span;
    moved.start_ns += shift_ns_;
    out_.span(moved);
  }
  void event(const Event& event) override {
    Event moved = event;
    moved.t_ns += shift_ns_;
    out_.event(moved);
  }
  void attribute(std::string_view key, std::string_view value) override { out_.attribute(key, value); }
  void count_loss(std::string_view counter, std::uint64_t count, std::int64_t byte_offset) override {
    out_.count_loss(counter, count, byte_offset);
  }
  void at(std::int64_t byte_offset) override { out_.at(byte_offset); }
  bool is_strict() const override { return out_.is_strict(); }
  bool is_told() const { return is_told_; }

 private:
  ImportSink& out_;
  std::int64_t shift_ns_ = 0;
  bool is_told_ = false;
};

// When TensorFlow's profiler began, of …/<step>/plugins/profile/<2020_08_05_13_37_44>/<host>.trace.json.gz: the second
// last part of the name of …/<step>/<node>_<start µs>_<end µs>.metadata, else the folder's name, in whole seconds.
struct TraceStart {
  std::int64_t unix_ns = 0;
  bool is_exact = false;
};
std::optional<TraceStart> start_of_trace(const fs::path& file) {
  const fs::path taken = file.parent_path();
  std::error_code ignored;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(taken.parent_path().parent_path().parent_path(), ignored)) {
    if (entry.path().extension() != ".metadata") continue;
    const std::string stem = entry.path().stem().string();
    const std::size_t last = stem.rfind('_');
    const std::size_t before = last == std::string::npos || last == 0 ? last : stem.rfind('_', last - 1);
    if (before == std::string::npos || last == 0) continue;
    const auto start_us = parse_u64(std::string_view(stem).substr(before + 1, last - before - 1));
    if (start_us && *start_us < 4'000'000'000'000'000) {
      return TraceStart{static_cast<std::int64_t>(*start_us) * kNsPerUs, true};
    }
  }
  std::string text = taken.filename().string();  // 2020_08_05_13_37_44
  constexpr std::string_view kShape = "2020_08_05_13_37_44";
  if (text.size() != kShape.size()) return std::nullopt;
  text[4] = text[7] = '-';
  text[10] = ' ';
  text[13] = text[16] = ':';
  const auto when = read_civil_time(text);
  if (!when) return std::nullopt;
  return TraceStart{when->unix_ns, false};
}

constexpr std::string_view kTensorflowTrace = ".trace.json.gz";

// False when it is no trace.
Result<bool> read_tensorflow(const fs::path& file, OneClock& out, ImportStats& stats) {
  const auto start = start_of_trace(file);
  HOTLAP_TRY_ASSIGN(const std::unique_ptr<ByteStream> input, ByteStream::open(file));
  if (!start) return false;
  out.move_by(start->unix_ns);
  if (!start->is_exact) out.attribute("import.time", "TensorFlow's trace begins at its folder's time, to the second");
  TraceAssembler assembler(out);
  TraceReader reader(assembler, {.is_strict = out.is_strict()});
  std::vector<std::byte> window(std::size_t{256} << 10);
  while (true) {
    const Result<std::size_t> n = input->read(window);
    if (!n.ok() || *n == 0) break;
    reader.push(ByteView(window).first(*n));
  }
  reader.finish();
  if (input->condition() == ByteStream::Condition::kTruncated) {
    out.count_loss("ingest.input_truncated", 1, static_cast<std::int64_t>(input->bytes_given()));
  } else if (input->condition() == ByteStream::Condition::kDamaged) {
    out.count_loss("ingest.input_damaged", 1, static_cast<std::int64_t>(input->bytes_given()));
  }
  const bool has_events = assembler.has_content();
  if (has_events) assembler.finish();
  out.move_by(0);
  stats.bytes += reader.bytes();
  stats.events += assembler.events();
  return has_events;
}

// In the order of their names, which begin with the time. Links are not followed.
Result<std::vector<fs::path>> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at.depth() >= kDepthMax) at.disable_recursion_pending();
    if (!at->is_regular_file(ignored) || at->is_symlink(ignored)) continue;
    if (files.size() == kFilesMax) {
      return Error{ErrorCode::kResourceLimit, format("{}: more than {} files", folder.string(), kFilesMax)};
    }
    files.push_back(at->path());
  }
  if (error) return errno_error(folder.string(), error.value());
  std::ranges::sort(files);
  return files;
}

void add(ImportStats& sum, const ImportStats& part) {
  sum.bytes += part.bytes;
  sum.events += part.events;
}

Result<ImportStats> open_path(const fs::path& path, ImportSink& sink) {
  HOTLAP_TRY_ASSIGN(const std::vector<fs::path> files, files_below(path));
  OneClock out(sink);
  SmdebugProcesses processes;
  ImportStats stats;
  std::uint64_t read = 0;
  for (const fs::path& file : files) {
    // Empty marks, and names that tell when a trace began.
    if (file.filename() == "training_job_end.ts" || file.extension() == ".metadata") continue;
    if (file.filename().string().ends_with(kTensorflowTrace)) {
      const Result<bool> is_trace = read_tensorflow(file, out, stats);
      if (is_trace.ok() && *is_trace) {
        ++read;
      } else {
        out.count_loss("ingest.files_skipped", 1, 0);
      }
      continue;
    }
    const Result<std::string> content = read_regular_file(file, kFileBytesMax);
    const ByteView bytes = content.ok() ? as_bytes(*content) : ByteView{};
    const ByteView head = bytes.first(std::min<std::size_t>(bytes.size(), 4096));
    if (looks_like_smdebug_system(head)) {
      SmdebugSystem reader(out);
      reader.push(bytes);
      add(stats, reader.finish());
    } else if (looks_like_smdebug_timeline(head)) {
      const auto name = read_smdebug_file_name(file.filename().string());
      SmdebugTimeline reader(out, processes, name ? name->node : std::string{});
      reader.push(bytes);
      add(stats, reader.finish());
    } else {
      out.count_loss("ingest.files_skipped", 1, 0);
      continue;
    }
    ++read;
  }
  if (read == 0) {
    return Error{ErrorCode::kInvalidInput,
                 format("{}: no system metrics and no timeline of SageMaker Debugger in it", path.string())};
  }
  // Nothing but TensorFlow's: their Unix time is exact to what the profiler wrote.
  if (!out.is_told()) out.clock({.offset_ns = 0, .uncertainty_ns = kNsPerS, .is_absolute = true});
  out.attribute("import.files", format("{} of {} files", read, files.size()));
  return stats;
}

bool sniff(ByteView head_untrusted, std::string_view file_name) {
  return head_untrusted.empty() && std::ranges::find(kNames, file_name) != kNames.end();
}

}  // namespace

extern constinit const ImporterSpec importer_smdebug_folder{
    .name = "smdebug_folder",
    .summary = "The folder profiler-output of SageMaker Debugger, or a part of it.",
    .extensions = "profiler-output/",
    .priority = 300,
    .sniff = sniff,
    .open_path = open_path};

}  // namespace hotlap
