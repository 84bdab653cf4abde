#include "record/group_witness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/host.h"
#include "base/text.h"
#include "record/spawn.h"

namespace hotlap {
namespace {

// The kernel signals a group in one go; this is time for the other process to be scheduled.
constexpr int kReportWaitMs = 20;
// The kernel tells nobody but its parent that a process was stopped: we have to look.
constexpr int kLookMs = 1000;
constexpr int kLookAgainMs = 100;  // a stop of the whole group, or one by a terminal, is over or complete by then
constexpr std::size_t kTextBytesMax = 512;

// Where the kernel shows our command line from (proc(5), fields 48 and 49); empty when it does not say.
std::pair<std::uintptr_t, std::uintptr_t> argument_range(std::string_view stat) {
  std::string_view rest = stat.substr(std::min(stat.size(), stat.rfind(')') + 1));
  for (int field = 3; field < 48; ++field) next_word(rest);
  const auto from = parse_u64(next_word(rest));
  const auto to = parse_u64(next_word(rest));
  return from && to && *to > *from ? std::pair{*from, *to} : std::pair<std::uintptr_t, std::uintptr_t>{};
}

// What `pkill -f 'hotlap run'` and `killall hotlap` must not match: a signal that they send to the supervisor would
// reach us as well, and look like one to the group, which the job has got.
void take_own_name() {
  ::prctl(PR_SET_NAME, "hotlap-witness");
  const Result<std::string> stat = system_host().read_text("/proc/self/stat");
  if (!stat.ok()) return;
  const auto [from, to] = argument_range(*stat);
  if (to <= from) return;
  constexpr std::string_view kTitle = "hl-witness";
  char* const arguments = reinterpret_cast<char*>(from);  // NOLINT(performance-no-int-to-ptr): the kernel's word for it
  std::fill_n(arguments, to - from, '\0');
  std::copy_n(kTitle.data(), std::min<std::size_t>(kTitle.size(), to - from - 1), arguments);
}

// Looks at intervals whether the supervisor was stopped, and stops the job as well, once per stop: who then continues
// the job by itself is not contradicted. What continues the supervisor needs no help: it passes a SIGCONT on.
class StopWatch {
 public:
  StopWatch(pid_t supervisor, int job_fd) : job_fd_(job_fd) {
    if (job_fd < 0) return;
    stat_fd_ = ::open(format("/proc/{}/stat", supervisor).c_str(), O_RDONLY | O_CLOEXEC);
    schedule_fd_ = ::open(format("/proc/{}/schedstat", supervisor).c_str(), O_RDONLY | O_CLOEXEC);
  }
  int wait_ms() const { return stat_fd_ < 0 ? -1 : suspected_.empty() ? kLookMs : kLookAgainMs; }
  void look() {
    const std::string stop = current_stop();
    const bool is_new = !stop.empty() && stop != passed_on_;
    if (is_new && stop == suspected_) {
      passed_on_ = stop;
      tell_job(SIGSTOP);
      if (current_stop() != stop) tell_job(SIGCONT);  // it was continued in between: its SIGCONT came too early
    }
    suspected_ = is_new && stop != passed_on_ ? stop : std::string();
  }

 private:
  // Empty: the supervisor is not stopped. Else what tells this stop from another: how much it has run so far.
  std::string current_stop() const {
    const std::string stat = text_of(stat_fd_);  // "4711 (hotlap) T 4710 …"
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.compare(name_end, 3, ") T") != 0) return {};
    return "stopped after " + text_of(schedule_fd_);
  }
  static std::string text_of(int fd) {
    std::string text(kTextBytesMax, '\0');
    const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return text;
  }
  void tell_job(int number) const { ::syscall(SYS_pidfd_send_signal, job_fd_, number, nullptr, 0); }

  int job_fd_;
  int stat_fd_ = -1;
  int schedule_fd_ = -1;
  std::string suspected_;  // seen once
  std::string passed_on_;
};

[[noreturn]] void witness(int reports_fd, int job_fd, pid_t supervisor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(0);
  take_own_name();
  const int reports = ::dup2(reports_fd, 3) < 0 ? -1 : 3;
  const int job = job_fd >= 0 && ::dup2(job_fd, 4) >= 0 ? 4 : -1;
  close_from(job >= 0 ? 5 : 4);
  for (int fd = 0; fd < 3; ++fd) ::close(fd);  // the job's output must not seem open because of us
  sigset_t all;
  ::sigfillset(&all);
  const int signals = ::signalfd(-1, &all, SFD_CLOEXEC);
  std::array<pollfd, 2> waited{pollfd{signals, POLLIN, 0}, pollfd{job, POLLIN, 0}};
  StopWatch stop_watch(supervisor, job);
  for (;;) {
    const int ready = ::poll(waited.data(), waited.size(), stop_watch.wait_ms());
    if (ready < 0 && errno != EINTR) ::_exit(0);
    if (ready == 0) stop_watch.look();
    if ((waited[0].revents & POLLIN) != 0) {
      signalfd_siginfo info{};
      if (::read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
      const auto number = static_cast<unsigned char>(info.ssi_signo);
      if (::write(reports, &number, 1) != 1) continue;
    }
    if ((waited[1].revents & POLLIN) != 0) {
      ::kill(supervisor, SIGCONT);
      waited[1].fd = -1;
    }
  }
}

}  // namespace

GroupWitness::~GroupWitness() { stop(); }

void GroupWitness::start(int job_fd) {
  std::array<int, 2> pipe_fds{-1, -1};
  if (::pipe2(pipe_fds.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  const pid_t supervisor = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) witness(pipe_fds[1], job_fd, supervisor);
  ::close(pipe_fds[1]);
  reports_fd_ = pipe_fds[0];
  if (pid_ < 0) ::close(std::exchange(reports_fd_, -1));
}

void GroupWitness::stop() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  if (reports_fd_ >= 0) ::close(std::exchange(reports_fd_, -1));
}

void GroupWitness::drain(int timeout_ms) {
  pollfd waited{reports_fd_, POLLIN, 0};
  if (::poll(&waited, 1, timeout_ms) <= 0) return;
  std::array<unsigned char, 64> numbers{};
  const ssize_t n = ::read(reports_fd_, numbers.data(), numbers.size());
  for (ssize_t i = 0; i < n; ++i) seen_.set(numbers[static_cast<std::size_t>(i)] % seen_.size());
}

bool GroupWitness::has_seen(int signal_number) {
  if (reports_fd_ < 0 || signal_number < 0) return false;
  const auto bit = static_cast<std::size_t>(signal_number) % seen_.size();
  for (int waited_ms = 0; !seen_.test(bit) && waited_ms < kReportWaitMs; waited_ms += kReportWaitMs / 4) {
    drain(kReportWaitMs / 4);
  }
  const bool was_seen = seen_.test(bit);
  seen_.reset(bit);
  return was_seen;
}

}  // namespace hotlap
