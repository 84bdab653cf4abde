#pragma once
// Where a frame goes in a ring and how it is published: what the writers in C++ share. Header only, allocates nothing,
// for code that links nothing of ours. The caller serialises calls.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/crc32.h"
#include "wire/ring_layout.h"

namespace hotlap {

// Bytes of the data area that hold nothing unread. A tail that makes no sense leaves no room.
inline std::uint64_t ring_free_bytes(RingPage& page, std::uint64_t data_bytes) {
  const std::uint64_t head = page.head;
  const std::uint64_t tail = std::atomic_ref(page.tail).load(std::memory_order_acquire);
  return tail <= head && head - tail <= data_bytes ? data_bytes - (head - tail) : 0;
}

// The largest payload that publish_frame() would take now.
inline std::uint64_t ring_payload_room(RingPage& page, std::uint64_t data_bytes) {
  const std::uint64_t free = ring_free_bytes(page, data_bytes);
  const std::uint64_t to_end = data_bytes - page.head % data_bytes;
  const std::uint64_t after_wrap = free > to_end ? free - to_end : 0;
  const std::uint64_t frame_bytes = std::max(std::min(free, to_end), after_wrap);
  return frame_bytes > sizeof(RingFrameHead)
             ? std::min<std::uint64_t>(frame_bytes - sizeof(RingFrameHead), kRingFramePayloadMax) & ~std::uint64_t{7}
             : 0;
}

// False, with nothing changed: no room. `sequence` is that of the frame; the payload is a multiple of 8 bytes.
inline bool publish_frame(RingPage& page, std::byte* data, std::uint64_t data_bytes, const std::byte* payload,
                          std::size_t payload_bytes, std::uint64_t sequence) {
  const std::uint64_t frame_bytes = ring_frame_bytes(payload_bytes);
  const std::uint64_t offset = page.head % data_bytes;
  const std::uint64_t pad = offset + frame_bytes > data_bytes ? data_bytes - offset : 0;
  if (pad + frame_bytes > ring_free_bytes(page, data_bytes)) return false;
  if (pad >= sizeof kRingPad) std::memcpy(data + offset, &kRingPad, sizeof kRingPad);
  const std::uint64_t head = page.head + pad;
  const RingFrameHead frame{static_cast<std::uint32_t>(payload_bytes),
                            crc32_of(payload, payload_bytes, static_cast<std::uint32_t>(sequence)), sequence};
  std::byte* place = data + head % data_bytes;
  std::memcpy(place, &frame, sizeof frame);
  std::memcpy(place + sizeof frame, payload, payload_bytes);
  std::atomic_ref(page.head).store(head + frame_bytes, std::memory_order_release);
  return true;
}

}  // namespace hotlap
