#include "store/home.h"

#include <fcntl.h>
#include <pwd.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "store/recording_reader.h"
#include "store/sqlite_db.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

// f_type of statfs(2), from the kernel's magic.h and the file systems' own sources.
struct Magic {
  std::uint64_t type;
  FilesystemKind kind;
};
constexpr std::array kMagics{
    Magic{0x6969, FilesystemKind::kNetwork},      // NFS
    Magic{0x517B, FilesystemKind::kNetwork},      // SMB
    Magic{0xFE534D42, FilesystemKind::kNetwork},  // SMB 2
    Magic{0xFF534D42, FilesystemKind::kNetwork},  // CIFS
    Magic{0x0BD00BD0, FilesystemKind::kNetwork},  // Lustre
    Magic{0x65735546, FilesystemKind::kNetwork},  // FUSE: sshfs, s3fs, gcsfuse, virtiofs …
    Magic{0x01021997, FilesystemKind::kNetwork},  // 9P
    Magic{0x5346414F, FilesystemKind::kNetwork},  // AFS
    Magic{0x6B414653, FilesystemKind::kNetwork},  // kAFS
    Magic{0x00C36400, FilesystemKind::kNetwork},  // Ceph
    Magic{0x47504653, FilesystemKind::kNetwork},  // GPFS
    Magic{0x19830326, FilesystemKind::kNetwork},  // BeeGFS
    Magic{0xAAD7AAEA, FilesystemKind::kNetwork},  // PanFS
    Magic{0x20030528, FilesystemKind::kNetwork},  // OrangeFS
    Magic{0x7461636F, FilesystemKind::kNetwork},  // OCFS2
    Magic{0x01161970, FilesystemKind::kNetwork},  // GFS2
    Magic{0x73757245, FilesystemKind::kNetwork},  // Coda
    Magic{0x564C, FilesystemKind::kNetwork},      // NCP
    Magic{0x01021994, FilesystemKind::kMemory},   // tmpfs
    Magic{0x858458F6, FilesystemKind::kMemory},   // ramfs
    Magic{0x794C7630, FilesystemKind::kOverlay},  // overlayfs
};

std::string environment(const char* name) {
  const char* text = ::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets variables while we run
  return text != nullptr ? text : "";
}

struct User {
  uid_t id;
  gid_t group;
  std::string home;
};

std::optional<User> user_by_id(uid_t id) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16U << 10U);
  if (::getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return std::nullopt;
  return User{id, entry.pw_gid, entry.pw_dir != nullptr ? entry.pw_dir : ""};
}

std::optional<User> user_by_name(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16U << 10U);
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return std::nullopt;
  return User{entry.pw_uid, entry.pw_gid, entry.pw_dir != nullptr ? entry.pw_dir : ""};
}

