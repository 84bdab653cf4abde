#include "store/block.h"

#include <gtest/gtest.h>

#include <random>

namespace hotlap {
namespace {

Bytes sealed(BlockCodec& codec, const Bytes& raw, bool pack) {
  Bytes out;
  codec.seal(BlockKind::kChunk, raw, pack, out);
  return out;
}

TEST(Block, ComesBackPackedOrNot) {
  BlockCodec codec;
  std::mt19937_64 random(6);
  for (const std::size_t size : {0U, 1U, 63U, 64U, 1'000U, 100'000U}) {
    for (const bool pack : {false, true}) {
      for (const bool is_random : {false, true}) {
        Bytes raw(size);
        for (std::byte& b : raw) b = static_cast<std::byte>(is_random ? random() : 7);
        const Bytes block = sealed(codec, raw, pack);
        const auto back = codec.open(BlockKind::kChunk, block);
        ASSERT_TRUE(back);
        EXPECT_TRUE(std::equal(back->begin(), back->end(), raw.begin(), raw.end()));
        EXPECT_FALSE(codec.open(BlockKind::kTail, block));
        EXPECT_LE(block.size(), size + 12);
      }
    }
  }
}

TEST(Block, EveryDamagedBitIsSeen) {
  BlockCodec codec;
  Bytes raw(200, std::byte{3});
  for (const bool pack : {false, true}) {
    Bytes block = sealed(codec, raw, pack);
    for (std::size_t bit = 0; bit < block.size() * 8; ++bit) {
      block[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_FALSE(codec.open(BlockKind::kChunk, block)) << bit;
      block[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
    for (std::size_t cut = 0; cut < block.size(); ++cut) {
      EXPECT_FALSE(codec.open(BlockKind::kChunk, ByteView(block).first(cut)));
    }
  }
}

TEST(Block, ASizeBeyondTheBoundIsRefusedBeforeAnythingIsAllocated) {
  BlockCodec codec;
  Bytes block{static_cast<std::byte>(BlockKind::kChunk), std::byte{1}};
  put_varint(block, std::uint64_t{1} << 40U);
  put_fixed(block, crc32(block));
  EXPECT_FALSE(codec.open(BlockKind::kChunk, block));
}

}  // namespace
}  // namespace hotlap
