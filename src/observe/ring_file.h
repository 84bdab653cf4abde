#pragma once
// An observer's own ring file in the job's process: made, filled, left. Allocates nothing and never waits; one thread
// at a time. Lies in zeroed memory; there is no constructor.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/ring_frame.h"

namespace hotlap {

class RingFile {
 public:
  static constexpr std::uint64_t kDataBytes = kRingFileBytesDefault;

  // Where rings go, from the environment; false: this process is not recorded. Reads the environment, so once, early.
  bool read_environment(std::string_view source);

  // Makes the ring of this process. On failure the reason is left beside it, for the recorder.
  bool open();
  bool is_open() const { return page_ != nullptr; }
  // Unmaps it without a word: it is the parent's.
  void forget();

  RingLive& live() { return page_->live; }
  // What the recorder asks for, by word of RingCommand; the same word is never reported twice. kNone: nothing new.
  HookCommand take_command();
  void answer(HookAnswer answer);

  // A frame gathers: begin_frame() asks for room, append() fills it, end_frame() publishes it.
  bool begin_frame();
  std::uint64_t free_bytes() const { return ring_free_bytes(*page_, kDataBytes); }
  bool has_room(std::size_t bytes) const { return used_ + bytes <= limit_; }
  // The record, then `first` and `second`, then zeros to the next multiple of 8. has_room() holds for all of it.
  void append(const void* record, std::size_t bytes, std::string_view first = {}, std::string_view second = {});
  void end_frame();

 private:
  void say_off(const char* what, int error);
  bool make_file(const char* path);
  void fill_identity();

  RingPage* page_;
  std::byte* data_;
  std::uint64_t sequence_;
  std::uint64_t command_word_;
  std::size_t used_;
  std::size_t limit_;
  std::uint64_t records_;
  char folder_[768];
  char source_[kRingSourceMax + 1];
  char run_id_[32];
  std::int32_t rank_, local_rank_, world_size_;
  std::uint64_t start_ticks_;
  std::byte payload_[16 * 1024];
};

// A record's head; its size includes `bytes_more` and the zeros up to the next multiple of 8.
template <class T>
RecordHead observed_head(RecordType type, std::size_t bytes_more = 0, std::uint8_t flags = 0) {
  return {static_cast<std::uint8_t>(type), flags,
          static_cast<std::uint16_t>((sizeof(T) + bytes_more + 7) & ~std::size_t{7})};
}

// CLOCK_MONOTONIC.
std::int64_t observer_now_ns();

}  // namespace hotlap
