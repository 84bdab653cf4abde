#pragma once
// An adaptive binary range coder: each decision costs about −log2 of the probability that its own history gives it.
// Carries as in LZMA. The decoder takes any bytes: past their end it reads zeros, and it never reads outside them.
#include <array>
#include <bit>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"

namespace hotlap {

// The chance that a decision is 0, learnt fast at first and slowly later.
class BitModel {
 public:
  std::uint32_t chance_of_zero() const {  // of 4096, never 0 and never 4096
    const std::uint32_t chance = p_ >> 4U;
    return chance == 0 ? 1 : chance;
  }
  void learn(bool bit) {
    const std::int32_t target = bit ? 0 : kTop;
    p_ = static_cast<std::uint16_t>(p_ + (target - p_) * kRates[seen_] / (kTop + 1));
    if (seen_ + 1U < kRates.size()) ++seen_;
  }

 private:
  static constexpr std::int32_t kTop = 0xFFFF;
  // 1 / (n + 1.6), down to 1/64: what a fresh decision learns from its n-th outcome. Below 2^15, so that the
  // product stays inside 31 bits.
  static constexpr auto kRates = [] {
    std::array<std::int32_t, 64> rates{};
    for (std::size_t n = 0; n < rates.size(); ++n) {
      const double rate = 65536.0 / (static_cast<double>(n) + 1.6);
      rates[n] = rate > 32767 ? 32767 : static_cast<std::int32_t>(rate);
    }
    return rates;
  }();

  std::uint16_t p_ = 0x8000;
  std::uint8_t seen_ = 0;
};

class RangeEncoder {
 public:
  explicit RangeEncoder(Bytes& out) : out_(out) {}

  void bit(BitModel& model, bool bit) {
    const std::uint32_t bound = (range_ >> 12U) * model.chance_of_zero();
    if (bit) {
      low_ += bound;
      range_ -= bound;
    } else {
      range_ = bound;
    }
    model.learn(bit);
    normalize();
  }
  // The low `count` bits of `value`, all equally likely.
  void raw(std::uint64_t value, unsigned count) {
    while (count > 0) {
      const unsigned some = count < 16 ? count : 16;
      count -= some;
      range_ >>= some;
      low_ += std::uint64_t{range_} * ((value >> count) & ((1U << some) - 1U));
      normalize();
    }
  }
  // Writes the rest. The decoder's zeros past the end stand for what is left out.
  void finish() {
    // Of the numbers in [low, low + range) the one with the most zero bytes at its end.
    for (unsigned zeros = 32; zeros-- > 0;) {
      const std::uint64_t mask = (std::uint64_t{1} << zeros) - 1;
      const std::uint64_t rounded = (low_ + mask) & ~mask;
      if (rounded < low_ + range_) {
        low_ = rounded;
        break;
      }
    }
    for (int i = 0; i < 5; ++i) shift();
    while (!out_.empty() && out_.size() > first_ && out_.back() == std::byte{0}) out_.pop_back();
  }

 private:
  void normalize() {
    while (range_ < (1U << 24U)) {
      range_ <<= 8U;
      shift();
    }
  }
  void shift() {
    if (low_ < 0xFF000000U || low_ > 0xFFFFFFFFU) {
      const auto carry = static_cast<std::uint8_t>(low_ >> 32U);
      // The first byte is always 0 and is not written.
      if (started_) out_.push_back(static_cast<std::byte>(static_cast<std::uint8_t>(cache_ + carry)));
      started_ = true;
      for (; pending_ > 0; --pending_) out_.push_back(static_cast<std::byte>(static_cast<std::uint8_t>(0xFF + carry)));
      cache_ = static_cast<std::uint8_t>(low_ >> 24U);
    } else {
      ++pending_;
    }
    low_ = (low_ & 0x00FFFFFFU) << 8U;
  }

  Bytes& out_;
  std::size_t first_ = out_.size();
  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xFFFFFFFFU;
  std::uint64_t pending_ = 0;
  std::uint8_t cache_ = 0;
  bool started_ = false;
};

class RangeDecoder {
 public:
  explicit RangeDecoder(ByteView bytes_untrusted) : rest_(bytes_untrusted) {
    for (int i = 0; i < 4; ++i) code_ = (code_ << 8U) | next();
  }

  bool bit(BitModel& model) {
    const std::uint32_t bound = (range_ >> 12U) * model.chance_of_zero();
    const bool bit = code_ >= bound;
    if (bit) {
      code_ -= bound;
      range_ -= bound;
    } else {
      range_ = bound;
    }
    model.learn(bit);
    normalize();
    return bit;
  }
  std::uint64_t raw(unsigned count) {
    std::uint64_t value = 0;
    while (count > 0) {
      const unsigned some = count < 16 ? count : 16;
      count -= some;
      range_ >>= some;
      std::uint32_t part = code_ / range_;
      // Only bytes that no encoder wrote get beyond.
      if (part >= (1U << some)) part = (1U << some) - 1U;
      code_ -= part * range_;
      value = (value << some) | part;
      normalize();
    }
    return value;
  }

 private:
  void normalize() {
    while (range_ < (1U << 24U)) {
      range_ <<= 8U;
      code_ = (code_ << 8U) | next();
    }
  }
  std::uint32_t next() {
    if (rest_.empty()) return 0;
    const auto byte = std::to_integer<std::uint32_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return byte;
  }

  ByteView rest_;
  std::uint32_t code_ = 0;
  std::uint32_t range_ = 0xFFFFFFFFU;
};

}  // namespace hotlap
