// The floor under any recorder: the same kernel files, read at the same pace by one loop that does nothing else but
// write 400 bytes a tick. Usage: paced_floor INTERVAL_MS OUTPUT FILE…; runs until it is killed.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

namespace {

constexpr long kNsPerMs = 1'000'000;
constexpr long kNsPerS = 1'000'000'000;
constexpr std::size_t kRecordBytes = 400;

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const long interval_ns = std::atol(argv[1]) * kNsPerMs;
  const int out = ::open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::vector<int> files;
  for (int i = 3; i < argc; ++i) {
    if (const int fd = ::open(argv[i], O_RDONLY | O_CLOEXEC); fd >= 0) files.push_back(fd);
  }
  static std::array<char, std::size_t{1} << 20> buffer;
  const std::array<char, kRecordBytes> record{};
  timespec next{};
  ::clock_gettime(CLOCK_MONOTONIC, &next);
  for (;;) {
    next.tv_nsec += interval_ns % kNsPerS;
    next.tv_sec += interval_ns / kNsPerS + next.tv_nsec / kNsPerS;
    next.tv_nsec %= kNsPerS;
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr) == EINTR) {}
    for (const int fd : files) {
      if (::pread(fd, buffer.data(), buffer.size(), 0) < 0) continue;
    }
    if (::write(out, record.data(), record.size()) < 0) return 1;
  }
}
