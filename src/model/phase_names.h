#pragma once
// What a name says of the part of a step that it belongs to: autograd's own operators, and what programs and job
// timelines call theirs ("forward-compute", "backward_step", "optimizer", "grads-reduce-scatter"); and which labels are
// those of a whole step. Thread-safe: nothing here has state.
#include <cstdint>
#include <optional>
#include <string>
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

// "step 5", "Iteration [3/100]", "global_step=5", "train_step".
struct StepLabel {
  std::string words;  // what such labels have in common: lower case, without numbers
  std::int64_t number = -1;
};
std::optional<StepLabel> step_label(std::string_view name);

}  // namespace hotlap
