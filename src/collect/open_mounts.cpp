#include "collect/open_mounts.h"

#include <algorithm>

#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::size_t kDescriptorsLookedAt = 256;
constexpr std::size_t kMountsFollowed = 16;

}  // namespace

std::vector<const Mount*> OpenMounts::look(const Host& host, std::int32_t pid, std::string_view slot,
                                           std::span<const Mount> mounts, std::uint16_t metric, SampleSink& out) {
  std::vector<const Mount*> appeared;
  const std::string folder = format("/proc/{}/fd", pid);
  const Result<std::vector<std::string>> names = host.list(folder);
  if (!names.ok()) return appeared;
  for (Followed& followed : followed_) followed.files = 0;
  const std::size_t count = std::min(names->size(), kDescriptorsLookedAt);
  for (std::size_t i = 0; i < count; ++i) {
    const Result<std::string> target = host.read_link(format("{}/{}", folder, (*names)[i]));
    // Pipes, sockets and the like have no path.
    if (!target.ok() || !target->starts_with('/')) continue;
    const Mount* mount = mount_of(mounts, *target);
    if (mount == nullptr || is_pseudo_filesystem(mount->type)) continue;
    auto found = std::ranges::find(followed_, mount->point, &Followed::point);
    if (found == followed_.end()) {
      if (followed_.size() == kMountsFollowed) continue;
      appeared.push_back(mount);
      const SeriesHandle series = out.series(metric, format("{}/mount {}", slot, mount->point));
      found = followed_.insert(followed_.end(), {mount->point, series, 0});
    }
    ++found->files;
  }
  for (const Followed& followed : followed_) out.add(followed.series, Value::of(followed.files));
  return appeared;
}

void OpenMounts::forget(SampleSink& out, bool is_lost) {
  for (const Followed& followed : followed_) {
    if (is_lost) out.add(followed.series, Value::missing(MissingReason::kSourceLost));
  }
  followed_.clear();
}

}  // namespace hotlap
