#include "record/runtime_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/host.h"
#include "base/text.h"
#include "model/run.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTurnWaitNs = 500 * kNsPerMs;  // a turn takes less than one, but a node may have many ranks
constexpr std::string_view kGoneSuffix = ".gone";

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? std::string() : std::string(value);
}

// A folder of ours that nobody else can enter.
Result<void> make_own_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(path.native(), errno);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return errno_error(path.native(), errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()) {
    return Error{ErrorCode::kInvalidInput, path.native() + ": not a folder of this user; remove it or set TMPDIR"};
  }
  if ((found.st_mode & 0777) != 0700 && ::chmod(path.c_str(), 0700) != 0) return errno_error(path.native(), errno);
  return {};
}

Result<void> write_run_id(const fs::path& path, std::string_view run_id) {
  const std::string temporary = path.native() + ".new";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno_error(temporary, errno);
  const ssize_t n = ::write(fd, run_id.data(), run_id.size());
  const int error = n < 0 ? errno : ENOSPC;  // a short write tells nothing
  ::close(fd);
  if (n != static_cast<ssize_t>(run_id.size())) return errno_error(temporary, error);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return errno_error(path.native(), errno);
  return {};
}

// Whoever makes, joins or deletes a folder of `home` has its turn first: what it finds then stays as it is. Held until
// it goes out of scope; never waited for without end.
class Turn {
 public:
  Turn(const fs::path& home, std::int64_t wait_ns) : fd_(::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    for (const std::int64_t until_ns = system_clock().mono_ns() + wait_ns;;) {
      error_ = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
      const std::int64_t now_ns = system_clock().mono_ns();
      if (error_ != EWOULDBLOCK || now_ns >= until_ns) return;
      system_clock().sleep_until(now_ns + kNsPerMs, -1);
    }
  }
  ~Turn() {
    if (fd_ >= 0) ::close(fd_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_ours() const { return error_ == 0; }
  // Why it is not.
  Error error(const fs::path& home) const {
    if (error_ != EWOULDBLOCK) return errno_error(home.native(), error_);
    return Error{ErrorCode::kIo, home.native() + ": another run holds it"};
  }

 private:
  int fd_;
  int error_ = 0;
};

// In one step, so that nobody finds half a folder; its content goes after the turn, which is short.
fs::path put_away(const fs::path& folder) {
  const fs::path gone = format("{}.{}{}", folder.native(), system_clock().mono_ns(), kGoneSuffix);
  std::error_code failed;
  fs::rename(folder, gone, failed);
  return failed ? folder : gone;
}

}  // namespace

Result<fs::path> runtime_home() {
  if (const std::string given = variable("XDG_RUNTIME_DIR"); given.starts_with("/")) {
    const fs::path path = fs::path(given) / "hotlap";
    if (make_own_folder(path).ok()) return path;
  }
  std::string temporary = variable("TMPDIR");
  if (!temporary.starts_with("/")) temporary = "/tmp";
  const fs::path path = fs::path(temporary) / format("hotlap-{}", ::geteuid());
  HOTLAP_TRY(make_own_folder(path));
  return path;
}

Result<RuntimeFolder> RuntimeFolder::claim(const fs::path& home, std::string_view name, std::string_view run_id) {
  const Turn turn(home, kTurnWaitNs);
  if (!turn.is_ours()) return turn.error(home);
  RuntimeFolder folder;
  folder.path_ = home / name;
  HOTLAP_TRY(make_own_folder(folder.path_));
  const std::string lock = (folder.path_ / "lock").native();
  folder.lock_fd_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (folder.lock_fd_ < 0) return errno_error(lock, errno);
  const fs::path id_file = folder.path_ / "run-id";
  folder.leads_ = ::flock(folder.lock_fd_, LOCK_EX | LOCK_NB) == 0;
  if (folder.leads_) {
    folder.run_id_ = run_id;
    HOTLAP_TRY(make_own_folder(folder.rings()));
    HOTLAP_TRY(write_run_id(id_file, run_id));
  } else {
    // Written in the turn in which its holder took the lock.
    folder.run_id_ = system_host().read_text(id_file.native()).value_or(std::string());
    if (!is_ulid(folder.run_id_)) {
      return Error{ErrorCode::kNotFound, folder.path_.native() + ": its recorder told no run id"};
    }
  }
  return folder;
}

RuntimeFolder::RuntimeFolder(RuntimeFolder&& other) noexcept
    : path_(std::move(other.path_)),
      run_id_(std::move(other.run_id_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      leads_(other.leads_) {}

RuntimeFolder& RuntimeFolder::operator=(RuntimeFolder&& other) noexcept {
  if (this != &other) {
    if (lock_fd_ >= 0) ::close(lock_fd_);
    path_ = std::move(other.path_);
    run_id_ = std::move(other.run_id_);
    lock_fd_ = std::exchange(other.lock_fd_, -1);
    leads_ = other.leads_;
  }
  return *this;
}

RuntimeFolder::~RuntimeFolder() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

void RuntimeFolder::remove() {
  if (!leads_) return;
  fs::path gone = path_;
  if (const Turn turn(path_.parent_path(), kTurnWaitNs); turn.is_ours()) gone = put_away(path_);
  std::error_code ignored;
  fs::remove_all(gone, ignored);
}

void sweep_runtime_home(const fs::path& home) {
  std::vector<fs::path> gone;
  {
    const Turn turn(home, 0);
    if (!turn.is_ours()) return;  // the next run does it
    for (const std::string& name : system_host().list(home.native()).value_or({})) {
      if (!name.starts_with("run-") && !name.starts_with("job-")) continue;
      if (name.ends_with(kGoneSuffix)) {  // by one that was killed meanwhile
        gone.push_back(home / name);
        continue;
      }
      const int fd = ::open((home / name / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
      if (fd < 0) continue;
      if (::flock(fd, LOCK_EX | LOCK_NB) == 0) gone.push_back(put_away(home / name));
      ::close(fd);
    }
  }
  std::error_code ignored;
  for (const fs::path& folder : gone) fs::remove_all(folder, ignored);
}

}  // namespace hotlap
