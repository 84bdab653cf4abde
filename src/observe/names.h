#pragma once
// The names of what an observer saw, each with a number from 1: text is kept once and compared by nobody on the way to
// the ring. Thread-safe without a lock: any number of threads ask for names, one at a time reads them out. Bounded, and
// never allocates. Lies in zeroed memory; there is no constructor.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "observe/words.h"

namespace hotlap {

inline constexpr std::size_t kObserverNameBytesMax = 512;  // what the recorder keeps of a name

class NameTable {
 public:
  static constexpr std::uint32_t kNamesMax = 8192;

  struct Name {
    std::uint32_t offset;
    std::uint32_t bytes;
    std::uint32_t is_ready;
    std::uint32_t said_in;  // generation of the ring that has been told; of who drains, like all below
    std::uint64_t calls;
    std::uint64_t time_ns;
    std::uint64_t calls_said;
    std::uint32_t figures_said_in;  // generation, as said_in
    std::uint32_t is_operator;      // what its calls were last
  };

  // The number of `text`, cut to kObserverNameBytesMax; 0: no room for another one, or one that another thread is just
  // putting in.
  std::uint32_t number_of(std::string_view text);

  // Numbers given so far; those up to it may still be on their way in: see is_ready.
  std::uint32_t count() { return std::min(load_word(count_), kNamesMax); }
  Name& at(std::uint32_t number) { return names_[number - 1]; }
  std::string_view text(const Name& name) const { return {text_ + name.offset, name.bytes}; }
  std::uint64_t refused() { return load_word(refused_, std::memory_order_relaxed); }

  // In a process that was forked: no other thread is left, and what one of them was just putting in never gets there.
  void after_fork();

 private:
  static constexpr std::uint32_t kSlots = 4 * kNamesMax;  // a power of two
  static constexpr std::uint32_t kProbesMax = 64;
  static constexpr std::uint32_t kTextBytes = 768 * 1024;

  struct Slot {
    std::uint64_t hash;    // 0: free
    std::uint32_t number;  // 0: being filled
    std::uint32_t reserved;
  };

  std::uint32_t fill(Slot& slot, std::string_view text);

  Slot slots_[kSlots];
  Name names_[kNamesMax];
  char text_[kTextBytes];
  std::uint32_t count_;
  std::uint32_t text_used_;
  std::uint64_t refused_;
};

// At most `limit` bytes of UTF-8, cut between characters.
std::string_view cut_utf8(std::string_view text, std::size_t limit);

}  // namespace hotlap
