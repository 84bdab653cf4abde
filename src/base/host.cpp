#include "base/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::size_t kFirstBufferBytes = 4096;  // what the kernel gives at once
constexpr std::size_t kListLineBytesMax = 2048;
constexpr std::size_t kReadToEnd = std::string::npos;
constexpr std::size_t kKernelFileBytesMax = std::size_t{64} << 20;  // a runaway file must not take our memory

// Reads `fd` from offset 0 to its end into `buffer`; returns the length. A read that leaves room for `line_bytes_max`
// of what was asked is taken for the end.
Result<std::size_t> read_whole(int fd, std::string& buffer, std::size_t bytes_max, const std::string& name,
                               std::size_t line_bytes_max = kReadToEnd) {
  if (buffer.size() < kFirstBufferBytes) buffer.resize(kFirstBufferBytes);
  std::size_t length = 0;
  for (;;) {
    if (length == buffer.size()) buffer.resize(buffer.size() * 2);
    const ssize_t n = ::pread(fd, buffer.data() + length, buffer.size() - length, static_cast<off_t>(length));
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno_error(name, errno);
    }
    length += static_cast<std::size_t>(n);
    if (length > bytes_max) return Error{ErrorCode::kResourceLimit, name + ": larger than expected"};
    if (n == 0) return length;
    const std::size_t room = kFirstBufferBytes - std::min(kFirstBufferBytes, static_cast<std::size_t>(n));
    if (line_bytes_max != kReadToEnd && length < buffer.size() && room >= line_bytes_max) return length;
  }
}

class SystemHost final : public Host {};

}  // namespace

// Never destroyed: threads may read to the very end.
const Host& system_host() {
  static const Host* const host = new SystemHost;
  return *host;
}

Result<FilesystemUsage> Host::filesystem_usage(std::string_view mount_point) const {
  const std::string path = resolve(mount_point);
  struct statvfs found {};
  if (::statvfs(path.c_str(), &found) != 0) return errno_error(path, errno);
  const std::uint64_t unit = found.f_frsize != 0 ? found.f_frsize : found.f_bsize;
  return FilesystemUsage{.total_bytes = found.f_blocks * unit,
                         .free_bytes = found.f_bfree * unit,
                         .available_bytes = found.f_bavail * unit,
                         .inodes_total = found.f_files,
                         .inodes_free = found.f_ffree};
}

std::int64_t Host::mono_ns() const { return system_clock().mono_ns(); }
std::int64_t Host::clock_ticks_per_s() const { return ::sysconf(_SC_CLK_TCK); }
std::uint64_t Host::page_bytes() const { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }
std::uint32_t Host::user_id() const { return ::geteuid(); }

Result<std::uint64_t> Host::process_cpu_ns(std::int32_t pid) const {
  // The kernel's encoding of "CPU clock of a process, scheduler time"; clock_getcpuclockid would spend a call to
  // check it.
  const auto id = static_cast<clockid_t>((~static_cast<std::uint32_t>(pid) << 3U) | 2U);
  timespec spent{};
  if (::clock_gettime(id, &spent) != 0) return errno_error(format("process {}", pid), errno == EINVAL ? ESRCH : errno);
  return static_cast<std::uint64_t>(spent.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(spent.tv_nsec);
}

Result<std::string> Host::read_text(std::string_view absolute, std::size_t bytes_max) const {
  const std::string path = resolve(absolute);
  if (reopens()) {
    if (const int refused = injected_error(absolute); refused != 0) return errno_error(path, refused);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error(path, errno);
  std::string buffer;
  Result<std::size_t> length = read_whole(fd, buffer, bytes_max, path);
  ::close(fd);
  if (!length.ok()) return std::move(length).error();
  buffer.resize(*length);
  return buffer;
}

Result<std::vector<std::string>> Host::list(std::string_view absolute) const {
  const std::string path = resolve(absolute);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder) return errno_error(path, errno);
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> Host::read_link(std::string_view absolute) const {
  const std::string path = resolve(absolute);
  std::string target(4096, '\0');
  const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
  if (n < 0) return errno_error(path, errno);
  target.resize(static_cast<std::size_t>(n));
  return target;
}

bool Host::exists(std::string_view absolute) const { return ::access(resolve(absolute).c_str(), F_OK) == 0; }

KeptFile::KeptFile(KeptFile&& other) noexcept
    : host_(other.host_),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      fd_(std::exchange(other.fd_, -1)) {}

KeptFile& KeptFile::operator=(KeptFile&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    host_ = other.host_;
    path_ = std::move(other.path_);
    buffer_ = std::move(other.buffer_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

KeptFile::~KeptFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<KeptFile> KeptFile::open(const Host& host, std::string_view absolute) {
  KeptFile file;
  file.host_ = &host;
  file.path_ = absolute;
  HOTLAP_TRY(file.reopen());
  return file;
}

Result<void> KeptFile::reopen() {
  const std::string path = host_->resolve(path_);
  if (host_->reopens()) {
    if (const int refused = host_->injected_error(path_); refused != 0) return errno_error(path, refused);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error(path, errno);
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  return {};
}

Result<std::string_view> KeptFile::read() { return read_text(kReadToEnd); }
Result<std::string_view> KeptFile::read_record() { return read_text(0); }
Result<std::string_view> KeptFile::read_list() { return read_text(kListLineBytesMax); }

Result<std::string_view> KeptFile::read_text(std::size_t line_bytes_max) {
  HOTLAP_CHECK(host_ != nullptr);
  if (host_->reopens()) HOTLAP_TRY(reopen());
  HOTLAP_TRY_ASSIGN(const std::size_t length, read_whole(fd_, buffer_, kKernelFileBytesMax, path_, line_bytes_max));
  return std::string_view(buffer_).substr(0, length);
}

}  // namespace hotlap
