#include "record/messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::size_t kMessageBytesMax = 8192;

}  // namespace

Result<void> make_channel(int& supervisor_end, int& recorder_end) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return errno_error("cannot make a socket pair", errno);
  }
  supervisor_end = ends[0];
  recorder_end = ends[1];
  return {};
}

bool send_message(int fd, const Message& message) {
  if (fd < 0) return false;
  std::string bytes = format("{} {} {}", message.word, message.number, message.text);
  bytes.resize(std::min(bytes.size(), kMessageBytesMax));
  ssize_t n = 0;
  do {
    n = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(bytes.size());
}

std::optional<Message> receive_message(int fd, bool& is_closed) {
  is_closed = false;
  std::array<char, kMessageBytesMax> buffer;
  ssize_t n = 0;
  do {
    n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    // ECONNRESET: the other side ended without reading what we had sent. Told once, before its own last messages.
  } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
  if (n < 0) {
    is_closed = errno != EAGAIN && errno != EWOULDBLOCK;
    return std::nullopt;
  }
  if (n == 0) {
    is_closed = true;
    return std::nullopt;
  }
  std::string_view rest(buffer.data(), static_cast<std::size_t>(n));
  Message message;
  message.word = next_word(rest);
  message.number = parse_i64(next_word(rest)).value_or(0);
  message.text = trim(rest);
  return message;
}

}  // namespace hotlap
