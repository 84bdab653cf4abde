#include "ingest/log_memory.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/ascii.h"

namespace hotlap {
namespace {

struct Name {
  std::string_view key;
  LogMemory memory;
};
// What mmcv, Swin and torchvision call memory is the most that was ever allocated.
constexpr std::array kNames{
    Name{"gpu_mem", LogMemory::kAllocated},
    Name{"gpu mem", LogMemory::kAllocated},
    Name{"gpu_memory", LogMemory::kAllocated},
    Name{"gpu memory", LogMemory::kAllocated},
    Name{"cuda_mem", LogMemory::kAllocated},
    Name{"vram", LogMemory::kAllocated},
    Name{"allocated", LogMemory::kAllocated},
    Name{"alloc", LogMemory::kAllocated},
    Name{"mem_alloc", LogMemory::kAllocated},
    Name{"mem_allocated", LogMemory::kAllocated},
    Name{"memory_allocated", LogMemory::kAllocated},
    Name{"gpu_mem_allocated", LogMemory::kAllocated},
    Name{"gpu_memory_allocated", LogMemory::kAllocated},
    Name{"cuda_mem_allocated", LogMemory::kAllocated},
    Name{"reserved", LogMemory::kReserved},
    Name{"mem_reserved", LogMemory::kReserved},
    Name{"memory_reserved", LogMemory::kReserved},
    Name{"gpu_mem_reserved", LogMemory::kReserved},
    Name{"gpu_memory_reserved", LogMemory::kReserved},
    Name{"cuda_mem_reserved", LogMemory::kReserved},
    Name{"mem", LogMemory::kAllocatedMax},
    Name{"memory", LogMemory::kAllocatedMax},
    Name{"max mem", LogMemory::kAllocatedMax},
    Name{"max_mem", LogMemory::kAllocatedMax},
    Name{"max memory", LogMemory::kAllocatedMax},
    Name{"max_memory", LogMemory::kAllocatedMax},
    Name{"max_memory_allocated", LogMemory::kAllocatedMax},
    Name{"max_mem_allocated", LogMemory::kAllocatedMax},
    Name{"peak mem", LogMemory::kAllocatedMax},
    Name{"peak_mem", LogMemory::kAllocatedMax},
    Name{"peak memory", LogMemory::kAllocatedMax},
    Name{"peak_memory", LogMemory::kAllocatedMax},
    Name{"peak_gpu_mem", LogMemory::kAllocatedMax},
    Name{"gpu_mem_peak", LogMemory::kAllocatedMax},
};
constexpr double kMib = 1024.0 * 1024;
constexpr double kGib = 1024 * kMib;

std::optional<double> factor_of(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 10> kUnits{{{"g", kGib},
                                                                        {"gb", 1e9},
                                                                        {"gib", kGib},
                                                                        {"m", kMib},
                                                                        {"mb", 1e6},
                                                                        {"mib", kMib},
                                                                        {"b", 1},
                                                                        {"bytes", 1},
                                                                        {"kb", 1e3},
                                                                        {"kib", 1024}}};
  const auto* const found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  return found == kUnits.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<std::pair<LogMemory, double>> read_log_memory(const LogItem& item) {
  std::string unit = to_lower(item.unit);
  std::string_view key = item.key;
  // "gpu_mem_gb"
  if (const std::size_t end = key.find_last_of("_ "); unit.empty() && end != std::string_view::npos) {
    if (factor_of(key.substr(end + 1)) && key.size() - end > 2) {
      unit = key.substr(end + 1);
      key = key.substr(0, end);
    }
  }
  const auto* const name = std::ranges::find(kNames, key, &Name::key);
  if (name == kNames.end() || item.total || !(item.value >= 0)) return std::nullopt;
  constexpr double kSmall = 200;      // no GPU has so many GB …
  constexpr double kMegabytes = 1e7;  // … nor so many MB
  const auto factor = !unit.empty()             ? factor_of(unit)
                      : item.value < kSmall     ? std::optional(kGib)
                      : item.value < kMegabytes ? std::optional(kMib)
                                                : std::optional(1.0);
  constexpr double kBytesMax = 1e15;
  if (!factor || item.value * *factor > kBytesMax) return std::nullopt;
  return std::pair(name->memory, item.value * *factor);
}

}  // namespace hotlap
