#include "store/value_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace hotlap {
namespace {

std::vector<std::uint64_t> through(const std::vector<std::uint64_t>& values, std::size_t* bytes = nullptr) {
  Bytes encoded;
  encode_ints(values, encoded);
  if (bytes != nullptr) *bytes = encoded.size();
  std::vector<std::uint64_t> back;
  EXPECT_TRUE(decode_ints(encoded, values.size(), back));
  return back;
}

std::vector<std::uint64_t> bits(const std::vector<double>& values) {
  std::vector<std::uint64_t> out;
  for (const double value : values) out.push_back(std::bit_cast<std::uint64_t>(value));
  return out;
}

std::vector<double> through(const std::vector<double>& values, std::size_t* bytes = nullptr) {
  Bytes encoded;
  encode_floats(values, encoded);
  if (bytes != nullptr) *bytes = encoded.size();
  std::vector<double> back;
  EXPECT_TRUE(decode_floats(encoded, values.size(), back));
  return back;
}

TEST(ValueCodec, EdgesOfIntegers) {
  const std::uint64_t low = static_cast<std::uint64_t>(INT64_MIN);
  for (const std::vector<std::uint64_t>& values :
       std::vector<std::vector<std::uint64_t>>{{},
                                               {0},
                                               {UINT64_MAX},
                                               {low},
                                               {0, UINT64_MAX},
                                               {low, INT64_MAX, low, 0, UINT64_MAX},
                                               {0, low, 0, low},
                                               {1, 1, 1, 1},
                                               {0, 4096, 8192, 4096, 0},
                                               {low, low + 1, low - 1},
                                               {5, 4, 3, 2, 1, 0, UINT64_MAX}}) {
    EXPECT_EQ(through(values), values);
  }
}

TEST(ValueCodec, EdgesOfDoubles) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::bit_cast<double>(std::uint64_t{0x7FF8'0000'DEAD'BEEF});
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{},
                                        {0.0},
                                        {-0.0},
                                        {0.0, -0.0, 0.0},
                                        {nan},
                                        {nan, 1.0, -infinity, infinity, 0.1},
                                        {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()},
                                        {0.1, 0.25, 0.3, 123456.78},
                                        {1e15, 0.000001},
                                        {9007199254740992.0, 9007199254740994.0},
                                        {1.0 / 3, 2.0 / 3}}) {
    EXPECT_EQ(bits(through(values)), bits(values));
  }
}

// Series as sources make them and as nobody does: whatever goes in comes out.
TEST(ValueCodec, RandomColumnsComeBack) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3'000; ++round) {
    const std::size_t count = random() % 300;
    const auto width = static_cast<unsigned>(random() % 64);
    const std::uint64_t factor = random() % 3 == 0 ? random() % 5'000 + 1 : 1;
    const unsigned shape = static_cast<unsigned>(random() % 5);
    const unsigned rare = static_cast<unsigned>(random() % 9) + 1;
    std::uint64_t now = random() >> (random() % 64);
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t noise = (random() >> (63 - width)) * factor;
      if (random() % rare == 0) {
        switch (shape) {
          case 0: now += noise; break;
          case 1: now -= noise; break;
          case 2: now = noise; break;
          case 3: now += (i % 10) * factor; break;
          default: now = random() % 2 == 0 ? 0 : noise;
        }
      }
      values.push_back(now);
    }
    ASSERT_EQ(through(values), values) << "round " << round;
    std::vector<double> doubles;
    for (const std::uint64_t value : values) {
      doubles.push_back(shape < 2    ? static_cast<double>(value % 100'000) / 100.0
                        : shape == 2 ? std::bit_cast<double>(value)
                                     : static_cast<double>(static_cast<float>(value)) * 1.1);
    }
    ASSERT_EQ(bits(through(doubles)), bits(doubles)) << "round " << round;
  }
}

TEST(ValueCodec, PlainSeriesTakeLittle) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> constant(2'000, 123'456'789'012);
  std::vector<std::uint64_t> steady;
  std::vector<std::uint64_t> each_tenth;
  std::vector<std::uint64_t> pages;
  std::vector<double> load;
  for (std::size_t i = 0; i < 2'000; ++i) {
    steady.push_back(1'000'000 + i * 37);
    each_tenth.push_back(i / 10 * 10);
    pages.push_back((1'000'000 + (pages.empty() || i % 4 != 0 ? 0 : random() % 16)) * 4'096);
    load.push_back(static_cast<double>(100 + i / 50) / 100.0);
  }
  std::size_t bytes = 0;
  through(constant, &bytes);
  EXPECT_LE(bytes, 10U);
  through(steady, &bytes);
  EXPECT_LE(bytes, 20U);
  through(each_tenth, &bytes);
  EXPECT_LE(bytes, 120U);
  through(pages, &bytes);
  EXPECT_LE(bytes, 2'000U / 3);
  through(load, &bytes);
  EXPECT_LE(bytes, 80U);
}

TEST(ValueCodec, HostileBytesDecodeToSomethingOrFail) {
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> ints;
  std::vector<double> floats;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes(random() % 40);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() % 4 == 0 ? random() % 12 : random());
    ints.clear();
    floats.clear();
    if (decode_ints(bytes, 50, ints)) {
      EXPECT_EQ(ints.size(), 50U);
    }
    if (decode_floats(bytes, 50, floats)) {
      EXPECT_EQ(floats.size(), 50U);
    }
  }
}

}  // namespace
}  // namespace hotlap
