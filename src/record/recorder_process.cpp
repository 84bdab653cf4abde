#include "record/recorder_process.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/version.h"
#include "collect/registry.h"
#include "record/code_version.h"
#include "record/control.h"
#include "record/identity.h"
#include "record/messages.h"
#include "record/recorder.h"
#include "store/home.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRankWaitNs = 60 * kNsPerS;  // other ranks of the job on this node, after ours has ended
constexpr std::int64_t kPollNs = 100 * kNsPerMs;
constexpr int kJobLookMs = 500;
constexpr std::int64_t kFirstCopyNs = 10 * kNsPerS;  // of a recording beside a network file system
constexpr std::int64_t kCopierWaitNs = 5 * kNsPerS;  // for a copy that is under way at the end

// How the job ended, as far as it is known.
struct JobEnd {
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string text() const {
    if (signal) return format("signal {}", *signal);
    if (exit_code) return format("exit {}", *exit_code);
    return "unknown";
  }
};

class RecorderProcess {
 public:
  RecorderProcess(const RecorderTask& task, RunFolder folder) : task_(task), folder_(std::move(folder)) {}
  ~RecorderProcess() {
    for (const int fd : {signal_fd_, control_fd_, job_fd_}) {
      if (fd >= 0) ::close(fd);
    }
  }
  RecorderProcess(const RecorderProcess&) = delete;
  RecorderProcess& operator=(const RecorderProcess&) = delete;

  Result<RecorderReport> run();

 private:
  Result<std::unique_ptr<RecordingWriter>> open_all();
  Result<std::unique_ptr<RecordingWriter>> open_recording();
  Result<void> open_signals();
  void watch_job(std::int32_t pid);
  void note_job_end();
  void say(std::string_view word, std::int64_t number, std::string text);
  std::int64_t earlier_end_ns() const;
  void note_start();
  void loop();
  void take_message(const Message& message);
  void take_signal();
  void take_control();
  void change_interval(std::int64_t interval_ns);
  void write_run_info();
  void start_copier();
  void bring_home(RecorderReport& report);
  Result<RecorderReport> finish();

  const RecorderTask& task_;
  RunFolder folder_;
  RecordingPlace place_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<NamedThread> copier_;  // what is recorded on a stand-in goes to the run folder at intervals
  int signal_fd_ = -1;
  int control_fd_ = -1;
  int job_fd_ = -1;
  bool looks_at_job_ = false;  // at intervals: Linux before 5.3 gives no descriptor that tells its end
  RunInfo looked_at_;          // which job that is
  int channel_fd_ = -1;
  JobEnd end_;
  bool is_over_ = false;
  bool ignores_hangup_ = false;  // nohup
  bool copier_is_stuck_ = false;
  std::int64_t job_end_wall_ns_ = -1;
};

Result<std::unique_ptr<RecordingWriter>> RecorderProcess::open_recording() {
  const RunInfo& run = folder_.info();
  HOTLAP_TRY_ASSIGN(place_, recording_place(folder_.path(), run.id));
  RecordingInfo info;
  info.id = new_ulid(system_clock());
  info.run_id = run.id;
  info.node = run.node;
  info.hotlap_version = hotlap_version();
  info.boot_id = boot_id(system_host());
  info.interval_ns = task_.interval_ns;
  info.attributes = host_facts(system_host());
  // Here, since the job runs already: what is slow to read costs it nothing.
  info.attributes.merge(code_version(system_host(), run.script, run.working_directory));
  return RecordingWriter::create(place_.folder / (info.id + ".hotlap"), info, {});
}

Result<std::unique_ptr<RecordingWriter>> RecorderProcess::open_all() {
  HOTLAP_TRY(open_signals());  // first: from here on a signal ends the recording in order
  return open_recording();
}

Result<void> RecorderProcess::open_signals() {
  struct sigaction hangup {};
  ignores_hangup_ = ::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
  sigset_t handled;
  ::sigfillset(&handled);
  ::sigprocmask(SIG_SETMASK, &handled, nullptr);  // before any thread: all inherit it
  signal_fd_ = ::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  return signal_fd_ >= 0 ? Result<void>() : errno_error("cannot wait for signals", errno);
}

