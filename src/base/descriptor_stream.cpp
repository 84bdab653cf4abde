#include "base/descriptor_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/format.h"

namespace hotlap {

DescriptorBuffer::DescriptorBuffer(int fd) : fd_(fd) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

int DescriptorBuffer::sync() {
  const char* next = pbase();
  while (next < pptr() && error_number_ == 0) {
    const ssize_t written = ::write(fd_, next, static_cast<std::size_t>(pptr() - next));
    if (written >= 0) {
      next += written;
    } else if (errno != EINTR) {
      error_number_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_number_ == 0 ? 0 : -1;
}

NewFile::NewFile(std::filesystem::path path, std::filesystem::path unfinished, int fd)
    : path_(std::move(path)), unfinished_(std::move(unfinished)), state_(std::make_unique<State>(fd)) {}
NewFile::NewFile(NewFile&& other) noexcept = default;

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(unfinished_, other.unfinished_);
  std::swap(state_, other.state_);
  return *this;
}

NewFile::~NewFile() {
  if (state_ == nullptr) return;
  ::close(state_->fd);
  if (!unfinished_.empty()) ::unlink(unfinished_.c_str());
}

namespace {

// Where the text belongs: a link, dangling too, keeps pointing to it.
std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int kLinksMax = 40;  // as the kernel's
  for (int i = 0; i < kLinksMax; ++i) {
    std::error_code is_none;
    const std::filesystem::path next = std::filesystem::read_symlink(path, is_none);
    if (is_none) break;
    path = path.parent_path() / next;
  }
  return path;
}

}  // namespace

Result<NewFile> NewFile::create(const std::filesystem::path& path) {
  struct stat found {};
  const bool exists = ::stat(path.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) {
    return Error{ErrorCode::kInvalidInput, format("{}: is a folder, not a file", path.string())};
  }
  if (exists && !S_ISREG(found.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return errno_error(format("cannot write {}", path.string()), errno);
    return NewFile(path, {}, fd);
  }
  std::filesystem::path target = behind_links(path);
  // The process number keeps two of us apart; what a killed one left is replaced.
  std::filesystem::path unfinished = target;
  unfinished += format(".{}.new", ::getpid());
  ::unlink(unfinished.c_str());
  const int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno_error(format("cannot write {}", path.string()), errno);
  return NewFile(std::move(target), std::move(unfinished), fd);
}

Result<void> NewFile::finish() {
  HOTLAP_CHECK(state_ != nullptr);
  state_->stream.flush();
  int failed = state_->buffer.error_number();
  if (::close(state_->fd) != 0 && failed == 0) failed = errno;
  state_.reset();
  if (unfinished_.empty()) {
    if (failed == 0) return {};
    return errno_error(format("cannot write {}", path_.string()), failed);
  }
  if (failed == 0 && ::rename(unfinished_.c_str(), path_.c_str()) != 0) failed = errno;
  if (failed == 0) return {};
  ::unlink(unfinished_.c_str());
  return errno_error(format("cannot write {}", path_.string()), failed);
}

}  // namespace hotlap
