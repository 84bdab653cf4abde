#pragma once
// The buffers that CUPTI fills, all in static memory: given when it asks, in any thread, taken back when they are full
// or flushed. Thread-safe without a lock. Zeroed memory; there is no constructor.
#include <cstddef>
#include <cstdint>

#include "observe/cupti_abi.h"
#include "observe/words.h"

namespace hotlap::cupti {

class ActivityBuffers {
 public:
  static constexpr std::size_t kBuffers = 8;
  static constexpr std::size_t kBufferBytes = 256 * 1024;
  // From so few on it is time to stop: what is on its way still needs room.
  static constexpr std::size_t kNearlyEmpty = 2;

  // Null: none is left.
  std::uint8_t* give() {
    for (Buffer& buffer : buffers_) {
      if (load_word(buffer.state) == kFree && swap_word(buffer.state, kFree, kGiven)) return buffer.bytes;
    }
    add_word<std::uint64_t>(refused_, 1);
    return nullptr;
  }
  // Of a buffer that is not ours: nothing happens.
  void take_back(const std::uint8_t* bytes, std::size_t bytes_used) {
    for (Buffer& buffer : buffers_) {
      if (bytes != buffer.bytes) continue;
      buffer.bytes_used = bytes_used < kBufferBytes ? bytes_used : kBufferBytes;
      swap_word(buffer.state, kGiven, kBack);
    }
  }

  std::size_t given() { return count(kGiven); }
  bool is_nearly_empty() { return count(kFree) <= kNearlyEmpty; }
  // How often there was none, since it was asked last.
  std::uint64_t take_refused() { return std::atomic_ref(refused_).exchange(0); }

  // Calls visit(bytes, bytes_used) for each that came back, and frees it. One thread at a time.
  template <class Visit>
  void empty(Visit visit) {
    for (Buffer& buffer : buffers_) {
      if (load_word(buffer.state) != kBack) continue;
      visit(buffer.bytes, buffer.bytes_used);
      store_word(buffer.state, kFree);
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kGiven = 1;
  static constexpr std::uint32_t kBack = 2;

  struct Buffer {
    std::uint32_t state;
    std::size_t bytes_used;
    alignas(64) std::uint8_t bytes[kBufferBytes];
  };

  std::size_t count(std::uint32_t state) {
    std::size_t n = 0;
    for (Buffer& buffer : buffers_) n += load_word(buffer.state) == state ? 1 : 0;
    return n;
  }

  Buffer buffers_[kBuffers];
  std::uint64_t refused_;
};

}  // namespace hotlap::cupti
