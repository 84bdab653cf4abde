#pragma once
// Which processes belong to the job, and what each is: found by a scan of /proc for unknown pids (at most once a
// second, and slower where /proc is large), by what hook rings announce, and by the run's id in a process's
// environment.
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/thread.h"
#include "collect/collector.h"
#include "collect/process_files.h"
#include "model/process.h"
#include "record/batch.h"

namespace hotlap {

struct JobTreeOptions {
  std::int32_t root_pid = 0;        // 0: none (yet)
  std::int32_t supervisor_pid = 0;  // orphans of the job become its children; 0: none
  std::string run_id;               // marks a process that left the tree, by HOTLAP_RUN_ID in its environment
  bool expects_hook = false;        // Python processes without a hook are then given a reason
  std::size_t processes_max = 4096;
};

// What a ring says about its process.
struct HookPlace {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::int32_t parent_pid = 0;
  ProcessRole role = ProcessRole::kOther;
  std::int32_t rank = -1;
  std::int32_t worker_id = -1;
};

// Confined to one thread. `host` and `clock` outlive it.
class JobTree {
 public:
  JobTree(const Host& host, const Clock& clock, JobTreeOptions options);

  void set_root(std::int32_t pid) {
    must_scan_ |= pid != options_.root_pid;
    options_.root_pid = pid;
  }
  // Looks for new and ended processes when it is time; tells `out` what changed.
  void update(std::int64_t t_ns, Batch& out);
  // From a ring: the process is one of the job's whatever /proc says. Returns its slot; 0: beyond the bound.
  std::uint32_t announce(const HookPlace& place, std::int64_t t_ns, Batch& out);
  // From the ring of a native observer: as announce(), but it says nothing of the hook, and what it says of the rank
  // counts only where nobody else has said.
  std::uint32_t attach(const HookPlace& place, std::int64_t t_ns, Batch& out);
  // The slot of a device that work was seen on: it has one like a process. `user`: of the process whose work it is.
  std::uint32_t device(std::string_view label, std::uint32_t user, std::int64_t t_ns, Batch& out);
  // The slot that a live process has now; 0: it is not known here.
  std::uint32_t slot_of(std::int32_t pid, std::uint64_t start_ticks) const;
  // The pid here of the process that calls itself `pid`: another one where it lives in a PID namespace of its own
  // (containers, unshare). `pid` when no process of the job fits. May scan, at most once a second.
  std::int32_t pid_seen_here(std::int32_t pid, std::uint64_t start_ticks, std::int64_t t_ns, Batch& out);
  // The hook is loaded in it, or cannot work there because of `reason`.
  void hook_seen(std::int32_t pid, std::uint64_t start_ticks, std::int64_t t_ns, Batch& out);
  void hook_refused(std::int32_t pid, std::uint64_t start_ticks, std::string reason, std::int64_t t_ns, Batch& out);

  // Sorted by pid; valid until the next call of another method.
  std::span<const JobProcess> processes() const { return view_; }
  bool is_alive(std::int32_t pid, std::uint64_t start_ticks) const;
  std::string_view label_of(std::uint32_t slot) const;
  // The job has ended: every process that is left is marked so.
  void finish(std::int64_t t_ns, std::string_view main_exit, Batch& out);

 private:
  struct Node {
    ProcessInfo info;
    std::uint64_t start_ticks = 0;
    std::int64_t found_ns = 0;
    bool is_settled = false;  // command line read again after the first seconds: exec follows fork
    bool is_python = false;
    bool has_place = false;  // role told by a ring
  };
  bool has_changed();
  bool is_given_anew(std::int32_t pid) const;
  void scan(std::int64_t t_ns, Batch& out);
  void look_at_new(const std::vector<std::int32_t>& pids, std::int64_t t_ns, Batch& out);
  void settle(Node& node, Batch& out);
  bool has_marker(std::int32_t pid) const;
  bool is_ours(std::int32_t pid) const;
  std::int32_t innermost_pid(std::int32_t pid) const;
  void read_command(Node& node) const;
  std::string absent_reason(std::int32_t pid, const ProcessInfo& info) const;
  Node* add(std::int32_t pid, const ProcessStat& stat, std::int64_t t_ns, Batch& out);
  Node* find_or_add(std::int32_t pid, std::uint64_t start_ticks, std::int64_t t_ns, Batch& out);
  std::string free_label(const std::string& wanted) const;
  void take_role(Node& node, ProcessRole role, std::int32_t index, std::int32_t rank, std::int64_t t_ns, Batch& out);
  void assign_slot(Node& node, const std::string& wanted, std::int64_t t_ns, Batch& out);
  void end(Node& node, std::int64_t t_ns, std::string_view how, Batch& out);
  void rebuild_view();
  std::int64_t mono_of_ticks(std::uint64_t start_ticks) const;

  const Host& host_;
  const Clock& clock_;
  JobTreeOptions options_;
  std::map<std::int32_t, Node> live_;
  std::vector<std::int32_t> foreign_;                                // sorted: seen, not of the job
  std::uint64_t scanned_to_ = 0;                                     // last_pid_ at the last scan
  std::map<std::string, std::uint32_t, std::less<>> slot_of_label_;  // for ever: a slot outlives its process
  std::vector<std::string> label_of_slot_{std::string()};
  std::set<std::string, std::less<>> labels_in_use_;
  std::vector<JobProcess> view_;
  std::int64_t next_scan_ns_ = INT64_MIN;
  std::int64_t next_look_ns_ = INT64_MIN;  // for a pid of another namespace
  KeptFile load_;
  std::uint64_t tasks_total_ = 0;
  std::uint64_t last_pid_ = 0;  // that the kernel gave to a process; 0: not known
  bool must_scan_ = true;       // a young process has to be looked at again
  std::string own_exe_;
  ThreadChecker thread_;
};

}  // namespace hotlap
