#pragma once
// How the values of one series of a stretch are written. The encoder tries what suits and keeps the smallest; the
// first byte says which it was. Decoders take bytes from files of unknown origin: they check everything and never
// allocate more than the count that the caller has bounded.
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace hotlap {

void encode_ints(std::span<const std::uint64_t> values, Bytes& out);
// Appends exactly `count` values to `out`; false when the bytes do not hold them.
bool decode_ints(ByteView bytes_untrusted, std::size_t count, std::vector<std::uint64_t>& out);

// Bits are kept: NaN payloads, infinities and negative zero come back as they were.
void encode_floats(std::span<const double> values, Bytes& out);
bool decode_floats(ByteView bytes_untrusted, std::size_t count, std::vector<double>& out);

}  // namespace hotlap
