#include "analysis/kernel_names.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hotlap {
namespace {

// As "sort, type, on units (1) or not (0)"; "-" where it is not known.
std::string said(std::string_view name) {
  const KernelTraits traits = traits_of_kernel(name);
  const std::string_view type = to_string(traits.type);
  return std::string(to_string(traits.sort)) + ", " + (type.empty() ? "-" : std::string(type)) + ", " +
         (traits.on_matrix_units ? (*traits.on_matrix_units ? "1" : "0") : "-");
}

TEST(KernelNames, LibrariesOfNvidia) {
  EXPECT_EQ(said("volta_sgemm_64x64_nt"), "matrix product, fp32, 0");
  EXPECT_EQ(said("ampere_sgemm_32x32_sliced1x4_tn"), "matrix product, fp32, 0");
  EXPECT_EQ(said("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn"), "matrix product, fp16, 1");
  EXPECT_EQ(said("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn"), "matrix product, fp16, 1");
  EXPECT_EQ(said("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"), "matrix product, bf16, 1");
  EXPECT_EQ(said("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"),
            "matrix product, bf16, 1");
  EXPECT_EQ(said("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTN"), "matrix product, -, 1");
  EXPECT_EQ(said("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(...)"),
            "matrix product, tf32, 1");
  EXPECT_EQ(said("volta_dgemm_64x64_nn"), "matrix product, fp64, -");
  EXPECT_EQ(said("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw"), "convolution, tf32, 1");
  EXPECT_EQ(said("cudnn_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"), "convolution, fp32, 0");
  EXPECT_EQ(said("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)"), "convolution, fp32, 0");
  EXPECT_EQ(said("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)"),
            "normalisation, fp32, -");
  EXPECT_EQ(said("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"), "communication, -, -");
  EXPECT_EQ(said("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)"), "communication, -, -");
}

TEST(KernelNames, LibrariesOfAmd) {
  EXPECT_EQ(said("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN"), "matrix product, bf16, 1");
  EXPECT_EQ(said("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SE"), "matrix product, fp16, 1");
  EXPECT_EQ(said("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1"), "matrix product, fp32, 0");
  EXPECT_EQ(said("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32"), "matrix product, fp16, -");  // a name that was cut short
  EXPECT_EQ(said("Cijk_Ailk_Bljk_HHS_BH_MT64x64x16_SE_TT8_4_VW4"), "matrix product, fp16, 0");
  EXPECT_EQ(said("_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_1"), "attention, -, -");
}

TEST(KernelNames, CollectivesOfXla) {
  for (const char* collective :
       {"all-reduce.1", "all-reduce", "%all-reduce.3 = f32[8]{0} all-reduce(f32[8]{0} %fusion.1), to_apply=%add",
        "all-reduce-start.2", "all-reduce-done.4", "all-gather.3", "reduce-scatter.2", "collective-permute.9",
        "collective-permute-done.1", "all-to-all.1", "ragged-all-to-all.2", "collective-broadcast.1",
        "all-reduce-scatter-fusion.7", "loop_all-gather_fusion", "async-collective-start.1", "async-collective-done.1",
        "send.1", "recv-done.2"}) {
    EXPECT_EQ(said(collective), "communication, -, -") << collective;
  }
  EXPECT_EQ(said("%fusion.1 = f32[8]{0} fusion(f32[8]{0} %all-reduce.1), kind=kLoop"), "other, -, -");
  EXPECT_EQ(said("reduce.5"), "reduction, -, -");
  EXPECT_EQ(said("reduce-window.2"), "reduction, -, -");
  EXPECT_EQ(said("triton_poi_fused_all_gather_into_tensor_add_1"), "element-wise, -, -");
  for (const char* other : {"fusion.12", "copy-start.1", "custom-call.4", "recv_buffer_kernel", "sender.1",
                            "void cutlass::gemm::collective::all-reduce<float>()"}) {
    EXPECT_FALSE(said(other).starts_with("communication")) << other;
  }
}

TEST(KernelNames, KernelsOfPyTorch) {
  EXPECT_EQ(said("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail>"),
            "element-wise, fp32, -");
  EXPECT_EQ(said("void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::BFloat16, float>>"),
            "element-wise, bf16, -");
  EXPECT_EQ(said("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>"),
            "optimizer, fp32, -");
  EXPECT_EQ(said("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 32, 4, cutlass::half_t>>"),
            "attention, fp16, -");
  EXPECT_EQ(said("void (anonymous namespace)::cunn_SoftMaxForward<8, c10::Half, float, float>"), "softmax, fp16, -");
  EXPECT_EQ(said("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"), "reduction, fp32, -");
  EXPECT_EQ(said("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>"),
            "copy, fp32, -");
  EXPECT_EQ(
      said("void at::native::unrolled_elementwise_kernel<at::native::sin_kernel(at::TensorIteratorBase&)::{lambda()#2}"
           "::operator()() const::{lambda()#1}, float>"),
      "element-wise, fp32, -");  // a lambda is no LAMB
  EXPECT_EQ(said("triton_poi_fused_add_0"), "element-wise, -, -");
  EXPECT_EQ(said("triton_per_fused_sum_1"), "reduction, -, -");
  EXPECT_EQ(said("spin_kernel(long)"), "other, -, -");
  EXPECT_EQ(said(""), "other, -, -");
}

TEST(KernelNames, GenerationsOfGpus) {
  EXPECT_EQ(generation_of_kernel("volta_sgemm_64x64_nt"), GpuGeneration::kVolta);
  EXPECT_EQ(generation_of_kernel("sm80_xmma_gemm"), GpuGeneration::kAmpere);
  EXPECT_EQ(generation_of_kernel("gemm"), GpuGeneration::kUnknown);
  EXPECT_GT(GpuGeneration::kHopper, GpuGeneration::kAmpere);
}

TEST(CopyNames, DirectionAndMemory) {
  const CopyTraits pageable = traits_of_copy("Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(pageable.direction, "host to device");
  EXPECT_EQ(pageable.is_pageable, true);
  EXPECT_EQ(traits_of_copy("Memcpy DtoH (Device -> Pinned)").is_pageable, false);
  EXPECT_EQ(traits_of_copy("Memcpy DtoH (Device -> Pinned)").direction, "device to host");
  // AMD's profiler does not say which sort of memory it was.
  EXPECT_EQ(traits_of_copy("Memcpy HtoD (Host -> Device)").is_pageable, std::nullopt);
  EXPECT_EQ(traits_of_copy("Memcpy DtoD (Device -> Device)").is_pageable, std::nullopt);
  EXPECT_EQ(traits_of_copy("Memset (Device)").direction, "fill");
  EXPECT_EQ(traits_of_copy("Memcpy").direction, "");
}

}  // namespace
}  // namespace hotlap
