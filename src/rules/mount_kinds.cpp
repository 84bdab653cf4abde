#include "rules/mount_kinds.h"

#include <algorithm>
#include <array>

namespace hotlap {

bool is_network_mount(std::string_view type) {
  constexpr std::array kTypes{std::string_view{"nfs"},    std::string_view{"nfs4"},   std::string_view{"lustre"},
                              std::string_view{"cifs"},   std::string_view{"smb3"},   std::string_view{"ceph"},
                              std::string_view{"gpfs"},   std::string_view{"beegfs"}, std::string_view{"9p"},
                              std::string_view{"wekafs"}, std::string_view{"efs"}};
  // What people mount through FUSE are buckets and other machines, but for these.
  constexpr std::array kLocal{
      std::string_view{"mergerfs"},       std::string_view{"overlay"},    std::string_view{"overlayfs"},
      std::string_view{"fuse-overlayfs"}, std::string_view{"squashfuse"}, std::string_view{"squashfuse_ll"},
      std::string_view{"ntfs"},           std::string_view{"ntfs-3g"},    std::string_view{"exfat"},
      std::string_view{"bindfs"},         std::string_view{"encfs"},      std::string_view{"gocryptfs"},
      std::string_view{"lxcfs"},          std::string_view{"portal"},     std::string_view{"archivemount"},
      std::string_view{"ratarmount"},     std::string_view{"zip"}};
  constexpr std::string_view kFuse = "fuse.";
  if (!type.starts_with(kFuse)) return std::ranges::find(kTypes, type) != kTypes.end();
  return std::ranges::find(kLocal, type.substr(kFuse.size())) == kLocal.end();
}

}  // namespace hotlap
