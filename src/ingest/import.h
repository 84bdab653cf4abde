#pragma once
// From a file to a sink: recognises the format, decompresses, feeds the importer. Confined to one thread.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/importer.h"

namespace hotlap {

struct ImportProgress {
  std::uint64_t bytes_read = 0;   // of the file, as it lies on disk
  std::uint64_t file_bytes = 0;   // 0: unknown
  std::uint64_t bytes_given = 0;  // decompressed
};

struct ImportOptions {
  bool is_strict = false;              // the first repair or drop is an error; what is only not kept is not
  std::function<bool()> is_cancelled;  // asked between windows; then what was read is kept
  std::function<void(const ImportProgress&)> on_progress;  // between windows
  std::string_view format;                                 // name of an importer, in place of sniffing
  // A compressed file that has grown by more than this factor beyond the free bytes is read no further.
  std::uint64_t expansion_max = 250;
  std::uint64_t expansion_free_bytes = 256ULL << 20U;
  std::string_view keep_arguments;  // as KeptArguments::of() takes them
};

struct ImportOutcome {
  std::string format;  // name of the importer
  ImportStats stats;
  bool is_cancelled = false;
};

// The importer for a file or a folder; null: none. Reads its first bytes. kNotFound, kIo, kInvalidInput.
Result<const ImporterSpec*> recognise(const std::filesystem::path& path);

// kUnsupported with what the file looks like when no importer takes it; kCorrupt in strict mode with counter and byte.
// What is damaged costs what is damaged and is counted at the sink.
Result<ImportOutcome> import_file(const std::filesystem::path& path, ImportSink& out, const ImportOptions& options);

// What importing `path` means: itself, or the files of a folder that no importer takes as a whole, sorted, with those
// of no known format left out and counted in `skipped`. kNotFound when there are none.
Result<std::vector<std::filesystem::path>> files_to_import(const std::filesystem::path& path, std::uint64_t* skipped);

}  // namespace hotlap
