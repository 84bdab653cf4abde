#pragma once
// The rings of the job's hooks and of native observers in its processes: found as they appear in the run's ring folder,
// drained at each tick, deleted when their process has ended and the last record is read.
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread.h"
#include "model/event.h"
#include "record/batch.h"
#include "record/job_tree.h"
#include "wire/ring_reader.h"

namespace hotlap {

// What the rings say about the job as a whole.
struct HookProgress {
  std::int64_t steps = 0;  // that have ended, of the process that leads
  std::int64_t last_step_end_ns = -1;
  Phase phase = Phase::kStarting;  // as last told
};

// Confined to one thread. `tree` and `series` outlive it. At most kRingsMax rings are open at a time.
class HookRings {
 public:
  static constexpr std::size_t kRingsMax = 1024;
  static constexpr std::size_t kRefusedMax = 4096;  // ring files that are remembered as unusable

  // `folder` empty: no hook in this run.
  HookRings(std::filesystem::path folder, std::uint32_t owner_uid, JobTree& tree, SeriesTable& series);
  ~HookRings();
  HookRings(const HookRings&) = delete;
  HookRings& operator=(const HookRings&) = delete;

  void poll(std::int64_t t_ns, Batch& out);
  // Hands a request for a look into steps (record/profile_plan.h) to the processes that train: "now" to the one that
  // leads. What they answer is noted.
  void ask_profile(std::uint64_t argument, std::int64_t t_ns, Batch& out);
  const HookProgress& progress() const { return progress_; }
  std::size_t rings_open() const { return rings_.size(); }
  // True while a process that announced itself as a rank is alive.
  bool has_live_rank() const;

 private:
  struct Ring;
  struct Sent;
  class Visitor;
  using Rings = std::map<std::string, std::unique_ptr<Ring>>;  // by file name
  void find_files(std::int64_t t_ns, Batch& out);
  void look_at(const std::string& name, std::int64_t t_ns, Batch& out);
  void open_ring(const std::string& name, std::int64_t t_ns, Batch& out);
  void note_observer_off(const RingFileName& id, std::int32_t pid, std::string_view reason, std::int64_t t_ns,
                         Batch& out);
  void refuse(const std::string& name, const Error& why, std::int64_t t_ns, Batch& out);
  bool has_ended(Ring& ring, std::int64_t t_ns, Batch& out);
  Rings::iterator close(Rings::iterator ring);
  bool drain(Ring& ring, std::int64_t t_ns, Batch& out);  // false: of no further use
  void count_losses(Ring& ring, Batch& out);
  void note_answer(Ring& ring, std::int64_t t_ns, Batch& out);
  void announce(Ring& ring, std::int64_t t_ns, Batch& out);
  void sample_sent(Ring& ring, Batch& out);
  void sample_live(Ring& ring, Batch& out);
  std::string_view text_of(std::uint32_t number) const;  // of a name that intern() gave
  std::uint32_t intern(std::string_view text_untrusted, Batch& out);

  std::filesystem::path folder_;
  std::uint32_t owner_uid_;
  JobTree& tree_;
  SeriesTable& series_;
  int inotify_fd_ = -1;
  bool must_list_ = true;
  Rings rings_;
  std::map<std::string, std::uint64_t> refused_;  // by file name: the inode; 0: it may be looked at again
  std::map<std::string, std::uint32_t, std::less<>> names_;
  HookProgress progress_;
  std::string leader_;  // file name of the ring whose phases are the job's
};

}  // namespace hotlap
