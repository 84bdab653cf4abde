#include "analysis/kernel_names.h"

#include <array>
#include <cctype>
#include <initializer_list>
#include <string>

#include "analysis/trace_tables.h"

namespace hotlap {
namespace {

using Parts = std::initializer_list<std::string_view>;

bool has_any(std::string_view text, Parts parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// Tensile: "Cijk_Ailk_Bljk_" and then the types, the first of them that of the operands.
std::string_view tensile_types(std::string_view name) {
  constexpr std::string_view kHead = "Cijk_";
  if (!name.starts_with(kHead)) return {};
  name.remove_prefix(kHead.size());
  for (int operand = 0; operand < 2; ++operand) {
    const std::size_t end = name.find('_');
    if (end == std::string_view::npos) return {};
    name.remove_prefix(end + 1);
  }
  return name;
}

KernelType type_of_tensile(std::string_view types) {
  if (types.starts_with("F8") || types.starts_with("B8") || types.starts_with("8")) return KernelType::kFp8;
  if (types.starts_with("I8") || types.starts_with("4xi8")) return KernelType::kInt8;
  switch (types.empty() ? '\0' : types[0]) {
    case 'S': return KernelType::kFp32;
    case 'X': return KernelType::kTf32;
    case 'H': return KernelType::kFp16;
    case 'B': return KernelType::kBf16;
    case 'D': return KernelType::kFp64;
    default: return KernelType::kUnknown;
  }
}

// Kernels that exist for one type alone, and say so by an abbreviation.
bool is_single_precision(std::string_view low) {
  return has_any(low, {"sgemm", "scudnn", "cgemm", "gemv2t_kernel_val<int, int, float", "gemvnsp_kernel<float"});
}

// `low` is the name in lower case. The narrower type goes first: sums are in fp32 all the same.
KernelType type_of(std::string_view name, std::string_view low) {
  if (const std::string_view types = tensile_types(name); !types.empty()) return type_of_tensile(types);
  if (has_any(low, {"e4m3", "e5m2", "fp8", "float8"})) return KernelType::kFp8;
  if (has_any(low, {"bf16", "bfloat16", "df16b"})) return KernelType::kBf16;
  if (has_any(low, {"tf32"})) return KernelType::kTf32;
  if (has_any(low, {"fp16", "half", "f16f16", "_f16_", "h884", "h1688", "h16816", "hgemm", "hcudnn", "df16_"}) ||
      (has_any(low, {"s16816"}) && !has_any(low, {"i16816"})))
    return KernelType::kFp16;
  if (has_any(low, {"s1688gemm", "s1688fprop", "s1688dgrad", "s1688wgrad"})) return KernelType::kTf32;
  if (has_any(low, {"imma", "i8816", "i16832", "int8", "_s8_"}) && !has_any(low, {"nccl"})) return KernelType::kInt8;
  if (is_single_precision(low)) return KernelType::kFp32;
  if (has_any(low, {"dgemm", "double"})) return KernelType::kFp64;
  if (has_any(low, {"float"})) return KernelType::kFp32;
  return KernelType::kUnknown;
}

KernelSort sort_of(std::string_view low) {
  if (names_communication(low)) return KernelSort::kCommunication;
  if (has_any(low, {"flash", "fmha", "attn_fwd", "attn_bwd", "attention", "bwd_kernel_dk_dv", "bwd_kernel_dq"}))
    return KernelSort::kAttention;
  if (has_any(low, {"rmsnorm", "rms_norm", "batch_norm", "batchnorm", "layer_norm", "layernorm", "group_norm",
                    "groupnorm", "cudnn::bn_", "bn_fw", "bn_bw", "welford", "rowwisemoments"}))
    return KernelSort::kNormalisation;
  if (has_any(low, {"implicit_gemm",
                    "implicit_convolve",
                    "explicit_convolve",
                    "scudnn",
                    "hcudnn",
                    "s1688cudnn",
                    "s884cudnn",
                    "conv2d",
                    "conv3d",
                    "convolution",
                    "fprop",
                    "dgrad",
                    "wgrad",
                    "winograd",
                    "naive_conv",
                    "miopenconv",
                    "igemm_",
                    "fft2d_",
                    "fft1d_",
                    "flip_filter",
                    "im2col",
                    "col2im",
                    "pointwise_mult_and_sum",
                    "depthwise"}))
    return KernelSort::kConvolution;
  if (has_any(low, {"gemm", "cijk_", "nvjet", "gemv", "wgmma", "splitkreduce", "dot_kernel"}))
    return KernelSort::kMatrix;
  if (has_any(low, {"softmax"})) return KernelSort::kSoftmax;
  if (has_any(low, {"pool"}) && !has_any(low, {"pooled_embs"})) return KernelSort::kPooling;
  if (has_any(low, {"embedding", "indexselect", "index_select", "pooled_embs"})) return KernelSort::kEmbedding;
  if (has_any(low, {"adam", "multi_tensor_apply", "fusedsgd", "lambstage"})) return KernelSort::kOptimizer;
  if (has_any(low, {"catarray", "transpose", "nchwtonhwc", "nhwctonchw", "direct_copy", "permute", "nchw2nhwc",
                    "copy_kernel"}))
    return KernelSort::kCopy;
  if (has_any(low, {"reduce", "scan", "radixsort", "topk", "argmax", "triton_red", "triton_per"}))
    return KernelSort::kReduction;
  if (has_any(low, {"elementwise", "tensorapply", "pointwise", "functor", "fillbuffer", "act_and_mul", "rotary",
                    "triton_poi"}))
    return KernelSort::kElementwise;
  return KernelSort::kOther;
}

std::optional<bool> on_matrix_units(std::string_view name, std::string_view low, KernelTraits traits) {
  if (!is_matrix_work(traits.sort)) return std::nullopt;
  if (!tensile_types(name).empty()) {
    if (has_any(name, {"_MI16x", "_MI32x", "_MI4x"})) return true;
    // A tile of each thread is of kernels without such units. Names may be cut off before either is told: of fp32 it is
    // the rule all the same, of narrower types the exception.
    return has_any(name, {"_TT"}) || traits.type == KernelType::kFp32 ? std::optional(false) : std::nullopt;
  }
  if (has_any(low, {"tensorop", "884", "1688", "16816", "imma", "hmma", "wmma", "xmma", "gmma", "nvjet", "tensor16x8",
                    "tf32", "mfma"}))
    return true;
  if (traits.sort == KernelSort::kAttention && traits.type != KernelType::kFp32) return std::nullopt;
  if (is_single_precision(low) || has_any(low, {"simt", "gemv"})) return false;
  // Engines of cuDNN from before there were such units.
  if (traits.type == KernelType::kFp32 && has_any(low, {"dgrad", "wgrad", "winograd", "fft", "im2col", "convolve"}))
    return false;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(KernelSort sort) {
  constexpr std::array<std::string_view, kKernelSortCount> kNames{
      "communication", "convolution", "matrix product", "attention", "normalisation", "softmax", "pooling",
      "embedding",     "optimizer",   "reduction",      "copy",      "element-wise",  "other"};
  return kNames[static_cast<std::size_t>(sort)];
}

std::string_view to_string(KernelType type) {
  constexpr std::array<std::string_view, kKernelTypeCount> kNames{"",     "fp64", "fp32", "tf32",
                                                                  "fp16", "bf16", "fp8",  "int8"};
  return kNames[static_cast<std::size_t>(type)];
}

KernelTraits traits_of_kernel(std::string_view name) {
  // The text of an operation of XLA names its operands, too: "%fusion.1 = f32[8] fusion(%all-reduce.1)".
  if (name.starts_with('%')) name = name.substr(0, name.find(" = "));
  std::string low(name);
  for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  KernelTraits traits{.sort = sort_of(low), .type = type_of(name, low), .on_matrix_units = {}};
  traits.on_matrix_units = on_matrix_units(name, low, traits);
  return traits;
}

std::string_view to_string(GpuGeneration generation) {
  constexpr std::array<std::string_view, 7> kNames{"", "maxwell", "volta", "turing", "ampere", "hopper", "blackwell"};
  return kNames[static_cast<std::size_t>(generation)];
}

GpuGeneration generation_of_kernel(std::string_view name) {
  if (has_any(name, {"sm100", "blackwell"})) return GpuGeneration::kBlackwell;
  if (has_any(name, {"sm90", "hopper", "nvjet"})) return GpuGeneration::kHopper;
  if (has_any(name, {"sm80", "ampere_", "cutlass_80"})) return GpuGeneration::kAmpere;
  if (has_any(name, {"sm75", "turing_"})) return GpuGeneration::kTuring;
  if (has_any(name, {"volta_"})) return GpuGeneration::kVolta;
  if (has_any(name, {"maxwell_"})) return GpuGeneration::kMaxwell;
  return GpuGeneration::kUnknown;
}

CopyTraits traits_of_copy(std::string_view name) {
  if (name.starts_with("Memset")) return {.direction = "fill", .touches_host = false, .is_pageable = {}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kDirections{
      {{"HtoD", "host to device"},
       {"HostToDevice", "host to device"},
       {"DtoH", "device to host"},
       {"DeviceToHost", "device to host"},
       {"DtoD", "device to device"},
       {"DeviceToDevice", "device to device"},
       {"PtoP", "device to device"},
       {"HtoH", "host to host"}}};
  CopyTraits traits;
  for (const auto& [part, direction] : kDirections) {
    if (name.find(part) == std::string_view::npos) continue;
    traits.direction = direction;
    break;
  }
  traits.touches_host = traits.direction.find("host") != std::string_view::npos;
  if (traits.touches_host) {
    if (name.find("Pageable") != std::string_view::npos) {
      traits.is_pageable = true;
    } else if (name.find("Pinned") != std::string_view::npos) {
      traits.is_pageable = false;
    }
  }
  return traits;
}

}  // namespace hotlap
