#include "analysis/gpu_peaks.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace hotlap {
namespace {

// Makers' figures as kept by Lightning's throughput table (2026-07-20), the accelerator pages of ml-engineering
// (2026-08-22) and llm-analysis (2024-11-13); where they disagree, nothing stands here. The first that fits counts.
constexpr std::array kPeaks{
    GpuPeaks{"B300", 80, 1125, 2250, 2250},
    GpuPeaks{"GB200", 80, 1250, 2500, 2500},
    GpuPeaks{"B200", 80, 1125, 2250, 2250},
    GpuPeaks{"GH200", 67, 494.5, 989, 989},
    GpuPeaks{"H200", 67, 494.5, 989, 989},
    GpuPeaks{"H100 NVL", 60, 417.5, 835.5, 835.5},
    GpuPeaks{"H100 PCIe", 51, 378, 756, 756},
    GpuPeaks{"H100 80GB HBM3", 67, 494.5, 989, 989},
    GpuPeaks{"A100", 19.5, 156, 312, 312},
    GpuPeaks{"A40", 37.4, 74.8, 149.7, 149.7},
    GpuPeaks{"A10", 0, 0, 0, 125},
    GpuPeaks{"L40S", 91.6, 183, 362, 362},
    GpuPeaks{"L40", 90.5, 90.5, 181, 181},
    GpuPeaks{"L4", 30.3, 60, 121, 121},
    GpuPeaks{"RTX A6000", 38.7, 77.4, 0, 154.8},
    GpuPeaks{"RTX 3090", 35.6, 35.6, 0, 0},
    GpuPeaks{"RTX 4090", 82.6, 82.6, 0, 0},
    GpuPeaks{"V100-SXM2", 15.7, 0, 0, 125},
    GpuPeaks{"V100-PCIE", 14, 0, 0, 112},
    GpuPeaks{"T4", 8.1, 0, 0, 65},
    GpuPeaks{"MI300X", 163.4, 653.7, 1307, 1307},
    GpuPeaks{"MI325X", 163.4, 653.7, 1300, 1300},
};
constexpr std::array<std::string_view, 5> kMakers{"NVIDIA ", "Tesla ", "GeForce ", "AMD ", "Instinct "};
// What makes another product of a name.
constexpr std::array<std::string_view, 10> kRelatives{"Ti",  "D",   "SUPER", "Laptop", "Mobile",
                                                      "NVL", "MIG", "Max-Q", "Ada",    "vGPU"};

bool is_word_end(std::string_view rest) { return rest.empty() || rest.front() == ' ' || rest.front() == '-'; }

bool names_a_relative(std::string_view rest) {
  for (const std::string_view word : split(rest, ' ')) {
    if (std::ranges::find(kRelatives, word) != kRelatives.end()) return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return "fp32";
    case Precision::kTf32: return "tf32";
    case Precision::kBf16: return "bf16";
    case Precision::kFp16: return "fp16";
  }
  return "?";
}

std::optional<GpuPeaks> gpu_peaks(std::string_view name) {
  for (const std::string_view maker : kMakers) {
    if (name.starts_with(maker)) name.remove_prefix(maker.size());
  }
  for (const GpuPeaks& peaks : kPeaks) {
    if (!name.starts_with(peaks.model)) continue;
    const std::string_view rest = name.substr(peaks.model.size());
    if (!is_word_end(rest)) continue;
    return names_a_relative(rest) ? std::nullopt : std::optional(peaks);
  }
  return std::nullopt;
}

std::optional<double> peak_tflops(const GpuPeaks& peaks, Precision precision) {
  double found = 0;
  switch (precision) {
    case Precision::kFp32: found = peaks.fp32; break;
    case Precision::kTf32: found = peaks.tf32; break;
    case Precision::kBf16: found = peaks.bf16; break;
    case Precision::kFp16: found = peaks.fp16; break;
  }
  return found > 0 ? std::optional(found) : std::nullopt;
}

}  // namespace hotlap
