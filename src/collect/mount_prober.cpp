#include "collect/mount_prober.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"

namespace hotlap {
namespace {

// What asker and helper share; outlives whichever ends first.
struct Exchange {
  Mutex mutex;
  std::string request HOTLAP_GUARDED_BY(mutex);  // empty: none
  std::optional<Result<FilesystemUsage>> answer HOTLAP_GUARDED_BY(mutex);
  WakeEvent answered;
};

void serve(const Host& host, Exchange& exchange, const std::stop_token& stop, const WakeEvent& wake) {
  while (!stop.stop_requested()) {
    system_clock().sleep_until(system_clock().mono_ns() + 3'600 * kNsPerS, wake.fd());
    wake.clear();
    std::string mount_point;
    {
      const MutexLock lock(exchange.mutex);
      mount_point.swap(exchange.request);
    }
    if (mount_point.empty()) continue;
    Result<FilesystemUsage> usage = host.filesystem_usage(mount_point);
    const MutexLock lock(exchange.mutex);
    exchange.answer = std::move(usage);
    exchange.answered.ring();
  }
}

// Threads that sit in the kernel and cannot be ended have an owner that lives as long as the process.
struct Abandoned {
  Mutex mutex;
  std::vector<std::unique_ptr<NamedThread>> threads HOTLAP_GUARDED_BY(mutex);
};
Abandoned& abandoned() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): guarded, and never destroyed
  static auto* const all = new Abandoned;
  return *all;
}

}  // namespace

class MountProber::Worker {
 public:
  explicit Worker(const Host& host)
      : exchange_(std::make_shared<Exchange>()),
        thread_(std::make_unique<NamedThread>(
            "hl-mount", [&host, exchange = exchange_](const std::stop_token& stop, const WakeEvent& wake) {
              serve(host, *exchange, stop, wake);
            })) {}
  ~Worker() {
    if (!is_waiting_) return;  // idle: ends at once, and is joined
    thread_->request_stop();
    Abandoned& all = abandoned();
    const MutexLock lock(all.mutex);
    all.threads.push_back(std::move(thread_));
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::optional<Result<FilesystemUsage>> ask(const std::string& mount_point, std::int64_t deadline_ns) {
    mount_point_ = mount_point;
    is_waiting_ = true;
    {
      const MutexLock lock(exchange_->mutex);
      exchange_->request = mount_point;
      exchange_->answer.reset();
    }
    thread_->wake();
    system_clock().sleep_until(system_clock().mono_ns() + deadline_ns, exchange_->answered.fd());
    return take_answer();
  }
  // Of a call that may have come back by now.
  std::optional<Result<FilesystemUsage>> take_answer() {
    const MutexLock lock(exchange_->mutex);
    if (exchange_->answer) {
      exchange_->answered.clear();
      is_waiting_ = false;
    }
    return std::exchange(exchange_->answer, std::nullopt);
  }
  const std::string& mount_point() const { return mount_point_; }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::unique_ptr<NamedThread> thread_;
  std::string mount_point_;
  bool is_waiting_ = false;
};

MountProber::MountProber(const Host& host, std::int64_t deadline_ns) : host_(host), deadline_ns_(deadline_ns) {}
MountProber::~MountProber() { reclaim(); }

std::optional<Result<FilesystemUsage>> MountProber::ask(const std::string& mount_point) {
  reclaim();
  if (stuck_.size() >= kStuckMax) return std::nullopt;
  if (std::ranges::any_of(stuck_, [&](const auto& worker) { return worker->mount_point() == mount_point; })) {
    return std::nullopt;
  }
  if (idle_ == nullptr) idle_ = std::make_unique<Worker>(host_);
  auto answer = idle_->ask(mount_point, deadline_ns_);
  if (!answer) stuck_.push_back(std::move(idle_));
  return answer;
}

// Takes back threads whose call has returned; one is kept for the next question.
void MountProber::reclaim() {
  std::erase_if(stuck_, [&](auto& worker) {
    if (!worker->take_answer()) return false;  // what it says is too old to use
    if (idle_ == nullptr) idle_ = std::move(worker);
    return true;
  });
}

void MountProber::join_abandoned() {
  std::vector<std::unique_ptr<NamedThread>> threads;
  {
    Abandoned& all = abandoned();
    const MutexLock lock(all.mutex);
    threads.swap(all.threads);
  }
}

}  // namespace hotlap
