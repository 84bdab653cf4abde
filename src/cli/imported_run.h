#pragma once
// Foreign files as a run: imported into a run folder, kept in the home or gone with this object.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "store/run_folder.h"

namespace hotlap {

struct ImportedFile {
  std::filesystem::path path;
  std::string format;
  std::uint64_t file_bytes = 0;
  std::uint64_t bytes = 0;   // decompressed
  std::uint64_t events = 0;  // as the importer counts them
  double seconds = 0;
  std::string clock;  // how its times were brought to those of the other files; empty: nothing to say
};

struct ImportRequest {
  std::vector<std::filesystem::path> paths;
  std::string name;            // of the run; empty: made from the first file
  std::string format;          // empty: recognised
  std::string keep_arguments;  // of traces' events, as KeptArguments::of() takes them
  bool is_strict = false;
  bool is_quiet = false;
  std::uint64_t expansion_max = 0;  // 0: the default
};

// A file or folder that is no run of ours, so that it has to be imported: it exists, and is neither a .hotlap file nor
// a folder with a run.json or recordings.
bool is_foreign(const std::filesystem::path& path);
// What a word on the command line means: the file or folder that lies there, or a run (false). A recorded run is named
// after its script, which may lie here too, and comes first; an imported one has a file's name, and the file comes
// first.
bool means_foreign(const std::filesystem::path& home, const std::string& word);

class ImportedRun {
 public:
  // Into `home`; the folder goes again when nothing could be imported. Progress and Ctrl-C: on `streams.err`, and what
  // was read until then is kept.
  static Result<ImportedRun> keep(const std::filesystem::path& home, const ImportRequest& request, Streams& streams);
  // Into a folder of the system's temporary ones, which is deleted with this object.
  static Result<ImportedRun> borrow(const ImportRequest& request, Streams& streams);
  ImportedRun(ImportedRun&& other) noexcept;
  ImportedRun& operator=(ImportedRun&& other) noexcept;
  ImportedRun(const ImportedRun&) = delete;
  ImportedRun& operator=(const ImportedRun&) = delete;
  ~ImportedRun();

  const RunFolder& folder() const { return folder_; }
  const std::vector<ImportedFile>& files() const { return files_; }
  bool is_cancelled() const { return is_cancelled_; }

 private:
  explicit ImportedRun(RunFolder folder) : folder_(std::move(folder)) {}
  static Result<ImportedRun> import(const std::filesystem::path& home, const ImportRequest& request, Streams& streams);

  RunFolder folder_;
  std::filesystem::path borrowed_;  // deleted at the end; empty: kept
  std::vector<ImportedFile> files_;
  bool is_cancelled_ = false;
};

}  // namespace hotlap
