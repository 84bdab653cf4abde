#pragma once
// How the values of one series of a stretch are written. The encoder tries what suits and keeps the smallest; the
// first byte says which it was. Decoders take bytes from files of unknown origin: they check everything and never
// allocate more than the count that the caller has bounded.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace hotlap {

void encode_ints(std::span<const std::uint64_t> values, Bytes& out);
// Bits that the values take, roughly and quickly; for choosing between ways to write them.
double estimate_bits(std::span<const std::uint64_t> values);
// Appends exactly `count` values to `out`; false when the bytes do not hold them.
bool decode_ints(ByteView bytes_untrusted, std::size_t count, std::vector<std::uint64_t>& out);

// A column that follows another of its chunk, `back` columns before, which has as many values: each value is that
// of the other one added or taken away, and what is left is a column of integers (memory that is free and memory
// that is used). A column that is followed follows none itself.
struct ColumnReference {
  std::uint32_t back;
  bool is_added;  // value = left + the other's; else left − the other's
  ByteView left;
};
void begin_reference(std::uint32_t back, bool is_added, Bytes& out);
bool is_reference(ByteView bytes_untrusted);
std::optional<ColumnReference> read_reference(ByteView bytes_untrusted);

// Bits are kept: NaN payloads, infinities and negative zero come back as they were.
void encode_floats(std::span<const double> values, Bytes& out);
bool decode_floats(ByteView bytes_untrusted, std::size_t count, std::vector<double>& out);

// Doubles that are decimals: the fewest digits after the point with which every one of them is exactly an integer
// × 10^−digits; nothing when that takes too many, or one is no number, infinite or −0.
inline constexpr unsigned kDecimalDigitsMax = 6;
std::optional<unsigned> decimal_digits(std::span<const double> values);
std::int64_t to_decimal(double value, unsigned digits);
double from_decimal(std::int64_t number, unsigned digits);

}  // namespace hotlap
