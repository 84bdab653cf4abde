#include "collect/mounts.h"

#include <algorithm>
#include <array>

#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::array<std::string_view, 31> kPseudo{
    "anon_inodefs", "autofs",  "bdev",   "binfmt_misc", "bpf",      "cgroup",     "cgroup2",      "configfs",
    "cpuset",       "debugfs", "devpts", "devtmpfs",    "efivarfs", "fusectl",    "hugetlbfs",    "mqueue",
    "nsfs",         "none",    "pipefs", "proc",        "pstore",   "ramfs",      "rpc_pipefs",   "securityfs",
    "selinuxfs",    "sockfs",  "sysfs",  "tmpfs",       "tracefs",  "fuse.lxcfs", "fuse.snapfuse"};

}  // namespace

std::string unescape_path(std::string_view text) {
  const auto octal = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '7'; };
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// "36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue"; any number of fields before "
// - ".
std::vector<Mount> parse_mountinfo(std::string_view text, std::size_t mounts_max) {
  std::vector<Mount> mounts;
  for (TextCursor line(text); !line.at_end() && mounts.size() < mounts_max; line.skip_line()) {
    std::uint64_t id = 0;
    std::uint64_t major = 0;
    std::uint64_t minor = 0;
    if (!line.number(id) || !line.number(id) || !line.number(major) || !line.accept(":") || !line.number(minor))
      continue;
    Mount mount;
    mount.device = major << 32U | minor;
    mount.root = unescape_path(line.word());
    mount.point = unescape_path(line.word());
    std::string_view word = line.word();
    while (!word.empty() && word != "-") word = line.word();
    mount.type = line.word();
    mount.source = unescape_path(line.word());
    mount.options = line.word();
    if (!mount.type.empty() && mount.point.starts_with('/')) mounts.push_back(std::move(mount));
  }
  return mounts;
}

bool is_pseudo_filesystem(std::string_view type) { return std::ranges::find(kPseudo, type) != kPseudo.end(); }

const Mount* mount_of(std::span<const Mount> mounts, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    const std::string_view point = mount.point;
    const bool holds =
        point == "/" || (path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/'));
    if (holds && (best == nullptr || point.size() >= best->point.size())) best = &mount;
  }
  return best;
}

}  // namespace hotlap
