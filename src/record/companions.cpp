#include "record/companions.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "record/messages.h"

namespace hotlap {
namespace {

constexpr std::uint64_t kWatcherAddressBytes = std::uint64_t{1} << 30;
constexpr int kWatcherNice = 10;
constexpr int kRecorderStartsMax = 2;
constexpr int kWatcherStartsMax = 3;

}  // namespace

Companions::~Companions() {
  if (channel_fd_ >= 0) ::close(channel_fd_);
}

void Companions::say(std::string_view line) const {
  if (options_.is_quiet) return;
  const std::string text = format("hotlap: {}\n", strip_control(line));
  // One call: lines of several processes do not mix.
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void Companions::tell(std::string_view word, std::int64_t number, std::string text) const {
  send_message(channel_fd_, {std::string(word), number, std::move(text)});
}

void Companions::start(RunPlan& plan, pid_t job) {
  if (!plan.records) return;
  if (::access(kOwnProgram, F_OK) != 0) {
    plan.notes.emplace_back("not recorded: /proc is not mounted");
    return;
  }
  job_ = job;
  plan.info.start_wall_ns = system_clock().read().wall_ns;
  Result<RunFolder> folder = RunFolder::create(plan.home, plan.info);
  if (!folder.ok()) {
    plan.notes.push_back(format("not recorded: {}", folder.error().message));
    return;
  }
  folder_ = std::move(*folder);
  has_hook_ = !plan.delivery.ring_folder.empty();
  ring_folder_ = has_hook_ ? plan.delivery.ring_folder : plan.delivery.observer_folder;
  if (plan.runtime) lock_fd_ = plan.runtime->lock_fd();
  start_recorder();
}

void Companions::job_started(pid_t job) {
  job_ = job;
  tell("job", job);
}

void Companions::start_recorder() {
  int recorder_end = -1;
  if (channel_fd_ >= 0) ::close(std::exchange(channel_fd_, -1));
  if (const Result<void> made = make_channel(channel_fd_, recorder_end); !made.ok()) {
    was_refused_ = true;
    return say(format("not recorded: {}", made.error().message));
  }
  OwnProcess process{
      .words = {"_recorder", "--folder", folder_->path().native(), "--interval-ns", format("{}", options_.interval_ns),
                "--supervisor", format("{}", ::getpid()), "--job", format("{}", std::max(job_, 0))},
      .descriptors = {recorder_end}};
  if (!ring_folder_.empty()) process.words.insert(process.words.end(), {"--rings", ring_folder_});
  if (!has_hook_) process.words.emplace_back("--no-hook");
  if (recorder_starts_++ > 0) {
    process.words.insert(process.words.end(), {"--gap-from", format("{}", system_clock().mono_ns())});
  }
  if (lock_fd_ >= 0) process.descriptors.push_back(lock_fd_);  // held while the recorder lives
  const Result<pid_t> pid = spawn_own(process, signals_);
  ::close(recorder_end);
  if (!pid.ok()) return say(format("not recorded: {}", pid.error().message));
  recorder_ = *pid;
  recorder_is_over_ = false;
}

void Companions::start_watcher(bool is_final) {
  OwnProcess process{.words = {"_watch", "--folder", folder_->path().native(), is_final ? "--final" : "--live"},
                     .keeps_stderr = !options_.is_quiet,
                     .dies_with_us = !is_final,
                     .nice = is_final ? 0 : kWatcherNice,
                     .address_bytes_max = kWatcherAddressBytes};
  process.words.insert(process.words.end(), options_.watcher_words.begin(), options_.watcher_words.end());
  ++watcher_starts_;
  const Result<pid_t> pid = spawn_own(process, signals_);
  if (!pid.ok()) return;
  watcher_ = *pid;
  watcher_is_over_ = false;
}

void Companions::take_messages() {
  bool is_closed = channel_fd_ < 0;
  while (!is_closed) {
    const std::optional<Message> message = receive_message(channel_fd_, is_closed);
    if (!message) break;
    if (message->word == "say") say(message->text);
    if (message->word == "refused") {
      say("the job goes on without being recorded: " + message->text);
      was_refused_ = true;
    }
    has_begun_ |= message->word == "ready";
    // There is something to watch now.
    const bool is_wanted = watcher_ < 0 && !options_.is_quiet && !job_is_over_;
    if (message->word == "ready" && is_wanted) start_watcher(false);
  }
  if (is_closed && channel_fd_ >= 0) ::close(std::exchange(channel_fd_, -1));
}

bool Companions::take_end(pid_t pid, int status, bool job_runs) {
  if (pid == watcher_) {
    watcher_ = -1;
    watcher_is_over_ = true;
    if (job_runs && WIFSIGNALED(status) && watcher_starts_ < kWatcherStartsMax) start_watcher(false);
    return true;
  }
  if (pid != recorder_) return false;
  take_messages();
  recorder_ = -1;
  recorder_is_over_ = true;
  const bool has_failed = WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
  if (has_failed && !job_runs && !has_begun_ && !was_refused_) {
    was_refused_ = true;  // a short job: nothing else would tell
    say(format("not recorded: the recorder could not start ({} {})", WIFSIGNALED(status) ? "signal" : "exit code",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
  }
  if (!has_failed || !job_runs) return true;
  if (WIFSIGNALED(status) && recorder_starts_ < kRecorderStartsMax) {
    start_recorder();
  } else if (!was_refused_) {
    say("the recorder ended: the job goes on without being recorded; see recorder.log in the run folder");
  }
  return true;
}

void Companions::stop_watcher() {
  job_is_over_ = true;
  if (watcher_ > 0) ::kill(watcher_, SIGKILL);
}

void Companions::complete_run(int status) {
  if (!folder_->reload().ok() || folder_->info().status != RunStatus::kRunning) return;
  RunInfo info = folder_->info();
  info.end_wall_ns = system_clock().read().wall_ns;
  if (WIFSIGNALED(status)) info.exit_signal = WTERMSIG(status);
  if (WIFEXITED(status)) info.exit_code = WEXITSTATUS(status);
  info.status = info.exit_signal ? RunStatus::kKilled : status == 0 ? RunStatus::kFinished : RunStatus::kFailed;
  static_cast<void>(folder_->update(info).ok());  // the folder may be gone: nothing is left to be said then
}

}  // namespace hotlap
