#include "store/value_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "store/format.h"
#include "store/residual_models.h"

namespace hotlap {
namespace {

// First byte of a column. Stored: append only.
//
//   0  one value for all: zigzag varint
//   1  modelled, + order 0 … 2: zigzag varints first value and centre, varints divisor and bits, range coder
//   4  follows another column, 5 is its opposite: varint columns back, then what is left as a column of integers
//   8  decimals: u8 digits after the point, then a column of integers
//   9  bits of the doubles as a column of integers
constexpr std::uint8_t kConstant = 0;
constexpr std::uint8_t kModelled = 1;
constexpr unsigned kOrders = 3;
constexpr std::uint8_t kFollows = 4;
constexpr std::uint8_t kOpposes = 5;
constexpr std::uint8_t kDecimals = 8;
constexpr std::uint8_t kBits = 9;

constexpr double kExactMax = 9007199254740992.0;  // 2^53
constexpr std::array<double, kDecimalDigitsMax + 1> kPowers{1, 10, 100, 1e3, 1e4, 1e5, 1e6};

// A column becomes u[i] = (v[i] − v[0]) / divisor, then differences of order 0, 1 or 2, less the centre. All of it
// wraps mod 2^64, so that every column comes back, whatever its values.
struct Shape {
  std::uint64_t first = 0;
  std::uint64_t divisor = 1;
  unsigned order = 0;
  std::uint64_t centre = 0;
};

// Bits that numbers of these sizes take, about: entropy of the sizes, then sign and the bits below the first.
double size_cost(const std::array<std::uint32_t, 65>& sizes) {
  double bits = 0;
  double total = 0;
  for (const std::uint32_t count : sizes) total += count;
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    if (sizes[size] > 0) bits += sizes[size] * (static_cast<double>(size) + std::log2(total / sizes[size]));
  }
  return bits;
}

double cost_of(std::span<const std::uint64_t> differences, std::uint64_t centre) {
  std::array<std::uint32_t, 65> sizes{};
  for (const std::uint64_t difference : differences) ++sizes[std::bit_width(magnitude(difference - centre))];
  return size_cost(sizes);
}

// Reused by one thread between columns.
struct Scratch {
  std::vector<std::uint64_t> differences;
  std::vector<std::uint64_t> best;
  std::vector<std::uint64_t> sorted;
};

std::uint64_t median(std::span<const std::uint64_t> values, std::vector<std::uint64_t>& sorted) {
  sorted.assign(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end(), [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  });
  return *middle;
}

// What all u[i] have in common; exact only while no difference overflows.
std::uint64_t common_divisor(std::span<const std::uint64_t> values) {
  std::uint64_t divisor = 0;
  for (const std::uint64_t value : values.subspan(1)) {
    divisor = std::gcd(divisor, magnitude(value - values[0]));
    if (divisor == 1) return 1;
  }
  return divisor;
}

void encode_modelled(std::span<const std::uint64_t> values, Bytes& out) {
  thread_local Scratch scratch;
  Shape best{.first = values[0], .divisor = common_divisor(values)};
  scratch.differences.clear();
  for (const std::uint64_t value : values.subspan(1)) {
    const std::uint64_t offset = value - values[0];
    const std::uint64_t size = magnitude(offset) / best.divisor;
    scratch.differences.push_back(static_cast<std::int64_t>(offset) < 0 ? 0 - size : size);
  }
  double best_cost = -1;
  for (unsigned order = 0; order < kOrders; ++order) {
    if (order > 0) {
      for (std::size_t i = scratch.differences.size(); i-- > 1;) {
        scratch.differences[i] -= scratch.differences[i - 1];
      }
    }
    const std::uint64_t centre = order < 2 ? median(scratch.differences, scratch.sorted) : 0;
    const double cost = cost_of(scratch.differences, centre);
    if (best_cost >= 0 && cost >= best_cost) continue;
    best_cost = cost;
    best.order = order;
    best.centre = centre;
    scratch.best = scratch.differences;
  }
  unsigned bits_max = 0;
  for (std::uint64_t& difference : scratch.best) {
    difference -= best.centre;
    bits_max = std::max(bits_max, static_cast<unsigned>(std::bit_width(magnitude(difference))));
  }
  out.push_back(static_cast<std::byte>(kModelled + best.order));
  put_varint(out, zigzag(static_cast<std::int64_t>(best.first)));
  put_varint(out, zigzag(static_cast<std::int64_t>(best.centre)));
  put_varint(out, best.divisor);
  put_varint(out, bits_max);
  RangeEncoder coder(out);
  ResidualModels models(bits_max);
  for (const std::uint64_t residual : scratch.best) models.encode(coder, residual);
  coder.finish();
}

bool decode_modelled(ByteReader& reader, unsigned order, std::size_t count, std::vector<std::uint64_t>& out) {
  const auto first = static_cast<std::uint64_t>(unzigzag(reader.varint()));
  const auto centre = static_cast<std::uint64_t>(unzigzag(reader.varint()));
  const std::uint64_t divisor = reader.varint();
  const std::uint64_t bits_max = reader.varint();
  if (!reader.ok() || bits_max > 64) return false;
  RangeDecoder coder(reader.bytes(reader.remaining()));
  ResidualModels models(static_cast<unsigned>(bits_max));
  out.push_back(first);
  std::uint64_t offset = 0;
  std::uint64_t step = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const std::uint64_t difference = models.decode(coder) + centre;
    switch (order) {
      case 0: offset = difference; break;
      case 1: offset += difference; break;
      default: step += difference; offset += step;
    }
    out.push_back(first + offset * divisor);
  }
  return true;
}

}  // namespace

