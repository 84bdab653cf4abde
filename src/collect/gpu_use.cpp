#include "collect/gpu_use.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::string_view kHostPidNamespace = "pid:[4026531836]";  // the kernel's PROC_PID_INIT_INO
constexpr std::uint32_t kNvidiaMajor = 195;
constexpr std::uint32_t kControlMinor = 254;  // 254 modeset, 255 nvidiactl: no GPUs

std::optional<std::string_view> variable(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view entry = environment.substr(0, end);
    environment.remove_prefix(std::min(end + 1, environment.size()));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// The minors that "c 195:3 rw" lines of a version 1 device cgroup allow; nothing: no such cgroup, or no limit.
std::optional<std::vector<std::uint32_t>> allowed_minors(const Host& host, std::int32_t pid) {
  const Result<std::string> groups = host.read_text(format("/proc/{}/cgroup", pid));
  if (!groups.ok()) return std::nullopt;
  std::string path;
  std::string_view rest(*groups);
  std::string_view line;
  while (next_line(rest, line)) {
    const std::size_t at = line.find(":devices:");
    if (at != std::string_view::npos) path = line.substr(at + std::string_view(":devices:").size());
  }
  if (path.empty()) return std::nullopt;
  const Result<std::string> list = host.read_text(format("/sys/fs/cgroup/devices{}/devices.list", path));
  if (!list.ok()) return std::nullopt;
  std::vector<std::uint32_t> minors;
  rest = *list;
  while (next_line(rest, line)) {
    const std::string_view type = next_word(line);
    const std::string_view number = next_word(line);
    if (type == "a") return std::nullopt;
    if (type != "c") continue;
    if (number == "*:*") return std::nullopt;
    const std::size_t colon = number.find(':');
    if (colon == std::string_view::npos || parse_u64(number.substr(0, colon)) != kNvidiaMajor) continue;
    if (number.substr(colon + 1) == "*") return std::nullopt;
    const auto minor = parse_u64(number.substr(colon + 1));
    if (minor && *minor < kControlMinor) minors.push_back(static_cast<std::uint32_t>(*minor));
  }
  return minors;
}

// "MIG-GPU-<uuid>/1/0", as older drivers name an instance.
bool is_old_mig_name(std::string_view word, const GpuSeen& gpu) {
  return gpu.is_mig && word == format("MIG-{}/{}/{}", gpu.parent_uuid, gpu.gpu_instance, gpu.compute_instance);
}

// What CUDA_VISIBLE_DEVICES means for `gpus`: indices into them. CUDA stops at the first entry that it does not know.
struct Visible {
  std::vector<std::size_t> gpus;
  bool is_order_unknown = false;  // numbers in CUDA's own order, fastest first, on a machine with different GPUs
};
Visible resolve(std::string_view text, bool is_pci_order, std::span<const GpuSeen> gpus) {
  Visible visible;
  const bool are_alike = std::all_of(gpus.begin(), gpus.end(),
                                     [&](const GpuSeen& gpu) { return gpu.is_mig || gpu.name == gpus.front().name; });
  for (std::string_view word : split(text, ',')) {
    word = trim(word);
    std::vector<std::size_t> fitting;
    const auto index = parse_u64(word);
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      const GpuSeen& gpu = gpus[g];
      const bool fits =
          index ? !gpu.is_mig && gpu.index == *index
                : !word.empty() && word != "-1" && (gpu.uuid.starts_with(word) || is_old_mig_name(word, gpu));
      if (fits) fitting.push_back(g);
    }
    if (fitting.size() != 1) break;
    if (index && !is_pci_order && !are_alike) visible.is_order_unknown = true;
    // CUDA uses the first instance of a GPU that is split.
    if (gpus[fitting.front()].is_split) {
      const auto first = std::find_if(gpus.begin(), gpus.end(), [&](const GpuSeen& gpu) {
        return gpu.is_mig && gpu.parent_uuid == gpus[fitting.front()].uuid;
      });
      if (first != gpus.end()) visible.gpus.push_back(static_cast<std::size_t>(first - gpus.begin()));
      continue;
    }
    visible.gpus.push_back(fitting.front());
  }
  return visible;
}

std::string joined(const std::vector<std::string>& words) {
  constexpr std::size_t kNamedMax = 4;
  std::string text;
  for (std::size_t w = 0; w < std::min(words.size(), kNamedMax); ++w) text += (w == 0 ? "" : ", ") + words[w];
  if (words.size() > kNamedMax) text += format(" and {} more", words.size() - kNamedMax);
  return text;
}

struct Rules {
  std::span<const GpuSeen> gpus;
  std::span<const GpuLimits> limits;
  bool has_visible = false;  // any process is limited
  bool is_order_unknown = false;
  std::vector<bool> is_visible;     // to any process
  std::vector<bool> is_listed;      // in the CUDA_VISIBLE_DEVICES of any process
  std::vector<bool> is_local_rank;  // the one that a process of that local rank takes by habit
};

