#pragma once
// The private folder of a run for what lives only as long as it: rings and the lock that shows that somebody is there.
//
//   <runtime>/hotlap-<uid> or $XDG_RUNTIME_DIR/hotlap/
//     run-<ULID> or job-<hash of the launcher's key>/
//       lock     held (flock) by the supervisor and its recorder
//       run-id   which run the lock's holder records
//       rings/   HOTLAP_RING_DIR
//
// Folders are made, joined and deleted in turns: whoever holds the lock (flock) of hotlap-<uid>/ itself.
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hotlap {

// $XDG_RUNTIME_DIR/hotlap when that is ours, else ${TMPDIR:-/tmp}/hotlap-<uid>: 0700, owner checked, made if absent.
Result<std::filesystem::path> runtime_home();

class RuntimeFolder {
 public:
  // Makes or joins <home>/<name>. Whoever gets the lock is the recorder of this node and leads; the others learn the
  // run's id from it. kIo when it has to wait for its turn too long.
  static Result<RuntimeFolder> claim(const std::filesystem::path& home, std::string_view name, std::string_view run_id);
  RuntimeFolder(RuntimeFolder&& other) noexcept;
  RuntimeFolder& operator=(RuntimeFolder&& other) noexcept;
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;
  ~RuntimeFolder();

  bool leads() const { return leads_; }
  const std::string& run_id() const { return run_id_; }
  std::filesystem::path rings() const { return path_ / "rings"; }
  const std::filesystem::path& path() const { return path_; }
  int lock_fd() const { return lock_fd_; }
  // Deletes the folder; only for the leader, when recorder and job are gone.
  void remove();

 private:
  RuntimeFolder() = default;
  std::filesystem::path path_;
  std::string run_id_;
  int lock_fd_ = -1;
  bool leads_ = false;
};

// Deletes the folders that nobody holds any more: their supervisor and recorder were both killed. Waits for nobody.
void sweep_runtime_home(const std::filesystem::path& home);

}  // namespace hotlap
