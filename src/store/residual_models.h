#pragma once
// Residuals (differences between what a value is and what was expected) through the range coder.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "store/range_coder.h"

namespace hotlap {

// Of a difference that wraps mod 2^64.
constexpr std::uint64_t magnitude(std::uint64_t wrapped) {
  return static_cast<std::int64_t>(wrapped) < 0 ? 0 - wrapped : wrapped;
}

// Residuals are coded as: zero or not, number of bits, sign, leading bits, the rest raw. What is learnt of each
// decision depends on how long the run of zeros before is, so that sources that move each n-th tick cost nothing.
class ResidualModels {
 public:
  // `bits_max`: of any magnitude that will come.
  explicit ResidualModels(unsigned bits_max = 64)
      : depth_(bits_max <= 1 ? 0 : static_cast<unsigned>(std::bit_width(bits_max - 1))) {}

  void encode(RangeEncoder& coder, std::uint64_t residual) {
    const bool is_zero = residual == 0;
    coder.bit(zero_[run_], is_zero);
    run_ = is_zero ? std::min<unsigned>(run_ + 1, kRuns - 1) : 0;
    if (is_zero) return;
    const std::uint64_t size = magnitude(residual);
    const auto bits = static_cast<unsigned>(std::bit_width(size));
    unsigned node = 1;
    for (unsigned level = depth_; level-- > 0;) {
      const bool bit = (((bits - 1) >> level) & 1U) != 0;
      coder.bit(bits_[big_][node], bit);
      node = node * 2 + (bit ? 1 : 0);
    }
    big_ = bits > 2 ? 1 : 0;
    coder.bit(sign_[bits], static_cast<std::int64_t>(residual) < 0);
    const unsigned modelled = std::min(bits - 1, kLeading);
    node = 1;
    for (unsigned i = 0; i < modelled; ++i) {
      const bool bit = ((size >> (bits - 2 - i)) & 1U) != 0;
      coder.bit(leading_[bits][node], bit);
      node = node * 2 + (bit ? 1 : 0);
    }
    coder.raw(size, bits - 1 - modelled);
  }

  std::uint64_t decode(RangeDecoder& coder) {
    const bool is_zero = coder.bit(zero_[run_]);
    run_ = is_zero ? std::min<unsigned>(run_ + 1, kRuns - 1) : 0;
    if (is_zero) return 0;
    unsigned node = 1;
    for (unsigned level = 0; level < depth_; ++level) node = node * 2 + (coder.bit(bits_[big_][node]) ? 1 : 0);
    const unsigned bits = node - (1U << depth_) + 1;
    big_ = bits > 2 ? 1 : 0;
    const bool is_negative = coder.bit(sign_[bits]);
    const unsigned modelled = std::min(bits - 1, kLeading);
    node = 1;
    for (unsigned i = 0; i < modelled; ++i) node = node * 2 + (coder.bit(leading_[bits][node]) ? 1 : 0);
    const unsigned rest = bits - 1 - modelled;
    const std::uint64_t size = (std::uint64_t{node} << rest) | coder.raw(rest);
    return is_negative ? 0 - size : size;
  }

 private:
  static constexpr unsigned kRuns = 4;
  static constexpr unsigned kLeading = 3;

  unsigned depth_;
  unsigned run_ = 0;
  unsigned big_ = 0;
  std::array<BitModel, kRuns> zero_;
  std::array<std::array<BitModel, 64>, 2> bits_;
  std::array<BitModel, 65> sign_;
  std::array<std::array<BitModel, 1U << kLeading>, 65> leading_;
};

}  // namespace hotlap