Rules rules_of(std::span<const GpuSeen> gpus, std::span<const GpuLimits> limits) {
  Rules rules{.gpus = gpus, .limits = limits, .is_visible = {}, .is_listed = {}, .is_local_rank = {}};
  rules.is_visible.resize(gpus.size(), false);
  rules.is_listed.resize(gpus.size(), false);
  rules.is_local_rank.resize(gpus.size(), false);
  for (const GpuLimits& one : limits) {
    std::vector<std::size_t> seen;
    if (one.visible) {
      Visible visible = resolve(*one.visible, one.is_pci_order, gpus);
      rules.has_visible = true;
      rules.is_order_unknown |= visible.is_order_unknown;
      seen = std::move(visible.gpus);
    } else {
      for (std::size_t g = 0; g < gpus.size(); ++g) {
        if (!gpus[g].is_mig && !gpus[g].is_split) seen.push_back(g);
      }
    }
    if (one.minors) {
      std::erase_if(seen, [&](std::size_t g) {
        return gpus[g].minor != UINT32_MAX &&
               std::find(one.minors->begin(), one.minors->end(), gpus[g].minor) == one.minors->end();
      });
      rules.has_visible = true;
    }
    for (const std::size_t g : seen) {
      rules.is_visible[g] = true;
      if (one.visible) rules.is_listed[g] = true;
    }
    if (one.local_rank && *one.local_rank < seen.size()) rules.is_local_rank[seen[*one.local_rank]] = true;
  }
  return rules;
}

GpuUse use_of(const Rules& rules, std::size_t g) {
  const GpuSeen& gpu = rules.gpus[g];
  if (gpu.slots && !gpu.slots->empty()) return {true, joined(*gpu.slots) + " has a context on it"};
  if (gpu.is_split) return {std::nullopt, "split into MIG instances, which have their own answers"};
  if (rules.limits.empty()) {
    if (gpu.slots) return {false, "no process of the job has a context on it now"};
    return {std::nullopt, "neither the driver's process list nor the job's environment can be read here"};
  }
  if (rules.has_visible && !rules.is_order_unknown && !rules.is_visible[g]) {
    return {false, "not in CUDA_VISIBLE_DEVICES or not allowed by the device cgroup"};
  }
  if (gpu.slots) return {false, "no process of the job has a context on it now"};
  if (rules.is_order_unknown) {
    return {std::nullopt,
            "CUDA_VISIBLE_DEVICES has numbers in CUDA's own order, fastest GPU first, and the GPUs differ: set "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID"};
  }
  const std::string_view why_no_list = "the driver's process ids are not those of this container";
  if (rules.is_local_rank[g]) return {true, format("by LOCAL_RANK, a likely guess: {}", why_no_list)};
  const bool has_ranks =
      std::find(rules.is_local_rank.begin(), rules.is_local_rank.end(), true) != rules.is_local_rank.end();
  if (rules.is_listed[g] && !has_ranks)
    return {true, format("in CUDA_VISIBLE_DEVICES; not seen in use: {}", why_no_list)};
  return {std::nullopt, format("the job may use it; whether it does is unknown: {}", why_no_list)};
}

}  // namespace

std::optional<GpuLimits> read_gpu_limits(const Host& host, std::int32_t pid) {
  const Result<std::string> environment = host.read_text(format("/proc/{}/environ", pid));
  if (!environment.ok()) return std::nullopt;
  GpuLimits limits;
  if (const auto visible = variable(*environment, "CUDA_VISIBLE_DEVICES")) limits.visible = std::string(*visible);
  limits.is_pci_order = variable(*environment, "CUDA_DEVICE_ORDER") == "PCI_BUS_ID";
  constexpr std::array kRanks{"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"};
  for (const std::string_view name : kRanks) {
    const auto text = variable(*environment, name);
    const auto rank = text ? parse_u64(*text) : std::nullopt;
    if (!rank || *rank > 1024) continue;
    limits.local_rank = static_cast<std::uint32_t>(*rank);
    break;
  }
  limits.minors = allowed_minors(host, pid);
  return limits;
}

bool pids_are_hosts(const Host& host) {
  const Result<std::string> space = host.read_link("/proc/self/ns/pid");
  return space.ok() && *space == kHostPidNamespace;
}

std::vector<GpuUse> find_gpu_use(std::span<const GpuSeen> gpus, std::span<const GpuLimits> limits, bool has_job) {
  std::vector<GpuUse> uses;
  if (!has_job) {
    uses.assign(gpus.size(), GpuUse{std::nullopt, "no job is recorded, only the machine"});
    return uses;
  }
  const Rules rules = rules_of(gpus, limits);
  for (std::size_t g = 0; g < gpus.size(); ++g) uses.push_back(use_of(rules, g));
  return uses;
}

}  // namespace hotlap
