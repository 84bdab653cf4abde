#pragma once
// The mount table of a process (/proc/PID/mountinfo): what lies where, and which kind of thing it is.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

struct Mount {
  std::string point;
  std::string type;     // "ext4", "nfs4", "fuse.sshfs"
  std::string source;   // "/dev/nvme0n1p2", "server:/export"
  std::string root;     // which part of the file system is mounted: "/" but for bind mounts and cgroups
  std::string options;  // of the file system, not of the mount
  std::uint64_t device = 0;
};

// At most `mounts_max`, in the kernel's order: later ones hide earlier ones at the same place.
std::vector<Mount> parse_mountinfo(std::string_view text, std::size_t mounts_max);
// "\040" → " " and alike, as the kernel escapes blanks, line ends and backslashes in paths.
std::string unescape_path(std::string_view text);

// Kernel interfaces and memory (proc, cgroup, tmpfs, overlay parts …): not where data lies.
bool is_pseudo_filesystem(std::string_view type);
// The mount that `path` lies on: the last of those with the longest point. Null when there is none.
const Mount* mount_of(std::span<const Mount> mounts, std::string_view path);

}  // namespace hotlap
