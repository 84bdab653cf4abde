#include "record/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "model/event.h"
#include "record/companions.h"
#include "record/group_witness.h"
#include "record/identity.h"
#include "record/signal_source.h"
#include "record/spawn.h"
#include "record/transfer.h"

namespace hotlap {
namespace {

constexpr std::int64_t kRecorderWaitNs = 10 * kNsPerS;  // for the recording to be closed, after the job's end
constexpr std::int64_t kAllWaitNs = 20 * kNsPerS;       // for everything of ours: somebody waits for us, and pays
constexpr int kNotRun = 126;
constexpr std::int64_t kSecondTermNs = kNsPerS;  // closer together they are one request: timeout(1) signals twice

class Supervisor {
 public:
  explicit Supervisor(const RunOptions& options)
      : options_(options), inherited_(block_signals()), companions_(options, inherited_) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int run();

 private:
  int start_job();
  int transfer(const std::string& line, Phase phase);
  int wait_for(pid_t child);
  void take(const Signal& signal);
  void pass_on(const Signal& signal);
  void reap();
  void finish_recording(int status, bool has_verdict);
  bool wait_until(std::int64_t deadline_ns, const bool& is_done);
  [[noreturn]] void die_by(int signal_number) const;

  const RunOptions& options_;
  InheritedSignals inherited_;
  SignalSource signals_;
  Companions companions_;
  RunPlan plan_;
  GroupWitness witness_;
  pid_t waited_ = -1;  // the job, or the transfer that runs
  pid_t job_ = -1;
  int waited_status_ = 0;
  bool waited_is_over_ = false;
  bool was_interrupted_ = false;  // a signal came after the job's end: leave at once
  std::int64_t first_term_ns_ = -1;
  std::int64_t kill_at_ns_ = INT64_MAX;
};

int Supervisor::run() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what the job leaves behind stays in sight
  plan_ = plan_run(options_);

