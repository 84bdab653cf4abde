#pragma once
// A run as its readers see it: the folder and every recording in it, live or finished. Confined to one thread.
#include <memory>
#include <vector>

#include "base/result.h"
#include "store/recording_reader.h"
#include "store/run_folder.h"

namespace hotlap {

class RunReader {
 public:
  // Opens what can be opened. An error only when the folder has recordings and none can be read: the first one's. A
  // run that has not recorded anything yet has no recordings.
  static Result<RunReader> open(RunFolder folder);

  const RunFolder& folder() const { return folder_; }
  const RunInfo& info() const { return folder_.info(); }
  // In the order of their file names, which is the order in which they were begun.
  const std::vector<std::unique_ptr<RecordingReader>>& recordings() const { return recordings_; }
  const std::vector<std::filesystem::path>& files() const { return opened_; }  // of recordings(), in its order
  // Recordings that could not be opened or read on: what, where, what to do. Empty when all is well.
  const std::vector<Error>& problems() const { return problems_; }
  // Sees what was committed since, new recordings and the run's own state too. A recording that cannot be read any
  // more stays as it was and is named in problems().
  Result<void> refresh();

 private:
  explicit RunReader(RunFolder folder) : folder_(std::move(folder)) {}
  void open_new();

  RunFolder folder_;
  std::vector<std::filesystem::path> opened_;
  std::vector<std::unique_ptr<RecordingReader>> recordings_;
  std::vector<Error> problems_;
};

}  // namespace hotlap
