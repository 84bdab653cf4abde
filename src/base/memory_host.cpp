#include "base/memory_host.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/format.h"

namespace hotlap {

MemoryHost::~MemoryHost() {
  for (const auto& [path, fd] : descriptors_) ::close(fd);
}

Result<void> MemoryHost::write(std::string_view absolute, std::string_view text) {
  auto found = descriptors_.find(absolute);
  if (found == descriptors_.end()) {
    const int fd = ::memfd_create("hotlap", MFD_CLOEXEC);
    if (fd < 0) return errno_error(absolute, errno);
    found = descriptors_.emplace(absolute, fd).first;
  }
  if (::ftruncate(found->second, 0) != 0) return errno_error(absolute, errno);
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n =
        ::pwrite(found->second, text.data() + written, text.size() - written, static_cast<off_t>(written));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_error(absolute, n < 0 ? errno : ENOSPC);
    written += static_cast<std::size_t>(n);
  }
  return {};
}

std::string MemoryHost::resolve(std::string_view absolute) const {
  const auto found = descriptors_.find(absolute);
  // /dev/null is no folder: nothing lies below it.
  return found == descriptors_.end() ? "/dev/null/none" : format("/proc/self/fd/{}", found->second);
}

Result<FilesystemUsage> MemoryHost::filesystem_usage(std::string_view mount_point) const {
  return errno_error(mount_point, ENOENT);
}

Result<std::uint64_t> MemoryHost::process_cpu_ns(std::int32_t pid) const {
  return errno_error(format("process {}", pid), ESRCH);
}

}  // namespace hotlap