// Who called sudo; nothing when nobody did, or root itself.
std::optional<User> sudo_caller() {
  if (::geteuid() != 0) return std::nullopt;
  std::optional<User> user;
  if (const auto id = parse_u64(environment("SUDO_UID")); id && *id <= UINT32_MAX)
    user = user_by_id(static_cast<uid_t>(*id));
  if (const std::string name = environment("SUDO_USER"); !user && !name.empty()) user = user_by_name(name);
  if (!user || user->id == 0 || user->home.empty()) return std::nullopt;
  return user;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// <folder>/hotlap-<uid>/<run id>, ours alone. A folder that somebody else has put there is not used.
std::optional<fs::path> make_stand_in(const fs::path& folder, std::string_view run_id) {
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return std::nullopt;
  const fs::path ours = folder / format("hotlap-{}", ::geteuid());
  (void)::mkdir(ours.c_str(), 0700);
  struct stat found {};
  if (::lstat(ours.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() ||
      ::chmod(ours.c_str(), 0700) != 0) {
    return std::nullopt;
  }
  const fs::path place = ours / run_id;
  if (!make_private_folders(place).ok()) return std::nullopt;
  return place;
}

}  // namespace

Result<fs::path> hotlap_home() {
  if (const std::string home = environment("HOTLAP_HOME"); !home.empty()) return fs::absolute(home);
  const std::optional<User> caller = sudo_caller();
  if (caller) return fs::path(caller->home) / ".local/share/hotlap";
  if (const std::string data = environment("XDG_DATA_HOME"); data.starts_with('/')) return fs::path(data) / "hotlap";
  std::string home = environment("HOME");
  if (home.empty()) {
    if (const std::optional<User> user = user_by_id(::geteuid())) home = user->home;
  }
  if (!home.starts_with('/')) {
    return Error{ErrorCode::kNotFound,
                 "no home folder to keep runs in: set HOTLAP_HOME to a folder where you may write"};
  }
  return fs::path(home) / ".local/share/hotlap";
}

Result<void> check_home(const fs::path& home) {
  for (const fs::path& folder : {home, home / "runs"}) {
    struct stat found {};
    if (::stat(folder.c_str(), &found) != 0) {
      return errno == ENOENT ? Result<void>() : errno_error(format("cannot read {}", folder.string()), errno);
    }
    if (!S_ISDIR(found.st_mode)) {
      return Error{ErrorCode::kIo, format("{}: is no folder: set HOTLAP_HOME to one", folder.string())};
    }
  }
  if (::access((home / "runs").c_str(), R_OK | X_OK) == 0) return {};
  return errno_error(format("cannot read {}", (home / "runs").string()), errno);
}

FilesystemKind filesystem_kind(const fs::path& path) {
  std::error_code ignored;
  fs::path asked = fs::absolute(path, ignored);
  struct statfs found {};
  while (::statfs(asked.c_str(), &found) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return FilesystemKind::kLocal;
    if (!asked.has_relative_path()) return FilesystemKind::kLocal;
    asked = asked.parent_path();
  }
  const auto type = static_cast<std::uint64_t>(found.f_type) & 0xFFFFFFFFU;
  for (const Magic& magic : kMagics) {
    if (magic.type == type) return magic.kind;
  }
  return FilesystemKind::kLocal;
}

Result<RecordingPlace> recording_place(const fs::path& run_folder, std::string_view run_id) {
  if (!is_network_filesystem(run_folder)) return RecordingPlace{.folder = run_folder, .is_stand_in = false, .why = {}};
  std::vector<fs::path> candidates;
  if (const std::string folder = environment("TMPDIR"); folder.starts_with('/')) candidates.emplace_back(folder);
  for (const char* folder : {"/var/tmp", "/tmp", "/dev/shm"}) candidates.emplace_back(folder);
  for (const bool memory_too : {false, true}) {
    for (const fs::path& candidate : candidates) {
      const FilesystemKind kind = filesystem_kind(candidate);
      if (kind == FilesystemKind::kNetwork || (kind == FilesystemKind::kMemory && !memory_too)) continue;
      if (const std::optional<fs::path> place = make_stand_in(candidate, run_id)) {
        return RecordingPlace{
            .folder = *place,
            .is_stand_in = true,
            .why = format("{} is on a network file system: recording in {}, copied every {} min and moved at the end",
                          run_folder.string(), place->string(), kStandInCopyPeriodS / 60)};
      }
    }
  }
  return Error{ErrorCode::kIo,
               format("{} is on a network file system, and no local folder can be written: set TMPDIR or "
                      "HOTLAP_HOME to a folder on a local disk",
                      run_folder.string())};
}

bool is_stand_in(const fs::path& folder, std::string_view run_id) {
  if (!folder.is_absolute() || folder.filename() != run_id) return false;
  if (folder.parent_path().filename() != format("hotlap-{}", ::geteuid())) return false;
  struct stat found {};
  return ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid();
}

Result<void> make_private_folders(const fs::path& path) {
  const std::optional<User> caller = sudo_caller();
  fs::path made;
  for (const fs::path& part : fs::absolute(path).lexically_normal()) {
    made /= part;
    if (::mkdir(made.c_str(), 0700) == 0) {
      if (::chmod(made.c_str(), 0700) != 0) return errno_error(made.string(), errno);
      if (caller && lies_in(made, caller->home)) {
        (void)::lchown(made.c_str(), caller->id, caller->group);
      } else {
        adopt_owner(made);
      }
    } else if (errno != EEXIST) {
      const int error_number = errno;
      std::error_code ignored;
      if (fs::is_directory(made, ignored)) continue;  // "/" and others where mkdir is refused before it looks
      return errno_error(format("cannot make {}", made.string()), error_number);
    }
  }
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return Error{ErrorCode::kIo, format("{}: is not a folder", path.string())};
  return {};
}

void adopt_owner(const fs::path& path) {
  if (::geteuid() != 0) return;
  struct stat folder {};
  if (::stat(path.parent_path().c_str(), &folder) == 0 && folder.st_uid != 0 && (folder.st_mode & S_ISVTX) == 0) {
    (void)::lchown(path.c_str(), folder.st_uid, folder.st_gid);
  }
}

Result<void> write_private_file(const fs::path& path, std::string_view text) {
  const fs::path fresh = path.parent_path() / format(".{}.{}", path.filename().string(), ::getpid());
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno_error(format("cannot write {}", path.string()), errno);
  int error_number = ::fchmod(fd, 0600) == 0 ? 0 : errno;
  while (error_number == 0 && !text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0) {
      if (errno != EINTR) error_number = errno;
    } else {
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  if (::close(fd) != 0 && error_number == 0) error_number = errno;
  adopt_owner(fresh);
  if (error_number == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) error_number = errno;
  if (error_number == 0) return {};
  ::unlink(fresh.c_str());
  return errno_error(format("cannot write {}", path.string()), error_number);
}

Result<void> copy_recording(const fs::path& from, const fs::path& to) {
  HOTLAP_TRY_ASSIGN(const std::unique_ptr<RecordingReader> whole, RecordingReader::open(from));
  const fs::path fresh = to.parent_path() / format(".{}.{}", to.filename().string(), ::getpid());
  HOTLAP_TRY(write_private_file(fresh, ""));
  const auto copy = [&]() -> Result<void> {
    HOTLAP_TRY_ASSIGN(Database source, Database::open(from.string(), Database::Access::kRead, nullptr));
    HOTLAP_TRY_ASSIGN(Database target, Database::open(fresh.string(), Database::Access::kReadWrite, nullptr));
    // No locks and no log on the target: it is ours alone, and network file systems have neither.
    HOTLAP_TRY(target.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=FULL"));
    HOTLAP_TRY(target.copy_from(source));
    return target.execute("PRAGMA journal_mode=DELETE");
  };
  Result<void> outcome = copy();
  if (outcome.ok() && ::rename(fresh.c_str(), to.c_str()) != 0) outcome = errno_error(to.string(), errno);
  if (!outcome.ok()) ::unlink(fresh.c_str());
  return outcome;
}

Result<void> move_recordings(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  std::vector<fs::path> recordings;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, failed)) {
    if (entry.path().extension() == ".hotlap" && !entry.path().filename().string().starts_with('.')) {
      recordings.push_back(entry.path());
    }
  }
  if (failed) return errno_error(from.string(), failed.value());
  std::sort(recordings.begin(), recordings.end());
  Result<void> outcome;
  for (const fs::path& recording : recordings) {
    const Result<std::unique_ptr<RecordingReader>> reader = RecordingReader::open(recording);
    const bool closed = reader.ok() && (*reader)->is_closed();
    Result<void> moved = copy_recording(recording, to / recording.filename());
    if (!moved.ok()) {
      if (outcome.ok()) outcome = std::move(moved);
    } else if (closed) {
      for (const char* suffix : {"", "-wal", "-shm"}) ::unlink((recording.string() + suffix).c_str());
    }
  }
  ::rmdir(from.c_str());  // stays while there is something in it
  return outcome;
}

}  // namespace hotlap
