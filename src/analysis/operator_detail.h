#pragma once
// What the kept arguments of an operator or kernel say (model/span.h: detail), and the floating-point operations that
// an operator takes by its shapes. Plain functions.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

struct OperatorDetail {
  std::vector<std::vector<std::int64_t>> shapes;  // of its inputs; empty: no tensor, or a scalar
  std::vector<std::string> types;                 // "float", "c10::BFloat16"
  std::vector<std::string> values;                // of inputs that are no tensors: "[1, 1]", "True"; empty: none
  std::string shapes_text;                        // as the trace has it; empty: none
  std::string stack;                              // Python's, as the profiler has it; empty: none
};
OperatorDetail parse_operator_detail(std::string_view detail_untrusted);

// What a collective's arguments say. Empty, -1: not told.
struct CollectiveDetail {
  std::string name;           // "allreduce"
  std::string process_group;  // its number or name
  std::string description;    // "default_pg"
  std::string ranks;          // "[0, 1]"
  std::string dtype;          // "Float"
  std::int64_t group_size = -1;
  std::int64_t sequence = -1;
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int64_t bytes() const;  // that the rank hands in
};
CollectiveDetail parse_collective_detail(std::string_view detail_untrusted);

// Of one call: two for each multiplication with addition of matrix products, convolutions and attention (half of it
// where that is causal); what stands around them (bias, scaling, softmax) is left out. Nothing: another operator, or
// its shapes do not say.
std::optional<double> flops_of(std::string_view operator_name, const OperatorDetail& detail);

// Bytes of one element, by PyTorch's name of its type: "Float", "c10::BFloat16", "long int". Nothing: unknown.
std::optional<std::int64_t> element_bytes(std::string_view type);

}  // namespace hotlap
