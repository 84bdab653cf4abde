#pragma once
// The folder of a run: <home>/runs/<run id>/ with run.json, the recordings and what is derived from them.
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/run.h"
#include "store/home.h"

namespace hotlap {

// Below a run's folder: what hooks saw of some steps, a foreign file each, until it is imported; stacks.
inline constexpr std::string_view kProfileFolder = "profile";

class RunFolder {
 public:
  // Makes <home>/runs/<info.id> (0700) and its run.json (0600).
  static Result<RunFolder> create(const std::filesystem::path& home, const RunInfo& info);
  // A run folder, or any folder that holds one run.json.
  static Result<RunFolder> open(const std::filesystem::path& folder);
  // By id, name (the newest), unique prefix of an id, path of a folder or of a .hotlap file, or "last". A recording
  // that lies alone, without run.json beside it, is a run of its own.
  // kNotFound says what exists; kInvalidInput names the candidates of an ambiguous prefix.
  static Result<RunFolder> find(const std::filesystem::path& home, std::string_view run_untrusted);
  // Newest first; folders that cannot be read are skipped and counted in `unreadable` (null: not wanted).
  static std::vector<RunFolder> list(const std::filesystem::path& home, std::size_t* unreadable);

  const std::filesystem::path& path() const { return path_; }
  const RunInfo& info() const { return info_; }
  // Replaces run.json atomically.
  Result<void> update(const RunInfo& info);
  Result<void> reload();
  std::vector<std::filesystem::path> recordings() const;  // *.hotlap but derived.hotlap, those of trace/ last; sorted
  // Where the recording is made while the folder lies on a network file system, and stays when its recorder is killed;
  // empty: nowhere else.
  std::filesystem::path stand_in() const;
  // Replaces a small text file of the folder atomically (0600): verdict.txt, verdict.json.
  Result<void> write_text(std::string_view name, std::string_view text) const;
  // Deletes the folder with all that is in it, and the stand-in.
  Result<void> remove() const;

 private:
  std::filesystem::path path_;
  RunInfo info_;
  std::filesystem::path only_;  // the one recording, where there is no run.json
};

std::string run_info_to_json(const RunInfo& info);
Result<RunInfo> run_info_from_json(std::string_view json_untrusted);

}  // namespace hotlap
