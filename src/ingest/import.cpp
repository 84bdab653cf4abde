#include "ingest/import.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "ingest/byte_stream.h"
#include "ingest/json_looks.h"
#include "ingest/registry.h"
#include "model/losses.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 4096;
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;  // fits the second cache; importers need no more
constexpr int kFolderDepthMax = 8;
constexpr std::size_t kFolderFilesMax = 20'000;

// Passes everything on. In strict mode it keeps the first loss that is more than "not kept".
class WatchedSink final : public ImportSink {
 public:
  WatchedSink(ImportSink& out, bool is_strict, std::string_view keep_arguments)
      : out_(out), is_strict_(is_strict), kept_(KeptArguments::of(keep_arguments)) {}

  void clock(const ImportClock& clock) override { out_.clock(clock); }
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
    // An input ends once, whoever sees it first: the format in which it broke off, or the compression around it.
    if (counter == "ingest.input_truncated" && std::exchange(is_truncated_, true)) return;
    out_.count_loss(counter, count, byte_offset);
    if (!is_strict_ || count == 0) return;
    const auto known = std::ranges::find(kLosses, counter, &LossDesc::counter);
    if (known != kLosses.end() && known->severity == LossSeverity::kInfo) return;
    if (refusal_ && refusal_->offset <= byte_offset) return;
    refusal_ = Refusal{std::string(counter), byte_offset, known == kLosses.end() ? "" : std::string(known->help)};
  }

  void at(std::int64_t byte_offset) override { out_.at(byte_offset); }
  bool is_strict() const override { return is_strict_; }
  const KeptArguments& kept_arguments() const override { return kept_; }

  Result<void> check() const {
    if (!refusal_) return {};
    return Error{ErrorCode::kCorrupt, format("byte {}: {} ({}); without --strict it is mended or left out, and counted",
                                             refusal_->offset, refusal_->help, refusal_->counter)};
  }

 private:
  struct Refusal {
    std::string counter;
    std::int64_t offset;
    std::string help;
  };
  ImportSink& out_;
  bool is_strict_;
  KeptArguments kept_;
  bool is_truncated_ = false;
  std::optional<Refusal> refusal_;
};

std::string name_of(const fs::path& path) { return std::string(without_compression_suffix(path.filename().string())); }

// The highest priority that takes it.
const ImporterSpec* best_for(ByteView head, std::string_view name, bool is_folder) {
  const ImporterSpec* best = nullptr;
  for (const ImporterSpec* spec : all_importers()) {
    if (is_folder && spec->open_path == nullptr) continue;
    if (best != nullptr && spec->priority <= best->priority) continue;
    if (spec->sniff(head, name)) best = spec;
  }
  return best;
}

Result<const ImporterSpec*> named_importer(std::string_view name) {
  std::string known;
  for (const ImporterSpec* spec : all_importers()) {
    if (spec->name == name) return spec;
    known += (known.empty() ? "" : ", ") + std::string(spec->name);
  }
  return Error{ErrorCode::kInvalidInput, format("no format {}; there are: {}", name, known)};
}

// Fills `buffer` as far as the input goes.
Result<std::size_t> read_full(ByteStream& input, std::span<std::byte> buffer) {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    HOTLAP_TRY_ASSIGN(const std::size_t n, input.read(buffer.subspan(filled)));
    if (n == 0) break;
    filled += n;
  }
  return filled;
}

class StreamImport {
 public:
  StreamImport(ByteStream& input, WatchedSink& sink, const ImportOptions& options)
      : input_(input), sink_(sink), options_(options) {}

