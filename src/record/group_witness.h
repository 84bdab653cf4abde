#pragma once
// Tells a signal that was sent to the whole process group (by the terminal, `kill %1`, timeout, a batch system) from
// one that was sent to the supervisor alone. The job is in the same group: the former has reached it already, and only
// the latter must be passed on.
//
// The witness is a tiny process of the group that holds all signals back and reports each it gets. It also passes on
// the one signal that the supervisor cannot: a SIGSTOP meant for it alone, noticed within about a second, stops the
// job; and it continues a stopped supervisor when the job has ended meanwhile.
#include <sys/types.h>

#include <bitset>

namespace hotlap {

// One thread.
class GroupWitness {
 public:
  GroupWitness() = default;
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;
  ~GroupWitness();

  // `job_fd`: a pidfd of the job, or −1 (then a SIGSTOP is not passed on). Without a witness (no process could be made)
  // every signal counts as sent to us alone.
  void start(int job_fd);
  void stop();
  pid_t pid() const { return pid_; }
  // Waits a moment for the witness's word on a signal that we have just received.
  bool has_seen(int signal_number);

 private:
  void drain(int timeout_ms);

  pid_t pid_ = -1;
  int reports_fd_ = -1;
  std::bitset<128> seen_;
};

}  // namespace hotlap