std::int64_t to_decimal(double value, unsigned digits) {
  return static_cast<std::int64_t>(std::nearbyint(value * kPowers[digits]));
}

double from_decimal(std::int64_t number, unsigned digits) { return static_cast<double>(number) / kPowers[digits]; }

std::optional<unsigned> decimal_digits(std::span<const double> values) {
  unsigned digits = 0;
  for (std::size_t i = 0; i < values.size();) {
    const double value = values[i];
    // Written so that NaN fails.
    if (!(std::abs(value) < kExactMax) || (value == 0 && std::signbit(value))) return std::nullopt;
    const double scaled = std::nearbyint(value * kPowers[digits]);
    if (std::abs(scaled) < kExactMax && scaled / kPowers[digits] == value) {
      ++i;
    } else if (digits < kDecimalDigitsMax) {
      ++digits;
      i = 0;
    } else {
      return std::nullopt;
    }
  }
  return digits;
}

// Sizes of first differences alone: what better orders, centres and divisors would still save is left out.
double estimate_bits(std::span<const std::uint64_t> values) {
  std::array<std::uint32_t, 65> sizes{};
  for (std::size_t i = 1; i < values.size(); ++i) ++sizes[std::bit_width(magnitude(values[i] - values[i - 1]))];
  return size_cost(sizes);
}

void begin_reference(std::uint32_t back, bool is_added, Bytes& out) {
  out.push_back(std::byte{is_added ? kFollows : kOpposes});
  put_varint(out, back);
}

bool is_reference(ByteView bytes_untrusted) {
  return !bytes_untrusted.empty() &&
         (bytes_untrusted[0] == std::byte{kFollows} || bytes_untrusted[0] == std::byte{kOpposes});
}

std::optional<ColumnReference> read_reference(ByteView bytes_untrusted) {
  if (!is_reference(bytes_untrusted)) return std::nullopt;
  ByteReader reader(bytes_untrusted.subspan(1));
  const std::uint64_t back = reader.varint();
  if (!reader.ok() || back == 0 || back > kSeriesPerChunk) return std::nullopt;
  return ColumnReference{.back = static_cast<std::uint32_t>(back),
                         .is_added = bytes_untrusted[0] == std::byte{kFollows},
                         .left = reader.bytes(reader.remaining())};
}

void encode_ints(std::span<const std::uint64_t> values, Bytes& out) {
  if (values.empty()) return;
  if (std::all_of(values.begin(), values.end(), [&](std::uint64_t v) { return v == values[0]; })) {
    out.push_back(std::byte{kConstant});
    put_varint(out, zigzag(static_cast<std::int64_t>(values[0])));
    return;
  }
  encode_modelled(values, out);
}

bool decode_ints(ByteView bytes_untrusted, std::size_t count, std::vector<std::uint64_t>& out) {
  if (count == 0) return bytes_untrusted.empty();
  ByteReader reader(bytes_untrusted);
  const auto codec = reader.fixed<std::uint8_t>();
  if (codec == kConstant) {
    const auto value = static_cast<std::uint64_t>(unzigzag(reader.varint()));
    if (!reader.ok() || reader.remaining() != 0) return false;
    out.insert(out.end(), count, value);
    return true;
  }
  if (!reader.ok() || codec < kModelled || codec >= kModelled + kOrders) return false;
  return decode_modelled(reader, codec - kModelled, count, out);
}

void encode_floats(std::span<const double> values, Bytes& out) {
  if (values.empty()) return;
  thread_local std::vector<std::uint64_t> ints;
  ints.clear();
  if (const std::optional<unsigned> digits = decimal_digits(values)) {
    out.push_back(std::byte{kDecimals});
    out.push_back(static_cast<std::byte>(*digits));
    for (const double value : values) ints.push_back(static_cast<std::uint64_t>(to_decimal(value, *digits)));
  } else {
    out.push_back(std::byte{kBits});
    for (const double value : values) ints.push_back(std::bit_cast<std::uint64_t>(value));
  }
  encode_ints(ints, out);
}

bool decode_floats(ByteView bytes_untrusted, std::size_t count, std::vector<double>& out) {
  if (count == 0) return bytes_untrusted.empty();
  ByteReader reader(bytes_untrusted);
  const auto codec = reader.fixed<std::uint8_t>();
  const auto digits = codec == kDecimals ? reader.fixed<std::uint8_t>() : std::uint8_t{0};
  if (!reader.ok() || (codec != kDecimals && codec != kBits) || digits > kDecimalDigitsMax) return false;
  thread_local std::vector<std::uint64_t> ints;
  ints.clear();
  if (!decode_ints(reader.bytes(reader.remaining()), count, ints)) return false;
  for (const std::uint64_t value : ints) {
    out.push_back(codec == kBits ? std::bit_cast<double>(value)
                                 : from_decimal(static_cast<std::int64_t>(value), digits));
  }
  return true;
}

}  // namespace hotlap