void RecorderProcess::watch_job(std::int32_t pid) {
  if (pid == 0 || job_fd_ >= 0 || looks_at_job_) return;
  job_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  looks_at_job_ = job_fd_ < 0 && errno != ESRCH;
  note_job(system_host(), pid, looked_at_);
  recorder_->set_root(pid);
  if (job_fd_ < 0 && !looks_at_job_ && channel_fd_ < 0) note_job_end();
  RunInfo info = folder_.info();
  if (info.job_pid == pid) return;
  info.job_pid = pid;
  info.job_start_ticks = looked_at_.job_start_ticks;
  info.boot_id = looked_at_.boot_id;
  folder_.update(info).ok();
}

void RecorderProcess::say(std::string_view word, std::int64_t number, std::string text) {
  send_message(channel_fd_, {std::string(word), number, std::move(text)});
}

// Up to when the recorder before this one has recorded, by its file: it may have died up to a second after its last
// commit, and been missed later still. This one's own file has nothing yet.
std::int64_t RecorderProcess::earlier_end_ns() const {
  std::int64_t end_ns = -1;
  for (const fs::path& recording : folder_.recordings()) {
    const Result<std::unique_ptr<RecordingReader>> reader = RecordingReader::open(recording);
    if (!reader.ok()) continue;
    const Result<TimeRange> extent = (*reader)->extent();
    if (extent.ok() && extent->from_ns <= extent->to_ns) end_ns = std::max(end_ns, extent->to_ns);
  }
  return end_ns < 0 ? task_.gap_from_mono_ns : std::min(end_ns, task_.gap_from_mono_ns);
}

void RecorderProcess::note_start() {
  if (task_.gap_from_mono_ns < 0) return;
  const std::int64_t now_ns = system_clock().mono_ns();
  recorder_->note({now_ns, EventKind::kRecorderGap, now_ns - earlier_end_ns(), {}});
  recorder_->count_loss("record.restarts", 1);
}

Result<RecorderReport> RecorderProcess::run() {
  channel_fd_ = task_.channel_fd;
  Result<std::unique_ptr<RecordingWriter>> opened = open_all();
  if (!opened.ok()) {
    HOTLAP_LOG_ERROR("{}", opened.error().message);
    say("refused", 0, opened.error().message);
    return std::move(opened).error();
  }
  std::unique_ptr<RecordingWriter> writer = std::move(opened).value();
  control_fd_ = open_control(folder_.path());  // without it the interval cannot be changed; nothing else needs it
  RecorderOptions options;
  options.host = &system_host();
  options.clock = &system_clock();
  options.collectors = all_collectors();
  options.interval_ns = task_.interval_ns;
  options.tree = {.root_pid = task_.job_pid,
                  .supervisor_pid = task_.supervisor_pid,
                  .run_id = folder_.info().id,
                  .expects_hook = task_.has_hook && !task_.ring_folder.empty()};
  options.ring_folder = task_.ring_folder;
  options.owner_uid = ::geteuid();
  recorder_ = std::make_unique<Recorder>(std::move(options), std::move(writer));
  note_start();
  recorder_->start();
  watch_job(task_.job_pid);
  say("ready", 0, {});
  if (place_.is_stand_in) {
    say("say", 0, place_.why);
    start_copier();
  }
  loop();
  return finish();
}