  Result<ImportStats> run(StreamImporter& importer, std::vector<std::byte> window, std::size_t filled) {
    std::int64_t at = 0;
    while (filled > 0) {
      sink_.at(at);
      at += static_cast<std::int64_t>(filled);
      HOTLAP_TRY(importer.push(ByteView(window).first(filled)));
      HOTLAP_TRY(sink_.check());
      if (options_.on_progress) options_.on_progress({input_.bytes_read(), input_.file_bytes(), input_.bytes_given()});
      if (options_.is_cancelled && options_.is_cancelled()) {
        is_cancelled_ = true;
        sink_.count_loss("ingest.cancelled", 1, offset());
        break;
      }
      if (grows_beyond_measure()) {
        sink_.count_loss("ingest.expansion_stopped", 1, offset());
        break;
      }
      window.resize(kWindowBytes);
      HOTLAP_TRY_ASSIGN(filled, read_full(input_, window));
    }
    HOTLAP_TRY_ASSIGN(const ImportStats stats, importer.finish());
    if (input_.condition() == ByteStream::Condition::kTruncated) {
      sink_.count_loss("ingest.input_truncated", 1, offset());
    } else if (input_.condition() == ByteStream::Condition::kDamaged) {
      sink_.count_loss("ingest.input_damaged", 1, offset());
    } else if (input_.has_trailing_bytes()) {
      sink_.count_loss("ingest.input_unreadable", 1, offset());
    }
    if (!is_cancelled_) HOTLAP_TRY(sink_.check());
    return stats;
  }
  bool is_cancelled() const { return is_cancelled_; }

 private:
  std::int64_t offset() const { return static_cast<std::int64_t>(input_.bytes_given()); }
  bool grows_beyond_measure() const {
    return input_.compression() != Compression::kNone && input_.bytes_given() > options_.expansion_free_bytes &&
           input_.bytes_given() - options_.expansion_free_bytes > input_.bytes_read() * options_.expansion_max;
  }

  ByteStream& input_;
  WatchedSink& sink_;
  const ImportOptions& options_;
  bool is_cancelled_ = false;
};

// Takes everything and keeps nothing.
class NoSink final : public ImportSink {
 public:
  void clock(const ImportClock&) override {}
  SeriesHandle series(const MetricDesc&, std::string_view) override { return {.index = 0}; }
  void sample(SeriesHandle, std::int64_t, Value) override {}
  std::uint32_t name(std::string_view) override { return ++names_; }
  std::uint32_t process(const ProcessInfo& process) override { return process.slot == 0 ? ++processes_ : process.slot; }
  void span(const Span&) override {}
  void event(const Event&) override {}
  void attribute(std::string_view, std::string_view) override {}
  void count_loss(std::string_view, std::uint64_t, std::int64_t) override {}

 private:
  std::uint32_t names_ = 0;
  std::uint32_t processes_ = 0;
};

// Whether a file that was found and not named is worth its import. A small one is read to see: folders of traces are
// full of JSON that is none. A large one shows when it is imported.
bool is_wanted(const fs::path& path) {
  const Result<const ImporterSpec*> spec = recognise(path);
  if (!spec.ok() || *spec == nullptr) return false;
  constexpr std::uintmax_t kTriedBytes = std::uintmax_t{1} << 20U;
  std::error_code failed;
  if ((*spec)->open_stream == nullptr || fs::file_size(path, failed) > kTriedBytes || failed) return true;
  NoSink sink;
  return import_file(path, sink, {}).ok();
}

Result<void> list_files(const fs::path& folder, int depth, std::vector<fs::path>& found, std::uint64_t& skipped) {
  std::error_code failed;
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) entries.push_back(entry.path());
  if (failed) return errno_error(format("{}: cannot be listed", folder.string()), failed.value());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& path : entries) {
    if (path.filename().string().starts_with('.')) continue;
    std::error_code ignored;
    const bool is_folder = fs::is_directory(path, ignored);
    if (is_folder && fs::is_symlink(path, ignored)) continue;  // a link back up would never end
    if (is_folder && best_for({}, path.filename().string() + "/", true) == nullptr) {
      if (depth < kFolderDepthMax) HOTLAP_TRY(list_files(path, depth + 1, found, skipped));
      continue;
    }
    if (found.size() >= kFolderFilesMax) {
      return Error{ErrorCode::kResourceLimit,
                   format("{}: more than {} files; name those that matter", folder.string(), kFolderFilesMax)};
    }
    if (!is_folder && !is_wanted(path)) {
      ++skipped;
      continue;
    }
    found.push_back(path);
  }
  return {};
}

}  // namespace

