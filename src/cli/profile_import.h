#pragma once
// What the hooks saw of some steps, as recordings of the run: each trace of its folder `profile` becomes a file of
// `trace`, once. The watcher does this, so that the job and the recorder never parse.
#include <set>
#include <string>

#include "store/run_folder.h"

namespace hotlap {

// Confined to one thread.
class ProfileImport {
 public:
  explicit ProfileImport(const RunFolder& folder) : folder_(folder) {}

  // Imports what has come since. A file that cannot be imported stays where it is, and the run's other files count.
  void take_new();

 private:
  void take(const std::filesystem::path& trace, const std::filesystem::path& target);

  const RunFolder& folder_;
  std::set<std::string> refused_;  // by file name: not tried again
};

}  // namespace hotlap
