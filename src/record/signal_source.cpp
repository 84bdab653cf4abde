#include "record/signal_source.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::int64_t kLookNs = 100 * kNsPerMs;

sigset_t all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  return all;
}

}  // namespace

SignalSource::SignalSource() {
  const sigset_t all = all_signals();
  fd_ = ::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalSource::~SignalSource() {
  if (fd_ >= 0) ::close(fd_);
}

bool SignalSource::wait(std::int64_t timeout_ns, int other_fd) {
  const std::int64_t wait_ns = fd_ >= 0 ? timeout_ns : std::min(timeout_ns, kLookNs);
  const timespec timeout{wait_ns / kNsPerS, wait_ns % kNsPerS};
  if (fd_ >= 0) {
    std::array<pollfd, 2> waited{pollfd{fd_, POLLIN, 0}, pollfd{other_fd, POLLIN, 0}};
    return ::ppoll(waited.data(), waited.size(), &timeout, nullptr) > 0 && waited[1].revents != 0;
  }
  const sigset_t all = all_signals();
  siginfo_t info{};
  if (::sigtimedwait(&all, &info, &timeout) > 0) taken_ = Signal{info.si_signo, info.si_code, info.si_pid};
  return true;
}

std::optional<Signal> SignalSource::next() {
  if (fd_ < 0) return std::exchange(taken_, std::nullopt);
  signalfd_siginfo info{};
  if (::read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return Signal{static_cast<int>(info.ssi_signo), info.ssi_code, static_cast<pid_t>(info.ssi_pid)};
}

}  // namespace hotlap