Result<const ImporterSpec*> recognise(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return best_for({}, path.filename().string() + "/", true);
  HOTLAP_TRY_ASSIGN(const std::unique_ptr<ByteStream> input, ByteStream::open(path));
  std::array<std::byte, kHeadBytes> head{};
  HOTLAP_TRY_ASSIGN(const std::size_t filled, read_full(*input, head));
  return best_for(ByteView(head).first(filled), name_of(path), false);
}

Result<ImportOutcome> import_file(const fs::path& path, ImportSink& out, const ImportOptions& options) {
  const std::string shown = path.string();
  const auto in_file = [&](Error error) {
    // What is in a file is no mistake of whoever names it.
    if (error.code == ErrorCode::kInvalidInput) error.code = ErrorCode::kUnsupported;
    return error.message.starts_with(shown) ? std::move(error) : std::move(error).with_context(shown);
  };
  WatchedSink sink(out, options.is_strict, options.keep_arguments);
  const ImporterSpec* spec = nullptr;
  if (!options.format.empty()) {
    HOTLAP_TRY_ASSIGN(spec, named_importer(options.format));
  }
  std::error_code ignored;
  std::unique_ptr<ByteStream> input;
  std::vector<std::byte> window;
  std::size_t filled = 0;
  if (!fs::is_directory(path, ignored)) {
    HOTLAP_TRY_ASSIGN(input, ByteStream::open(path));
    window.resize(kWindowBytes);
    HOTLAP_TRY_ASSIGN(filled, read_full(*input, window));
    const ByteView head = ByteView(window).first(std::min(filled, kHeadBytes));
    if (spec == nullptr) spec = best_for(head, name_of(path), false);
    if (spec == nullptr) {
      std::string looks = file_looks(as_text(head));
      if (filled == 0 && input->condition() != ByteStream::Condition::kSound)
        looks = "it is compressed, and damaged at its start";
      return Error{ErrorCode::kUnsupported, format("{}: no format that hotlap reads: {}", shown, looks)};
    }
  } else if (spec == nullptr) {
    spec = best_for({}, path.filename().string() + "/", true);
    if (spec == nullptr) return Error{ErrorCode::kUnsupported, format("{}: a folder of no known format", shown)};
  }

  ImportOutcome outcome{.format = std::string(spec->name), .stats = {}};
  if (spec->open_path != nullptr) {
    input.reset();
    Result<ImportStats> stats = spec->open_path(path, sink);
    if (!stats.ok()) return in_file(std::move(stats).error());
    if (Result<void> strict = sink.check(); !strict.ok()) return in_file(std::move(strict).error());
    outcome.stats = *stats;
    return outcome;
  }
  if (!input)
    return Error{ErrorCode::kInvalidInput, format("{}: is a folder; {} is read from a file", shown, spec->name)};
  const std::unique_ptr<StreamImporter> importer = spec->open_stream(sink);
  StreamImport import(*input, sink, options);
  Result<ImportStats> stats = import.run(*importer, std::move(window), filled);
  if (!stats.ok()) return in_file(std::move(stats).error());
  outcome.stats = *stats;
  outcome.is_cancelled = import.is_cancelled();
  return outcome;
}

Result<std::vector<fs::path>> files_to_import(const fs::path& path, std::uint64_t* skipped) {
  std::error_code failed;
  const bool is_folder = fs::is_directory(path, failed);
  if (!is_folder && !fs::exists(path, failed)) {
    return Error{ErrorCode::kNotFound, format("{}: no such file or folder", path.string())};
  }
  if (!is_folder || best_for({}, fs::absolute(path).lexically_normal().filename().string() + "/", true) != nullptr) {
    return std::vector<fs::path>{path};
  }
  std::vector<fs::path> found;
  std::uint64_t left_out = 0;
  HOTLAP_TRY(list_files(path, 0, found, left_out));
  if (skipped != nullptr) *skipped += left_out;
  if (found.empty()) {
    return Error{ErrorCode::kUnsupported,
                 format("{}: none of the {} files in it is of a format that hotlap reads", path.string(), left_out)};
  }
  return found;
}

}  // namespace hotlap
