#include "record/observers.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "base/format.h"
#include "base/host.h"
#include "base/text.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::array kObservers{
    ObserverSpec{.name = "nvtx",
                 .library = "libhotlap_nvtx.so",
                 .variable = "NVTX_INJECTION64_PATH",
                 .sees = "ranges and marks of programs that use NVTX, with or without a GPU"},
    ObserverSpec{.name = "nccl",
                 .library = "libhotlap_nccl.so",
                 .variable = "NCCL_PROFILER_PLUGIN",
                 .sees = "collectives as NCCL tells them to a profiler plugin; not tried on hardware"},
    ObserverSpec{.name = "kernels",
                 .library = "libhotlap_kernels.so",
                 .variable = "CUDA_INJECTION64_PATH",
                 .sees = "kernels and copies of programs that use CUDA, by CUPTI; not tried on hardware",
                 .excludes_profile = true},
    ObserverSpec{.name = "operators",
                 .library = "libhotlap_operators.so",
                 .variable = "HOTLAP_OBSERVE_OPERATORS",
                 .sees = "PyTorch's operators, one call in a hundred, and record_function ranges",
                 .needs_hook = true},
};

std::vector<fs::path> library_folders() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  if (const char* given = std::getenv("HOTLAP_OBSERVER_DIR"); given != nullptr && *given != '\0') return {given};
  const Result<std::string> program = system_host().read_link("/proc/self/exe");
  if (!program.ok()) return {};
  const fs::path folder = fs::path(*program).parent_path();
  return {folder / "lib" / "hotlap", folder.parent_path() / "lib" / "hotlap"};
}

}  // namespace

std::span<const ObserverSpec> all_observers() { return kObservers; }

Result<std::vector<const ObserverSpec*>> parse_observers(std::string_view text) {
  std::set<const ObserverSpec*> wanted;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view name = trim(part);
    const auto found = std::ranges::find(kObservers, name, &ObserverSpec::name);
    if (found == kObservers.end()) {
      std::string known;
      for (const ObserverSpec& one : kObservers) known += format("{}{}", known.empty() ? "" : ", ", one.name);
      return Error{ErrorCode::kInvalidInput, format("no observer is called '{}'; there is {}", name, known)};
    }
    wanted.insert(&*found);
  }
  return std::vector<const ObserverSpec*>(wanted.begin(), wanted.end());
}

Result<fs::path> find_observer(const ObserverSpec& observer) {
  std::string looked;
  for (const fs::path& folder : library_folders()) {
    const fs::path path = folder / observer.library;
    if (system_host().exists(path.native())) return path;
    looked += format("{}{}", looked.empty() ? "" : " or ", folder.native());
  }
  return Error{ErrorCode::kNotFound,
               format("{} is not in {}: install hotlap whole, or set HOTLAP_OBSERVER_DIR", observer.library, looked)};
}

}  // namespace hotlap
