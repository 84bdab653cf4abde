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
  // While the job runs, a trace whose import has been broken off before (it may have taken too much memory) is left to
  // the one at the end.
  ProfileImport(const RunFolder& folder, bool is_final) : folder_(folder), is_final_(is_final) {}

  // Imports what has come since. A file that cannot be imported stays where it is, and the run's other files count.
  void take_new();

 private:
  void take(const std::filesystem::path& trace, const std::filesystem::path& target);

  const RunFolder& folder_;
  bool is_final_;
  std::set<std::string> refused_;  // by file name: not tried again
};

}  // namespace hotlap
