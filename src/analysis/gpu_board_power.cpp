#include "analysis/gpu_board_power.h"

#include <array>

namespace hotlap {
namespace {

struct Board {
  std::string_view name;  // as it begins
  double watts;
};
// Makers' data sheets. Names of which there are boards with several limits are left out; the first that fits counts.
constexpr std::array kBoards{
    Board{"A100-SXM4-", 400},
    Board{"A100-PCIE-40GB", 250},
    Board{"A100 80GB PCIe", 300},
    Board{"H100 80GB HBM3", 700},
    Board{"H100 PCIe", 350},
    Board{"H200 NVL", 600},
    Board{"H200", 700},
    Board{"V100-SXM2-", 300},
    Board{"V100-PCIE-", 250},
    Board{"T4", 70},
    Board{"A10G", 300},
    Board{"A10", 150},
    Board{"A30", 165},
    Board{"A40", 300},
    Board{"L40S", 350},
    Board{"L40", 300},
    Board{"L4", 72},
    Board{"RTX A6000", 300},
    Board{"RTX 3090", 350},
    Board{"RTX 4090", 450},
};
constexpr std::array<std::string_view, 3> kMakers{"NVIDIA ", "Tesla ", "GeForce "};

}  // namespace

std::optional<double> board_power_w(std::string_view name) {
  for (const std::string_view maker : kMakers) {
    if (name.starts_with(maker)) name.remove_prefix(maker.size());
  }
  for (const Board& board : kBoards) {
    if (!name.starts_with(board.name)) continue;
    const std::string_view rest = name.substr(board.name.size());
    // "SXM4-40GB" goes on; "A10" of "A100" is another, and so are a part of one, a Ti, or "SXM2-32GB-LS" of less power.
    if (board.name.ends_with('-')) {
      const bool is_size = rest.ends_with("GB") && rest.find_first_not_of("0123456789") == rest.size() - 2;
      return is_size ? std::optional(board.watts) : std::nullopt;
    }
    if (rest.empty()) return board.watts;
  }
  return std::nullopt;
}

}  // namespace hotlap
