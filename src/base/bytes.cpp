#include "base/bytes.h"

#include <array>

namespace hotlap {
namespace {

constexpr std::uint32_t kCrcPolynomial = 0xEDB88320U;

consteval std::array<std::array<std::uint32_t, 256>, 8> make_crc_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kCrcPolynomial : 0U);
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

constexpr auto kCrcTables = make_crc_tables();

}  // namespace

void put_varint(Bytes& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::byte>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::byte>(value));
}

void put_bytes(Bytes& out, ByteView bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

std::uint64_t ByteReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (!ok_ || rest_.empty()) break;
    const auto byte = std::to_integer<std::uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  return 0;
}

ByteView ByteReader::bytes(std::size_t count) {
  if (!ok_ || count > rest_.size()) {
    ok_ = false;
    return {};
  }
  const ByteView taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

std::uint32_t crc32(ByteView bytes, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kCrcTables[7 - i][(word >> (8 * i)) & 0xFFU];
    bytes = bytes.subspan(8);
  }
  for (const std::byte b : bytes) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ std::to_integer<std::uint32_t>(b)) & 0xFFU];
  return ~crc;
}

}  // namespace hotlap
