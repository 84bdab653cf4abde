// A folder of SageMaker Debugger ("profiler-output", or its parts): system metrics and timelines of all files together,
// so that each process has one slot and its steps go on from one file to the next.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "ingest/importer.h"
#include "ingest/smdebug.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFilesMax = 1'000'000;                   // a minute each: two years
constexpr std::size_t kFileBytesMax = std::size_t{256} << 20;  // they are closed at 10 MiB
constexpr int kDepthMax = 16;
constexpr std::array<std::string_view, 5> kNames{"profiler-output/", "framework/", "pevents/", "system/",
                                                 "incremental/"};

// Passes on everything but the clock, which each file declares anew.
class OneClock final : public ImportSink {
 public:
  explicit OneClock(ImportSink& out) : out_(out) {}
  void clock(const ImportClock& clock) override {
    if (!std::exchange(is_told_, true)) out_.clock(clock);
  }
  SeriesHandle series(const MetricDesc& metric, std::string_view instance) override {
    return out_.series(metric, instance);
  }
  void sample(SeriesHandle series, std::int64_t t_ns, Value value) override { out_.sample(series, t_ns, value); }
  std::uint32_t name(std::string_view text) override { return out_.name(text); }
  std::uint32_t process(const ProcessInfo& process) override { return out_.process(process); }
  void span(const Span& span) override { out_.span(span); }
  void event(const Event& event) override { out_.event(event); }
  void attribute(std::string_view key, std::string_view value) override { out_.attribute(key, value); }
  void count_loss(std::string_view counter, std::uint64_t count, std::int64_t byte_offset) override {
    out_.count_loss(counter, count, byte_offset);
  }

 private:
  ImportSink& out_;
  bool is_told_ = false;
};

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
    if (file.filename() == "training_job_end.ts") continue;  // an empty mark
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
