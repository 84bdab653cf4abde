#pragma once
// The bounded queue between two threads. A full queue refuses: the caller drops and counts. Entries wait to be fetched
// together, so that a consumer with a deadline is not woken for each one.
#include <cstddef>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace hotlap {

// Thread-safe: any number of producers, one consumer.
template <class T>
class BoundedQueue {
 public:
  // `wake_at` entries ring `wake()` (once per fetch); fewer wait for the consumer's own deadline.
  BoundedQueue(std::size_t entries_max, std::size_t wake_at) : entries_max_(entries_max), wake_at_(wake_at) {}

  // False: full. `value` is untouched then.
  bool try_push(T&& value) {
    const MutexLock lock(mutex_);
    if (entries_.size() >= entries_max_) return false;
    entries_.push_back(std::move(value));
    if (entries_.size() == wake_at_) wake_.ring();
    return true;
  }

  // Moves everything into `out`, oldest first; `out` must be empty, its capacity is reused.
  void take_all(std::vector<T>& out) {
    const MutexLock lock(mutex_);
    HOTLAP_DCHECK(out.empty());
    std::swap(entries_, out);
    if (out.size() >= wake_at_) wake_.clear();
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return entries_.size();
  }
  const WakeEvent& wake() const { return wake_; }

 private:
  const std::size_t entries_max_;
  const std::size_t wake_at_;
  WakeEvent wake_;
  mutable Mutex mutex_;
  std::vector<T> entries_ HOTLAP_GUARDED_BY(mutex_);
};

}  // namespace hotlap
