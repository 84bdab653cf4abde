#pragma once
// Python stacks that the hooks counted (`--profile functions=20hz`): folded text in the run's folder `profile`, one
// file a process, `<pid>-<start ticks>.folded`, rewritten whole now and then. Bounded: kStackFilesMax files, and of
// each kStackFileBytesMax.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hotlap {

inline constexpr std::size_t kStackFilesMax = 1024;
inline constexpr std::size_t kStackFileBytesMax = std::size_t{16} << 20;

struct SampledStack {
  std::int32_t pid = 0;
  std::string_view phase;   // of the run's phases, as the process saw it: "training"
  std::string_view thread;  // "MainThread"
  std::string_view frames;  // outermost first: "main (train.py:88);step (train.py:41)"
  std::uint64_t samples = 0;
};

// Each line of each file, by file name; lines that are none are skipped. Text is valid during the call. A run without
// such files has none. An error of `visit` ends it.
Result<void> read_stacks(const std::filesystem::path& run_folder,
                         const std::function<Result<void>(const SampledStack&)>& visit);

}  // namespace hotlap
