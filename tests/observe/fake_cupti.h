#pragma once
// How the program that stands in for the CUDA driver and runtime speaks to the library that stands in for CUPTI.
#include <cstdint>

#include "observe/cupti_abi.h"

inline constexpr std::uint32_t kFakeLaunch = 211;
inline constexpr std::uint32_t kFakeCopy = 41;
inline constexpr std::uint32_t kFakeWait = 165;

extern "C" {
std::uint64_t fake_cupti_now_ns();
std::uint32_t fake_cupti_thread();
void fake_cupti_kernel(const hotlap::cupti::KernelRecord* record);
void fake_cupti_copy(const hotlap::cupti::CopyRecord* record);
void fake_cupti_fill(const hotlap::cupti::FillRecord* record);
void fake_cupti_call(const hotlap::cupti::CallRecord* record);
int fake_cupti_windows();
std::uint64_t fake_cupti_written();
void fake_cupti_take_subscription();
}
