#pragma once
// Byte-level encoding that is the same on every machine: little-endian integers, varints, zigzag, CRC-32.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

static_assert(std::endian::native == std::endian::little, "stored and shared layouts are little-endian");

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // char may alias std::byte
}

constexpr std::uint64_t zigzag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t v) {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

// LEB128, at most 10 bytes.
void put_varint(Bytes& out, std::uint64_t value);
void put_bytes(Bytes& out, ByteView bytes);
template <class T>
void put_fixed(Bytes& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), first, first + sizeof value);
}

// Reads what the functions above wrote. Bounds are checked: after the first short or malformed read `ok()` is false for
// good and every further read yields 0.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes_untrusted) : rest_(bytes_untrusted) {}

  bool ok() const { return ok_; }
  std::size_t remaining() const { return rest_.size(); }
  std::uint64_t varint();
  ByteView bytes(std::size_t count);
  template <class T>
  T fixed() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const ByteView raw = bytes(sizeof value);
    if (ok_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

 private:
  ByteView rest_;
  bool ok_ = true;
};

// CRC-32 (polynomial 0xEDB88320), the one of zlib and Python's zlib.crc32.
std::uint32_t crc32(ByteView bytes, std::uint32_t seed = 0);

}  // namespace hotlap