void RecorderProcess::loop() {
  while (!is_over_) {
    std::array<pollfd, 4> waited{pollfd{signal_fd_, POLLIN, 0}, pollfd{control_fd_, POLLIN, 0},
                                 pollfd{job_fd_, POLLIN, 0}, pollfd{channel_fd_, POLLIN, 0}};
    if (::poll(waited.data(), waited.size(), looks_at_job_ ? kJobLookMs : -1) < 0 && errno != EINTR) break;
    if ((waited[0].revents & POLLIN) != 0) take_signal();
    if ((waited[1].revents & POLLIN) != 0) take_control();
    if (waited[3].revents != 0) {
      bool is_closed = false;
      while (const auto message = receive_message(channel_fd_, is_closed)) take_message(*message);
      if (is_closed) {
        // The supervisor is gone, whatever ended it: the job goes on, and so do we.
        ::close(std::exchange(channel_fd_, -1));
        if (job_fd_ < 0 && !looks_at_job_) is_over_ = true;
      }
    }
    const bool is_told = (waited[2].revents & POLLIN) != 0;
    if (is_told || (looks_at_job_ && !is_job_alive(system_host(), looked_at_))) note_job_end();
  }
  // Started by the same launcher, recorded by us: other ranks of this node.
  const std::int64_t until_ns = system_clock().mono_ns() + kRankWaitNs;
  while (!end_.signal && recorder_->has_live_rank() && system_clock().mono_ns() < until_ns) {
    if (!system_clock().sleep_until(system_clock().mono_ns() + kPollNs, signal_fd_)) break;
  }
}

void RecorderProcess::note_job_end() {
  if (job_fd_ >= 0) ::close(std::exchange(job_fd_, -1));
  looks_at_job_ = false;
  if (job_end_wall_ns_ < 0) job_end_wall_ns_ = system_clock().read().wall_ns;
  // The supervisor says when all is over (an upload may follow); without it nobody tells how the job ended.
  if (channel_fd_ < 0) is_over_ = true;
}

void RecorderProcess::take_message(const Message& message) {
  const std::int64_t t_ns = system_clock().mono_ns();
  const auto number = static_cast<int>(message.number);
  if (message.word == "job") {
    watch_job(number);
  } else if (message.word == "phase") {
    recorder_->note({t_ns, EventKind::kPhase, 0, std::string(to_string(static_cast<Phase>(number)))});
  } else if (message.word == "transfer") {
    recorder_->note({t_ns, EventKind::kTransfer, message.number, message.text});
  } else if (message.word == "signal") {
    recorder_->note({t_ns, EventKind::kSignal, message.number, {}});
  } else if (message.word == "stopped") {
    recorder_->note({t_ns, EventKind::kJobStopped, 0, {}});
  } else if (message.word == "continued") {
    recorder_->note({t_ns, EventKind::kJobContinued, 0, {}});
  } else if (message.word == "exit" || message.word == "killed") {
    (message.word == "exit" ? end_.exit_code : end_.signal) = number;
    if (job_end_wall_ns_ < 0) job_end_wall_ns_ = system_clock().read().wall_ns;
  } else if (message.word == "end") {
    is_over_ = true;
  }
}

void RecorderProcess::take_signal() {
  signalfd_siginfo info{};
  while (::read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto number = static_cast<int>(info.ssi_signo);
    const bool ends = number == SIGINT || number == SIGQUIT || (number == SIGHUP && !ignores_hangup_);
    if (number == SIGTERM || (ends && task_.ends_by_signal)) is_over_ = true;
  }
}

void RecorderProcess::take_control() {
  std::array<char, 512> buffer{};
  const ssize_t n = ::read(control_fd_, buffer.data(), buffer.size());
  if (n <= 0) return;
  std::string_view rest(buffer.data(), static_cast<std::size_t>(n));
  std::string_view line;
  while (next_line(rest, line)) {
    const std::string_view word = next_word(line);
    if (word == "interval") {
      if (const auto interval_ns = parse_i64(next_word(line))) change_interval(*interval_ns);
    } else if (word == "profile") {
      if (const auto argument = parse_u64(next_word(line))) recorder_->ask_profile(*argument);
    }
  }
}

void RecorderProcess::change_interval(std::int64_t interval_ns) {
  recorder_->set_interval(interval_ns);
  RunInfo info = folder_.info();
  info.interval_ns = recorder_->interval_ns();
  if (const Result<void> written = folder_.update(info); !written.ok()) {
    HOTLAP_LOG_WARNING("{}", written.error().message);
  }
}

