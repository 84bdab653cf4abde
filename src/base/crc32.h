#pragma once
// CRC-32 (polynomial 0xEDB88320), the one of zlib and Python's zlib.crc32. Header only, for code that links nothing of
// ours: libraries that are loaded into the job.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hotlap {

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

consteval CrcTables make_crc_tables() {
  constexpr std::uint32_t kPolynomial = 0xEDB88320U;
  CrcTables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    tables[0][i] = crc;
  }
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (std::size_t slice = 1; slice < 8; ++slice) {
      const std::uint32_t previous = tables[slice - 1][i];
      tables[slice][i] = (previous >> 8) ^ tables[0][previous & 0xFFU];
    }
  }
  return tables;
}

inline constexpr CrcTables kCrcTables = make_crc_tables();

inline std::uint32_t crc32_of(const std::byte* bytes, std::size_t size, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    word ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kCrcTables[7 - i][(word >> (8 * i)) & 0xFFU];
  }
  for (; size > 0; ++bytes, --size)
    crc = (crc >> 8) ^ kCrcTables[0][(crc ^ std::to_integer<std::uint32_t>(*bytes)) & 0xFFU];
  return ~crc;
}

}  // namespace hotlap
