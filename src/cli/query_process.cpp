#include "cli/query_process.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/format.h"

namespace hotlap {

Result<std::string> read_standard_input(std::size_t bytes_max) {
  std::string text;
  std::array<char, 4096> chunk{};
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("standard input", errno);
    if (n == 0) return text;
    if (text.size() + static_cast<std::size_t>(n) > bytes_max) {
      return Error{ErrorCode::kResourceLimit, format("standard input has more than {} bytes", bytes_max)};
    }
    text.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace hotlap
