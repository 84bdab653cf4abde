#pragma once
// The recorder and the watcher of a run, as the supervisor sees them: started after the job, told what happens to it,
// started again when they die, and never waited for without end.
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/run_plan.h"
#include "record/spawn.h"
#include "store/run_folder.h"

namespace hotlap {

// One thread. `options` and `signals` outlive it.
class Companions {
 public:
  Companions(const RunOptions& options, const InheritedSignals& signals) : options_(options), signals_(signals) {}
  ~Companions();
  Companions(const Companions&) = delete;
  Companions& operator=(const Companions&) = delete;

  // A line for the user, marked as ours; nothing with --quiet.
  void say(std::string_view line) const;

  // Makes the run's folder and starts the recorder. `job` 0: told later. What fails is a note in the plan.
  void start(RunPlan& plan, pid_t job);
  void job_started(pid_t job);
  bool has_folder() const { return folder_.has_value(); }
  void tell(std::string_view word, std::int64_t number = 0, std::string text = {}) const;
  int channel_fd() const { return channel_fd_; }  // readable when the recorder has something to say; −1: no recorder
  void take_messages();
  // A child has ended; true when it was one of ours. A recorder that was killed while the job runs is started again,
  // once.
  bool take_end(pid_t pid, int status, bool job_runs);

  // The job has ended: the live watcher is killed, and none is started any more.
  void stop_watcher();
  void start_final_watcher() { start_watcher(true); }
  const bool& recorder_is_over() const { return recorder_is_over_; }
  bool was_refused() const { return was_refused_; }  // nothing could be recorded, and that was said
  const bool& watcher_is_over() const { return watcher_is_over_; }
  // The recorder writes the run's end; when it could not, the one who knows it does. `status` as of waitpid.
  void complete_run(int status);

 private:
  void start_recorder();
  void start_watcher(bool is_final);

  const RunOptions& options_;
  const InheritedSignals& signals_;
  std::optional<RunFolder> folder_;
  std::string ring_folder_;  // of the hook's rings and those of native observers
  bool has_hook_ = false;
  int lock_fd_ = -1;  // of the plan's runtime folder
  int channel_fd_ = -1;
  pid_t job_ = 0;
  pid_t recorder_ = -1;
  pid_t watcher_ = -1;
  int recorder_starts_ = 0;
  int watcher_starts_ = 0;
  bool recorder_is_over_ = true;
  bool was_refused_ = false;
  bool has_begun_ = false;  // a recorder has said that it records
  bool watcher_is_over_ = true;
  bool job_is_over_ = false;
};

}  // namespace hotlap
