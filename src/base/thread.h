#pragma once
// Threads with a name and a way to end them, locks that clang can check, and a check that a class stays on one thread.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/clock.h"

#if defined(__clang__)
#define HOTLAP_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define HOTLAP_THREAD_ANNOTATION(x)
#endif
#define HOTLAP_GUARDED_BY(x) HOTLAP_THREAD_ANNOTATION(guarded_by(x))
#define HOTLAP_REQUIRES(x) HOTLAP_THREAD_ANNOTATION(requires_capability(x))

namespace hotlap {

class HOTLAP_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() HOTLAP_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() HOTLAP_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class HOTLAP_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HOTLAP_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() HOTLAP_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Thread-safe: a descriptor that becomes readable when it is rung, for Clock::sleep_until and poll.
class WakeEvent {
 public:
  WakeEvent();
  ~WakeEvent();
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;
  int fd() const { return fd_; }  // −1 when the system has no descriptor left: sleeps then end at their deadline
  void ring() const;
  void clear() const;

 private:
  int fd_;
};

// What an exception that leaves a thread's body ends.
enum class OnException : std::uint8_t {
  kEndsThread,
  kEndsProcess,  // by abort: without this thread the process would idle, and look well to whoever would restart it
};

// A std::jthread with a name of at most 15 characters (the kernel's limit) and an event that is rung when it is asked
// to stop, so that no sleep outlasts the request. An exception that leaves `body` is logged. The destructor asks it to
// stop and joins.
class NamedThread {
 public:
  using Body = std::function<void(std::stop_token stop, const WakeEvent& wake)>;
  NamedThread(std::string name, Body body, OnException on_exception = OnException::kEndsThread);
  ~NamedThread();
  NamedThread(const NamedThread&) = delete;
  NamedThread& operator=(const NamedThread&) = delete;

  void request_stop();
  void wake() const { wake_.ring(); }
  // True once the body has returned; then join() does not block.
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  void join();
  // Gives up the right to join it, so that the system frees what it holds when it ends after all.
  void detach() { thread_.detach(); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  WakeEvent wake_;
  std::atomic<bool> has_ended_{false};
  std::jthread thread_;  // last: starts when everything above exists
};

// Joins `thread`, which was asked to stop, once its body returns, and waits for that until `until_mono_ns` of `clock`.
// False: it is inside a system call that does not return. Nothing can join or destroy it then; it is kept reachable, so
// that it is not taken for a leak, and the process has to be left by _Exit. Confined to the main thread.
bool join_or_leave_behind(std::unique_ptr<NamedThread> thread, const Clock& clock, std::int64_t until_mono_ns);

// Fails a check in debug builds when a class that is confined to one thread is used on another. Bound at first use.
class ThreadChecker {
 public:
  bool calls_on_owner() const {
    std::thread::id nobody{};
    const std::thread::id self = std::this_thread::get_id();
    return owner_.compare_exchange_strong(nobody, self) || nobody == self;
  }
  // The next use binds anew: a class that is made on one thread and handed to another.
  void release() { owner_.store(std::thread::id{}); }

 private:
  mutable std::atomic<std::thread::id> owner_{};
};

}  // namespace hotlap
