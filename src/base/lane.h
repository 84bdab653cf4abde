#pragma once
// Sixteen bytes at a time, in the compilers' own vectors: `bytes == '"'` says of each byte whether it is one, and
// lane_bits() makes a bit of each answer.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hotlap {

inline constexpr std::ptrdiff_t kLaneBytes = 16;
using Lane = std::uint8_t __attribute__((vector_size(kLaneBytes)));
using LaneMask = std::int8_t __attribute__((vector_size(kLaneBytes)));  // of each byte: all bits set, or none

// `at` has 16 bytes.
inline Lane load_lane(const char* at) {
  Lane lane;
  std::memcpy(&lane, at, sizeof lane);
  return lane;
}

// Bit i is set where byte i of `mask` is.
inline std::uint32_t lane_bits(LaneMask mask) {
#if defined(__SSE2__)
  using Chars = char __attribute__((vector_size(kLaneBytes)));
  return static_cast<std::uint32_t>(__builtin_ia32_pmovmskb128(std::bit_cast<Chars>(mask)));
#else
  using Halves = std::uint64_t __attribute__((vector_size(kLaneBytes)));
  const auto halves = std::bit_cast<Halves>(mask);
  const auto bits_of = [](std::uint64_t half) {
    // One bit of each byte, moved to the top byte.
    return static_cast<std::uint32_t>(((half & 0x0101'0101'0101'0101U) * 0x0102'0408'1020'4080U) >> 56U);
  };
  return bits_of(halves[0]) | bits_of(halves[1]) << 8U;
#endif
}

}  // namespace hotlap
