#pragma once
// Text output to a file descriptor, which says why it failed (std::ofstream does not).
#include <array>
#include <filesystem>
#include <memory>
#include <ostream>
#include <streambuf>

#include "base/result.h"

namespace hotlap {

// A buffered descriptor that keeps the reason of the first failed write; what is written afterwards is dropped. The
// descriptor is not closed. Not thread-safe.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int fd);

  int error_number() const { return error_number_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  int fd_;
  int error_number_ = 0;
  std::array<char, 16'384> buffer_;
};

// A new text file (0600). It appears under its name when finish() has succeeded; until then, and after a failure, what
// was there before stays. A link is written through. A device or a pipe (`/dev/null`, `>(gzip)`) is never replaced: it
// takes the text as it comes.
class NewFile {
 public:
  static Result<NewFile> create(const std::filesystem::path& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  std::ostream& stream() { return state_->stream; }
  Result<void> finish();

 private:
  struct State {
    explicit State(int fd_given) : fd(fd_given), buffer(fd_given), stream(&buffer) {}
    int fd;
    DescriptorBuffer buffer;
    std::ostream stream;
  };
  NewFile(std::filesystem::path path, std::filesystem::path unfinished, int fd);

  std::filesystem::path path_;
  std::filesystem::path unfinished_;  // empty: written in place
  std::unique_ptr<State> state_;
};

}  // namespace hotlap
