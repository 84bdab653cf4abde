#include "cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "base/clock.h"
#include "base/word_pointers.h"

namespace hotlap {
namespace {

constexpr std::size_t kOutputBytesMax = 64U << 10U;

Result<pid_t> start(std::vector<std::string> words, std::vector<std::string> environment, int output_fd) {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const std::vector<char*> arguments = word_pointers(words);
  const std::vector<char*> entries = word_pointers(environment);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, words[0].c_str(), &actions, &attributes, arguments.data(), entries.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return errno_error("cannot run " + words[0], failed);
  return pid;
}

// Until end of file (the child and whatever holds its output are gone) or the deadline; false at the deadline.
bool read_until(int fd, std::int64_t deadline_ns, std::string& output) {
  std::array<char, 4096> chunk;
  while (true) {
    const std::int64_t left_ms = (deadline_ns - system_clock().mono_ns()) / kNsPerMs;
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = left_ms <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 60'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && left_ms > 0) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got == 0) return true;
    if (got < 0) return errno != EINTR;
    const std::size_t room = kOutputBytesMax - std::min(kOutputBytesMax, output.size());
    output.append(chunk.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

}  // namespace

Result<ChildAnswer> ask_child(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                              std::int64_t timeout_ns) {
  HOTLAP_CHECK(!words.empty());
  std::array<int, 2> pipe{-1, -1};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  const Result<pid_t> pid = start(words, environment, pipe[1]);
  ::close(pipe[1]);
  if (!pid.ok()) {
    ::close(pipe[0]);
    return pid.error();
  }
  ChildAnswer answer;
  answer.is_timed_out = !read_until(pipe[0], system_clock().mono_ns() + timeout_ns, answer.output);
  ::close(pipe[0]);
  if (answer.is_timed_out) ::kill(-*pid, SIGKILL);  // its session's first group
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status)) answer.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) answer.signal = WTERMSIG(status);
  return answer;
}

}  // namespace hotlap