void RecorderProcess::write_run_info() {
  // The folder may have been changed or deleted meanwhile; what others wrote (a name) stays.
  folder_.reload().ok();
  RunInfo info = folder_.info();
  info.end_wall_ns = job_end_wall_ns_ >= 0 ? job_end_wall_ns_ : system_clock().read().wall_ns;
  std::error_code ignored;
  if (!fs::exists(info.recording_folder, ignored)) info.recording_folder.clear();
  info.exit_code = end_.exit_code;
  info.exit_signal = end_.signal;
  if (end_.signal) {
    info.status = RunStatus::kKilled;
  } else if (end_.exit_code) {
    info.status = *end_.exit_code == 0 ? RunStatus::kFinished : RunStatus::kFailed;
  } else if (job_end_wall_ns_ >= 0) {
    info.status = RunStatus::kEnded;  // only its parent learns how
  } else {
    info.status = task_.ends_by_signal && task_.job_pid == 0 ? RunStatus::kFinished : RunStatus::kUnknown;
  }
  if (const Result<void> written = folder_.update(info); !written.ok()) {
    HOTLAP_LOG_ERROR("{}", written.error().message);
  }
}

// On a thread of its own: a network file system may take its time, or never answer.
void RecorderProcess::start_copier() {
  RunInfo info = folder_.info();
  info.recording_folder = place_.folder.native();
  folder_.update(info).ok();
  copier_ = std::make_unique<NamedThread>(
      "copy-home", [from = place_.folder, to = folder_.path()](const std::stop_token& stop, const WakeEvent& wake) {
        std::int64_t next_ns = system_clock().mono_ns() + kFirstCopyNs;
        while (!stop.stop_requested()) {
          if (!system_clock().sleep_until(next_ns, wake.fd())) {
            wake.clear();
            continue;
          }
          next_ns = system_clock().mono_ns() + kStandInCopyPeriodS * kNsPerS;
          if (const Result<void> copied = move_recordings(from, to); !copied.ok()) {
            HOTLAP_LOG_WARNING("not copied to the run folder, tried again: {}", copied.error().message);
          }
        }
      });
}

void RecorderProcess::bring_home(RecorderReport& report) {
  copier_->request_stop();
  const std::int64_t until_ns = system_clock().mono_ns() + kCopierWaitNs;
  copier_is_stuck_ = !join_or_leave_behind(std::move(copier_), system_clock(), until_ns);
  if (copier_is_stuck_) {
    report.note =
        format("the recording stays in {}: the run folder's file system does not answer", place_.folder.native());
    return;
  }
  const Result<void> moved = move_recordings(place_.folder, folder_.path());
  if (!moved.ok()) report.note = format("the recording stays in {}: {}", place_.folder.native(), moved.error().message);
}

Result<RecorderReport> RecorderProcess::finish() {
  const Recorder::Ending ending = recorder_->finish(end_.text());
  if (control_fd_ >= 0) ::unlink((folder_.path() / kControlFifo).c_str());
  RecorderReport report{.steps = recorder_->steps(), .folder = folder_.path(), .note = {}};
  if (!ending.closed.ok()) {
    HOTLAP_LOG_ERROR("the recording was not closed: {}", ending.closed.error().message);
    report.note = ending.closed.error().message;
  }
  if (place_.is_stand_in) bring_home(report);
  if (!copier_is_stuck_) write_run_info();
  if (!report.note.empty()) say("say", 0, report.note);
  if (copier_is_stuck_) std::_Exit(0);
  if (!ending.stuck_collector.empty()) {
    HOTLAP_LOG_WARNING("collector {} does not return from the kernel: left behind", ending.stuck_collector);
    std::_Exit(0);
  }
  return report;
}

}  // namespace

Result<RecorderReport> record_until_end(const RecorderTask& task) {
  // One heap for all threads: each of glibc's own would cost some hundred KiB.
  ::mallopt(M_ARENA_MAX, 1);
  if (task.logs_to_file && task.channel_fd >= 0) ::prctl(PR_SET_NAME, "hotlap-recorder");
  HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::open(task.run_folder));
  if (const fs::path log = task.run_folder / "recorder.log"; task.logs_to_file && log_to_file(log.c_str())) {
    adopt_owner(log);
  }
  RecorderProcess process(task, std::move(folder));
  return process.run();
}

}  // namespace hotlap
