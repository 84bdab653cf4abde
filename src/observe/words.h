#pragma once
// Words of memory that threads share, as plain integers: the observers' state lies in zeroed static memory and needs no
// start code.
#include <atomic>
#include <cstdint>

namespace hotlap {

template <class T>
T load_word(T& word, std::memory_order order = std::memory_order_acquire) {
  return std::atomic_ref<T>(word).load(order);
}
template <class T>
void store_word(T& word, T value, std::memory_order order = std::memory_order_release) {
  std::atomic_ref<T>(word).store(value, order);
}
template <class T>
T add_word(T& word, T more) {
  return std::atomic_ref<T>(word).fetch_add(more, std::memory_order_relaxed);
}
// Whether it was `from` and is `to` now.
template <class T>
bool swap_word(T& word, T from, T to) {
  return std::atomic_ref<T>(word).compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

}  // namespace hotlap
