// The floor under any recorder: the same kernel files, read at the same pace by one loop that does nothing else but
// write 400 bytes a tick. Usage: paced_floor INTERVAL_MS OUTPUT [N@]FILE…; runs until it is killed. N@: at every N-th
// tick only.
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

struct PacedFile {
  int fd;
  long every_ticks;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const long interval_ns = std::atol(argv[1]) * kNsPerMs;
  const int out = ::open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::vector<PacedFile> files;
  for (int i = 3; i < argc; ++i) {
    char* rest = nullptr;
    const long ticks = std::strtol(argv[i], &rest, 10);
    const bool is_paced = ticks > 0 && *rest == '@';
    if (const int fd = ::open(is_paced ? rest + 1 : argv[i], O_RDONLY | O_CLOEXEC); fd >= 0) {
      files.push_back({fd, is_paced ? ticks : 1});
    }
  }
  static std::array<char, std::size_t{1} << 20> buffer;
  const std::array<char, kRecordBytes> record{};
  timespec next{};
  ::clock_gettime(CLOCK_MONOTONIC, &next);
  for (long tick = 0;; ++tick) {
    next.tv_nsec += interval_ns % kNsPerS;
    next.tv_sec += interval_ns / kNsPerS + next.tv_nsec / kNsPerS;
    next.tv_nsec %= kNsPerS;
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr) == EINTR) {}
    for (const PacedFile& file : files) {
      if (tick % file.every_ticks == 0 && ::pread(file.fd, buffer.data(), buffer.size(), 0) < 0) continue;
    }
    if (::write(out, record.data(), record.size()) < 0) return 1;
  }
}
