#include "base/thread.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include "base/log.h"

namespace hotlap {

WakeEvent::WakeEvent() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WakeEvent::~WakeEvent() {
  if (fd_ >= 0) ::close(fd_);
}

void WakeEvent::ring() const {
  const std::uint64_t one = 1;
  while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {}
}

void WakeEvent::clear() const {
  std::uint64_t count = 0;
  while (::read(fd_, &count, sizeof count) < 0 && errno == EINTR) {}
}

namespace {

void end_by(const std::string& thread, const char* exception, OnException on_exception) {
  HOTLAP_LOG_ERROR("thread {} ended: {}", thread, exception);
  if (on_exception == OnException::kEndsThread) return;
  // The log may be a file that nobody looks at now.
  std::fprintf(stderr, "hotlap: internal error: thread %s ended: %s\n", thread.c_str(), exception);
  std::abort();
}

}  // namespace

NamedThread::NamedThread(std::string name, Body body, OnException on_exception)
    : name_(std::move(name)), thread_([this, run = std::move(body), on_exception](std::stop_token stop) {
        ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
        try {
          run(std::move(stop), wake_);
        } catch (const std::exception& error) {
          end_by(name_, error.what(), on_exception);
        } catch (...) {
          end_by(name_, "unknown exception", on_exception);
        }
        has_ended_.store(true, std::memory_order_release);
      }) {}

NamedThread::~NamedThread() {
  request_stop();
  join();
}

void NamedThread::request_stop() {
  thread_.request_stop();
  wake_.ring();
}

void NamedThread::join() {
  if (thread_.joinable()) thread_.join();
}

bool join_or_leave_behind(std::unique_ptr<NamedThread> thread, const Clock& clock, std::int64_t until_mono_ns) {
  constexpr std::int64_t kPollNs = 5 * kNsPerMs;
  while (!thread->has_ended() && clock.mono_ns() < until_mono_ns) clock.sleep_until(clock.mono_ns() + kPollNs, -1);
  if (thread->has_ended()) {
    thread->join();
    return true;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): holds what must outlive every destructor
  static auto* const hanging = new std::vector<std::unique_ptr<NamedThread>>;
  thread->detach();
  hanging->push_back(std::move(thread));
  return false;
}

}  // namespace hotlap
