// The program: its arguments, its streams and the last resort for what libraries throw.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "cli/dispatch.h"
#include "cli/registry.h"

namespace hotlap {
namespace {

// A buffered descriptor that keeps the reason of the first failed write.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int fd) : fd_(fd) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  int error_number() const { return error_number_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }

  int sync() override {
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

 private:
  int fd_;
  int error_number_ = 0;
  std::array<char, 16'384> buffer_;
};

int run_program(std::vector<std::string> words) {
  DescriptorBuffer out_buffer(STDOUT_FILENO);
  DescriptorBuffer err_buffer(STDERR_FILENO);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  err << std::unitbuf;
  Streams streams{.out = out,
                  .err = err,
                  .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
                  .err_is_terminal = ::isatty(STDERR_FILENO) == 1};
  const int code = dispatch(all_commands(), words, streams);
  out.flush();
  // A full disk is a failure that scripts must see; a reader that left (`| head`) is not.
  if (out_buffer.error_number() == 0 || out_buffer.error_number() == EPIPE) return code;
  err << "hotlap: " << errno_error("cannot write the output", out_buffer.error_number()).message << '\n';
  return code == kExitSuccess ? kExitFailed : code;
}

}  // namespace
}  // namespace hotlap

int main(int argc, char** argv) {
  try {
    return hotlap::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hotlap: internal error: %s\n", error.what());
  } catch (...) {
    std::fputs("hotlap: internal error: unknown exception\n", stderr);
  }
  return hotlap::kExitFailed;
}
