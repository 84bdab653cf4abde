#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/format.h"

namespace hotlap {
namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

Result<void> check_kind(const std::string& name, const struct stat& info) {
  if (S_ISREG(info.st_mode)) return {};
  return Error{ErrorCode::kInvalidInput, format("{}: is {}, not a file", name, kind_of(info.st_mode))};
}

Result<std::string> read_open_file(int fd, const std::string& name, std::size_t bytes_max) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno_error(name, errno);
  HOTLAP_TRY(check_kind(name, info));
  std::string text;
  while (true) {
    constexpr std::size_t kChunk = 65'536;
    const std::size_t had = text.size();
    text.resize(had + kChunk);
    const ssize_t got = ::read(fd, text.data() + had, kChunk);
    if (got < 0 && errno == EINTR) {
      text.resize(had);
      continue;
    }
    if (got < 0) return errno_error(name, errno);
    text.resize(had + static_cast<std::size_t>(got));
    if (got == 0) return text;
    if (text.size() > bytes_max) {
      return Error{ErrorCode::kResourceLimit, format("{}: larger than {} bytes", name, bytes_max)};
    }
  }
}

}  // namespace

Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t bytes_max) {
  const std::string name = path.string();
  // O_NONBLOCK: opening a pipe that nobody writes to would wait.
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno_error(name, errno);
  Result<std::string> text = read_open_file(fd, name, bytes_max);
  ::close(fd);
  return text;
}

Result<void> check_regular_file(const std::filesystem::path& path) {
  struct stat info {};
  const std::string name = path.string();
  if (::stat(name.c_str(), &info) != 0) return errno_error(name, errno);
  return check_kind(name, info);
}

}  // namespace hotlap
