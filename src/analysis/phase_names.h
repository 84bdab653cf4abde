#pragma once
// What an operator's name says of the part of a step that it belongs to: autograd's own operators, and what programs
// and job timelines call theirs ("forward-compute", "backward_step", "optimizer", "grads-reduce-scatter").
#include <cstdint>
#include <string_view>

namespace hotlap {

enum class PhaseName : std::uint8_t {
  kNone,
  kAutograd,  // an operator of autograd's engine
  kDataWait,
  kForward,
  kBackward,
  kOptimizer,
  kCommunication,  // "forward-send": between the parts
};

PhaseName phase_name(std::string_view operator_name);

}  // namespace hotlap
