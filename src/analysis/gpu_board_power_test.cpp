// With which power limit boards start, by their names.
#include "analysis/gpu_board_power.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

TEST(BoardPower, IsThatOfTheNameWithOrWithoutItsMaker) {
  EXPECT_EQ(board_power_w("NVIDIA A100-SXM4-80GB"), 400);
  EXPECT_EQ(board_power_w("A100-SXM4-40GB"), 400);
  EXPECT_EQ(board_power_w("Tesla V100-PCIE-16GB"), 250);
  EXPECT_EQ(board_power_w("NVIDIA GeForce RTX 3090"), 350);
  EXPECT_EQ(board_power_w("NVIDIA H200 NVL"), 600);
  EXPECT_EQ(board_power_w("NVIDIA H200"), 700);
}

TEST(BoardPower, IsNothingForANameThatOnlyBeginsAlike) {
  EXPECT_EQ(board_power_w("NVIDIA A100X"), std::nullopt);
  EXPECT_EQ(board_power_w("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), std::nullopt);
  EXPECT_EQ(board_power_w("Tesla V100-SXM2-32GB-LS"), std::nullopt);
  EXPECT_EQ(board_power_w("NVIDIA GeForce RTX 3090 Ti"), std::nullopt);
  EXPECT_EQ(board_power_w("Quadro RTX 8000"), std::nullopt);
  EXPECT_EQ(board_power_w(""), std::nullopt);
}

}  // namespace
}  // namespace hotlap