  if (options_.download) {
    companions_.start(plan_, 0);
    const int status = transfer(*options_.download, Phase::kDownloading);
    if (status != 0) {
      companions_.say(format("the download failed: the job was not started ({})", *options_.download));
      finish_recording(status, false);
      if (WIFSIGNALED(status)) die_by(WTERMSIG(status));
      return WEXITSTATUS(status);
    }
  }
  if (const int refused = start_job(); refused != 0) return refused;
  if (!companions_.has_folder()) companions_.start(plan_, job_);
  companions_.tell("phase", static_cast<int>(Phase::kInitialisation));
  for (const std::string& note : plan_.notes) companions_.say(note);
  const int status = wait_for(job_);
  companions_.tell(WIFSIGNALED(status) ? "killed" : "exit",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  if (options_.upload && !WIFSIGNALED(status) && transfer(*options_.upload, Phase::kUploading) != 0) {
    companions_.say(format("the upload failed ({})", *options_.upload));
  }
  witness_.stop();
  finish_recording(status, true);
  if (WIFSIGNALED(status)) die_by(WTERMSIG(status));
  return WEXITSTATUS(status);
}

int Supervisor::start_job() {
  SpawnFailure failure;
  Result<pid_t> pid = spawn_job(options_.command, plan_.environment, inherited_, failure);
  if (!pid.ok()) {
    const std::string line = format("hotlap: {}\n", pid.error().message);
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return failure.exit_code();
    if (companions_.has_folder()) finish_recording(failure.exit_code() << 8, false);
    if (plan_.runtime) plan_.runtime->remove();
    return failure.exit_code();
  }
  job_ = waited_ = *pid;
  const int job_fd = static_cast<int>(::syscall(SYS_pidfd_open, job_, 0));
  witness_.start(job_fd);
  if (job_fd >= 0) ::close(job_fd);
  // Whoever reads the job's output, or writes its input, must see the job's end and not ours.
  const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (!options_.upload) ::dup2(null_fd, STDIN_FILENO);
  if (!options_.upload) ::dup2(null_fd, STDOUT_FILENO);
  ::close(null_fd);
  note_job(system_host(), job_, plan_.info);
  companions_.job_started(job_);
  return 0;
}

int Supervisor::transfer(const std::string& line, Phase phase) {
  companions_.tell("phase", static_cast<int>(phase));
  const MovedBytes before = moved_bytes(system_host());
  const std::int64_t from_ns = system_clock().mono_ns();
  SpawnFailure failure;
  const Result<pid_t> pid =
      spawn_job(shell_command(line), job_environment(environ, {plan_.info.id, {}, {}}), inherited_, failure);
  if (!pid.ok()) return failure.exit_code() << 8;
  const int status = wait_for(*pid);
  const TransferSummary summary = summarise_transfer(before, moved_bytes(system_host()),
                                                     system_clock().mono_ns() - from_ns, phase == Phase::kDownloading);
  companions_.tell("transfer", summary.bytes, format("{}: {}", to_string(phase), summary.text));
  if (status == 0) companions_.say(format("{}: {}", to_string(phase), summary.text));
  return status;
}

int Supervisor::wait_for(pid_t child) {
  waited_ = child;
  waited_is_over_ = false;
  wait_until(INT64_MAX, waited_is_over_);
  waited_ = -1;
  kill_at_ns_ = INT64_MAX;
  return waited_status_;
}

// Serves signals, children and the recorder's words until `is_done`; false when the time is over.
bool Supervisor::wait_until(std::int64_t deadline_ns, const bool& is_done) {
  while (!is_done) {
    const std::int64_t until_ns = std::min(deadline_ns, kill_at_ns_);
    const std::int64_t left_ns = until_ns - system_clock().mono_ns();
    if (left_ns <= 0 && kill_at_ns_ <= deadline_ns && kill_at_ns_ != INT64_MAX) {
      kill_at_ns_ = INT64_MAX;
      for (const pid_t pid : process_tree(waited_)) {
        if (pid > 0) ::kill(pid, SIGKILL);
      }
      continue;
    }
    if (left_ns <= 0 || was_interrupted_) return false;
    if (signals_.wait(left_ns, companions_.channel_fd())) companions_.take_messages();
    while (const std::optional<Signal> signal = signals_.next()) take(*signal);
  }
  return true;
}

void Supervisor::take(const Signal& signal) {
  if (signal.number == SIGCHLD) return reap();
  if (signal.number != SIGPIPE) pass_on(signal);  // that one is of our own writing
}

void Supervisor::pass_on(const Signal& signal) {
  const int number = signal.number;
  if (waited_ < 0 || waited_is_over_) {
    was_interrupted_ |= number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
    return;
  }
  // The job is in our group: what the terminal or `kill %1` sends has reached it. What was meant for us alone was meant
  // for it.
  const bool has_it = signal.code == SI_KERNEL || witness_.has_seen(number);
  if (!has_it && signal.sender != waited_) ::kill(waited_, number);
  if (number != SIGWINCH && number != SIGCONT) companions_.tell("signal", number);
  if (number != SIGTERM || !options_.grace_ns) return;
  const std::int64_t now_ns = system_clock().mono_ns();
  if (first_term_ns_ < 0) {
    first_term_ns_ = now_ns;
    kill_at_ns_ = now_ns + *options_.grace_ns;
  } else if (now_ns - first_term_ns_ >= kSecondTermNs) {
    kill_at_ns_ = now_ns;
  }
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    const bool has_ended = WIFEXITED(status) || WIFSIGNALED(status);
    if (pid == waited_) {
      if (has_ended) {
        waited_status_ = status;
        waited_is_over_ = true;
      } else if (WIFCONTINUED(status)) {
        companions_.tell("continued");
      } else {
        companions_.tell("stopped");
        // Stopped by job control: whoever waits for us must see it. SIGCONT to the group continues both.
        const int by = WSTOPSIG(status);
        if (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU) ::kill(::getpid(), SIGSTOP);
      }
    } else if (has_ended) {
      companions_.take_end(pid, status, waited_ > 0 && !waited_is_over_);
    }
  }
}

// `has_verdict`: there was a job to judge.
void Supervisor::finish_recording(int status, bool has_verdict) {
  if (!companions_.has_folder()) {
    if (plan_.runtime) plan_.runtime->remove();
    return;
  }
  const std::int64_t until_ns = system_clock().mono_ns() + kAllWaitNs;
  companions_.stop_watcher();
  wait_until(system_clock().mono_ns() + kNsPerS, companions_.watcher_is_over());
  companions_.tell(WIFSIGNALED(status) ? "killed" : "exit",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  companions_.tell("end");
  if (!wait_until(system_clock().mono_ns() + kRecorderWaitNs, companions_.recorder_is_over()) && !was_interrupted_) {
    return companions_.say("the recorder is still writing: the run will be complete when it has ended");
  }
  companions_.complete_run(status);
  if (companions_.recorder_is_over() && plan_.runtime) plan_.runtime->remove();
  if (was_interrupted_ || companions_.was_refused() || !has_verdict) return;
  companions_.start_final_watcher();
  if (!wait_until(until_ns, companions_.watcher_is_over()) && !was_interrupted_) {
    companions_.say("the verdict takes longer: hotlap why will have it");
  }
}

// So that whoever waits for us sees what it would have seen of the job: killed by that signal.
void Supervisor::die_by(int signal_number) const {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // the job has left its own core file, if it may
  ::signal(signal_number, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal_number);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(::getpid(), signal_number);
  ::_exit(128 + signal_number);
}

}  // namespace

int run_supervised(const RunOptions& options) {
  // Where we were started with closed standard descriptors, ours must not take their numbers. The job still sees them
  // closed.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  // Inside a job that is recorded already (a launcher's script that also says `hotlap run`): nothing of ours is needed.
  const std::string rings(EnvironmentView(environ).get("HOTLAP_RING_DIR"));
  if (!options.download && !options.upload && !rings.empty() && ::access(rings.c_str(), W_OK) == 0) {
    const std::string_view told("hotlap: part of a job that is recorded already\n");
    if (!options.is_quiet && ::write(STDERR_FILENO, told.data(), told.size()) < 0) return kNotRun;
    const SpawnFailure failure = become_job(options.command);
    const std::string line = format("hotlap: {}\n", describe(failure, options.command[0]).message);
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return kNotRun;
    return failure.exit_code();
  }
  return Supervisor(options).run();
}

}  // namespace hotlap
