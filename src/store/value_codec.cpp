#include "store/value_codec.h"

#include <algorithm>
#include <bit>

namespace hotlap {
namespace {

// First byte of a column. Stored: append only.
constexpr std::byte kConstant{0};
constexpr std::byte kDeltas{1};

}  // namespace

void encode_ints(std::span<const std::uint64_t> values, Bytes& out) {
  if (values.empty()) return;
  const bool constant = std::all_of(values.begin(), values.end(), [&](std::uint64_t v) { return v == values[0]; });
  out.push_back(constant ? kConstant : kDeltas);
  put_varint(out, zigzag(static_cast<std::int64_t>(values[0])));
  if (constant) return;
  for (std::size_t i = 1; i < values.size(); ++i) {
    put_varint(out, zigzag(static_cast<std::int64_t>(values[i] - values[i - 1])));
  }
}

bool decode_ints(ByteView bytes_untrusted, std::size_t count, std::vector<std::uint64_t>& out) {
  if (count == 0) return bytes_untrusted.empty();
  ByteReader reader(bytes_untrusted);
  const auto codec = reader.fixed<std::byte>();
  auto last = static_cast<std::uint64_t>(unzigzag(reader.varint()));
  if (!reader.ok()) return false;
  if (codec == kConstant) {
    out.insert(out.end(), count, last);
    return reader.remaining() == 0;
  }
  if (codec != kDeltas || reader.remaining() < count - 1) return false;
  out.push_back(last);
  for (std::size_t i = 1; i < count; ++i) {
    last += static_cast<std::uint64_t>(unzigzag(reader.varint()));
    out.push_back(last);
  }
  return reader.ok() && reader.remaining() == 0;
}

void encode_floats(std::span<const double> values, Bytes& out) {
  if (values.empty()) return;
  const auto first = std::bit_cast<std::uint64_t>(values[0]);
  const bool constant =
      std::all_of(values.begin(), values.end(), [&](double v) { return std::bit_cast<std::uint64_t>(v) == first; });
  out.push_back(constant ? kConstant : kDeltas);
  put_fixed(out, first);
  if (constant) return;
  std::uint64_t last = first;
  for (const double value : values.subspan(1)) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    put_varint(out, __builtin_bswap64(bits ^ last));
    last = bits;
  }
}

bool decode_floats(ByteView bytes_untrusted, std::size_t count, std::vector<double>& out) {
  if (count == 0) return bytes_untrusted.empty();
  ByteReader reader(bytes_untrusted);
  const auto codec = reader.fixed<std::byte>();
  auto last = reader.fixed<std::uint64_t>();
  if (!reader.ok()) return false;
  if (codec == kConstant) {
    out.insert(out.end(), count, std::bit_cast<double>(last));
    return reader.remaining() == 0;
  }
  if (codec != kDeltas || reader.remaining() < count - 1) return false;
  out.push_back(std::bit_cast<double>(last));
  for (std::size_t i = 1; i < count; ++i) {
    last ^= __builtin_bswap64(reader.varint());
    out.push_back(std::bit_cast<double>(last));
  }
  return reader.ok() && reader.remaining() == 0;
}

}  // namespace hotlap
