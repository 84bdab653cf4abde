#pragma once
// Where the control groups of a process lie in the file system, for v2, v1 and both at once, inside a container too.
#include <bitset>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/mounts.h"

namespace hotlap {

// One controller's hierarchy, from the process's own group up.
struct CgroupPlace {
  bool is_v2 = false;
  // Own folder first, then each visible ancestor; the last is the mount point. Empty: no such hierarchy is mounted
  // here.
  std::vector<std::string> folders;

  bool exists() const { return !folders.empty(); }
  // Only where it exists.
  const std::string& own() const { return folders.front(); }
};

// In a v2 system all are one and the same.
struct CgroupPlaces {
  CgroupPlace cpu;
  CgroupPlace cpuacct;  // v1: where CPU time is counted; v2: as cpu
  CgroupPlace cpuset;
  CgroupPlace memory;
  CgroupPlace io;
  CgroupPlace unified;  // v2, also beside v1: where pressure is measured
};

// `cgroup_text` is /proc/PID/cgroup, empty for the top of what is visible. A path that does not lie below the part
// of the hierarchy that is mounted here (a container that sees only its own group) means the mount point; so does
// one that `folder_exists` denies.
CgroupPlaces find_cgroups(std::string_view cgroup_text, const std::vector<Mount>& mounts,
                          const std::function<bool(const std::string&)>& folder_exists);

inline constexpr std::size_t kCpuIdsMax = 8192;  // the kernel's own bound
using CpuSet = std::bitset<kCpuIdsMax>;
// "0-3,8,10-11\n". Nothing when it is not such a list.
std::optional<CpuSet> parse_cpu_list(std::string_view list);

}  // namespace hotlap
