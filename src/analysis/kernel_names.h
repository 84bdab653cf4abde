#pragma once
// What the name of a kernel says of it: the sort of work, the type that it computes in, whether it runs on the units
// for matrices (NVIDIA's tensor cores, AMD's matrix cores). Names are those of cuBLAS, cuDNN, CUTLASS, Tensile,
// Composable Kernel, PyTorch, Triton and the like; what they do not say is not known. Thread-safe: nothing here has
// state.
#include <cstdint>
#include <optional>
#include <string_view>

namespace hotlap {

enum class KernelSort : std::uint8_t {
  kCommunication,
  kConvolution,
  kMatrix,  // products of matrices
  kAttention,
  kNormalisation,
  kSoftmax,
  kPooling,
  kEmbedding,
  kOptimizer,
  kReduction,
  kCopy,  // concatenation, layout, type and copies made by kernels
  kElementwise,
  kOther,
};
inline constexpr std::size_t kKernelSortCount = 13;
std::string_view to_string(KernelSort sort);  // "matrix product"

enum class KernelType : std::uint8_t { kUnknown, kFp64, kFp32, kTf32, kFp16, kBf16, kFp8, kInt8 };
inline constexpr std::size_t kKernelTypeCount = 8;
std::string_view to_string(KernelType type);  // "fp32"; empty: not known

struct KernelTraits {
  KernelSort sort = KernelSort::kOther;
  KernelType type = KernelType::kUnknown;
  std::optional<bool> on_matrix_units;  // of matrix products, convolutions and attention; nothing: not known
};
KernelTraits traits_of_kernel(std::string_view name);

// The generation of GPU that a kernel was made for, where its name says so. GPUs run kernels of older ones, too: of a
// trace the newest counts.
enum class GpuGeneration : std::uint8_t { kUnknown, kMaxwell, kVolta, kTuring, kAmpere, kHopper, kBlackwell };
std::string_view to_string(GpuGeneration generation);  // "ampere"; empty: not known
GpuGeneration generation_of_kernel(std::string_view name);

// Work whose speed is that of the units for matrices.
constexpr bool is_matrix_work(KernelSort sort) {
  return sort == KernelSort::kMatrix || sort == KernelSort::kConvolution || sort == KernelSort::kAttention;
}

// Of a copy or fill of device memory, as profilers name it: "Memcpy HtoD (Pageable -> Device)".
struct CopyTraits {
  std::string_view direction;  // "host to device", "fill" …; empty: not known
  bool touches_host = false;
  std::optional<bool> is_pageable;  // nothing: the name does not say, or no host memory is in it
};
CopyTraits traits_of_copy(std::string_view name);

}  // namespace hotlap
