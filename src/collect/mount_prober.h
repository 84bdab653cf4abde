#pragma once
// Asks mounts how full they are without ever waiting longer than a deadline: the call is made by a helper thread,
// and one that does not come back (the server is dead) is left behind. A mount that does not answer holds one
// thread, once, is not asked again before that thread came back, and holds up no other mount.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace hotlap {

// Confined to one thread. A thread that is stuck when this is destroyed lives on until its call returns or the
// process ends (it cannot be ended: it sits in the kernel); `host` must outlive it.
class MountProber {
 public:
  static constexpr std::size_t kStuckMax = 16;  // threads left behind; beyond, no mount that could hang is asked

  MountProber(const Host& host, std::int64_t deadline_ns);
  ~MountProber();
  MountProber(const MountProber&) = delete;
  MountProber& operator=(const MountProber&) = delete;

  // Nothing: it did not answer in time, now or before.
  std::optional<Result<FilesystemUsage>> ask(const std::string& mount_point);
  std::size_t stuck_count() const { return stuck_.size(); }

  // Waits for all threads that were ever left behind, whose calls must return by now: for tests that start them.
  static void join_abandoned();

 private:
  class Worker;
  void reclaim();

  const Host& host_;
  std::int64_t deadline_ns_;
  std::unique_ptr<Worker> idle_;                // the one that will be asked next
  std::vector<std::unique_ptr<Worker>> stuck_;  // one per mount that does not answer
};

}  // namespace hotlap
