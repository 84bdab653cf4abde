#pragma once
// What a GPU can compute at most, by the name that its driver and the framework give it.
#include <optional>
#include <string_view>

namespace hotlap {

// TFLOP/s of one GPU, dense (no sparsity), as its maker states them at the boost clock. 0: not known, or it has none.
struct GpuPeaks {
  std::string_view model;
  double fp32 = 0;
  double tf32 = 0;
  double bf16 = 0;
  double fp16 = 0;
};

enum class Precision : unsigned char { kFp32, kTf32, kBf16, kFp16 };
std::string_view to_string(Precision precision);

// Nothing for a model that is not in the table, for a part of one (MIG), and for its relatives (Laptop, Ti, NVL).
std::optional<GpuPeaks> gpu_peaks(std::string_view name_untrusted);
// Nothing where the table does not know it.
std::optional<double> peak_tflops(const GpuPeaks& peaks, Precision precision);

}  // namespace hotlap
