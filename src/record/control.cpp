#include "record/control.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/clock.h"
#include "base/format.h"
#include "store/home.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

constexpr std::int64_t kAnswerWaitNs = 5 * kNsPerS;
constexpr std::int64_t kPollNs = 20 * kNsPerMs;

Result<void> tell_recorder(const std::filesystem::path& run_folder, const std::string& line) {
  const std::string path = (run_folder / kControlFifo).native();
  const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENXIO) {
      return Error{ErrorCode::kNotFound, "the run is not being recorded on this machine"};
    }
    return errno_error(path, errno);
  }
  struct stat found {};
  const bool is_sent = ::fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode) &&
                       ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::close(fd);
  if (!is_sent) return Error{ErrorCode::kIo, path + ": the recorder does not take the request"};
  return {};
}

}  // namespace

int open_control(const std::filesystem::path& run_folder) {
  const std::string path = (run_folder / kControlFifo).native();
  ::unlink(path.c_str());
  if (::mkfifo(path.c_str(), 0600) != 0) return -1;
  adopt_owner(path);
  // For writing too: with no other writer a FIFO would be at its end all the time.
  return ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

std::optional<bool> has_recorder(const std::filesystem::path& run_folder) {
  const std::string path = (run_folder / kControlFifo).native();
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISFIFO(found.st_mode)) return std::nullopt;
  const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENXIO ? std::optional(false) : std::nullopt;  // nobody has it open for reading
  ::close(fd);
  return true;
}

Result<void> request_interval(const std::filesystem::path& run_folder, std::int64_t interval_ns) {
  HOTLAP_TRY(tell_recorder(run_folder, format("interval {}\n", interval_ns)));
  HOTLAP_TRY_ASSIGN(RunFolder run, RunFolder::open(run_folder));
  for (const std::int64_t until_ns = system_clock().mono_ns() + kAnswerWaitNs; run.info().interval_ns != interval_ns;) {
    if (system_clock().mono_ns() >= until_ns) return Error{ErrorCode::kIo, "the recorder does not answer"};
    system_clock().sleep_until(system_clock().mono_ns() + kPollNs, -1);
    HOTLAP_TRY(run.reload());
  }
  return {};
}

Result<void> request_profile(const std::filesystem::path& run_folder, std::uint64_t argument) {
  return tell_recorder(run_folder, format("profile {}\n", argument));
}

}  // namespace hotlap
