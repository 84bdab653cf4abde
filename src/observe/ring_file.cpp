#include "observe/ring_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "model/launchers.h"
#include "model/process.h"

namespace hotlap {
namespace {

constexpr std::size_t kPathBytes = 1024;

std::int64_t read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The launchers' variables are literals: their names end with a zero.
std::int32_t number_of(std::string_view variable) {
  const char* text = std::getenv(variable.data());
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  return *end == '\0' && number >= 0 && number <= INT32_MAX ? static_cast<std::int32_t>(number) : -1;
}

// Field 22 of /proc/self/stat; 0: unknown.
std::uint64_t start_ticks_of_self() {
  char text[1024];
  const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* at = std::strrchr(text, ')');  // the program's name may hold anything
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

// As the hook wants it: a folder of this user's that nobody else may enter.
bool is_usable_folder(const char* folder) {
  struct stat found {};
  return ::lstat(folder, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & 0077) == 0;
}

// Growing a file beyond the limit would end the job by SIGXFSZ.
bool exceeds_limit(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes;
}

}  // namespace

std::int64_t observer_now_ns() { return read_clock(CLOCK_MONOTONIC); }

bool RingFile::read_environment(std::string_view source) {
  const char* folder = std::getenv("HOTLAP_OBSERVER_RING_DIR");
  const char* is_on = std::getenv("HOTLAP");
  if (folder == nullptr || *folder == '\0' || std::strlen(folder) >= sizeof folder_) return false;
  if (is_on != nullptr && std::strcmp(is_on, "0") == 0) return false;
  std::strcpy(folder_, folder);
  std::memcpy(source_, source.data(), std::min(source.size(), kRingSourceMax));
  if (const char* run_id = std::getenv("HOTLAP_RUN_ID"); run_id != nullptr) {
    std::memcpy(run_id_, run_id, std::min(std::strlen(run_id), sizeof run_id_ - 1));
  }
  rank_ = local_rank_ = world_size_ = -1;
  for (const Launcher& launcher : kLaunchers) {
    if (std::getenv(launcher.proof.data()) == nullptr) continue;
    rank_ = number_of(launcher.rank);
    local_rank_ = number_of(launcher.local_rank);
    world_size_ = number_of(launcher.world_size);
    if (rank_ >= 0 || local_rank_ >= 0 || world_size_ >= 0) break;
  }
  return true;
}

void RingFile::say_off(const char* what, int error) {
  char path[kPathBytes];
  std::snprintf(path, sizeof path, "%s/%d-%llu.%s.off", folder_, static_cast<int>(::getpid()),
                static_cast<unsigned long long>(start_ticks_), source_);
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  char text[512];
  const int bytes = std::snprintf(text, sizeof text, "%s: %s\n", what,
                                  error == 0 ? "" : std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
  if (bytes > 0) static_cast<void>(::write(fd, text, static_cast<std::size_t>(bytes)) == bytes);
  ::close(fd);
}

bool RingFile::make_file(const char* path) {
  constexpr std::size_t kBytes = kRingPageBytes + kDataBytes;
  if (exceeds_limit(kBytes)) {
    say_off("ring-allocation", EFBIG);
    return false;
  }
  char unfinished[kPathBytes + 8];
  std::snprintf(unfinished, sizeof unfinished, "%s.new", path);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = ::open(unfinished, kFlags, 0600);
  if (fd < 0 && errno == EEXIST && ::unlink(unfinished) == 0) fd = ::open(unfinished, kFlags, 0600);
  if (fd < 0) {
    say_off("ring-allocation", errno);
    return false;
  }
  const int allocated = ::posix_fallocate(fd, 0, static_cast<off_t>(kBytes));
  void* map = allocated == 0 ? ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  const int failure = allocated != 0 ? allocated : errno;
  ::close(fd);
  if (map == MAP_FAILED) {
    ::unlink(unfinished);
    say_off("ring-allocation", failure);
    return false;
  }
  page_ = static_cast<RingPage*>(map);
  data_ = static_cast<std::byte*>(map) + kRingPageBytes;
  fill_identity();
  if (::rename(unfinished, path) == 0) return true;
  say_off("ring-allocation", errno);
  forget();
  return false;
}

void RingFile::fill_identity() {
  RingIdentity& identity = page_->identity;
  std::memcpy(identity.magic, kRingMagic.data(), sizeof identity.magic);
  identity.layout_version = kRingLayoutVersion;
  identity.page_bytes = kRingPageBytes;
  identity.data_bytes = kDataBytes;
  identity.uid = ::geteuid();
  identity.pid = static_cast<std::uint32_t>(::getpid());
  identity.start_ticks = start_ticks_;
  identity.parent_pid = static_cast<std::uint32_t>(::getppid());
  identity.writer_kind = 2;
  identity.created_mono_ns = observer_now_ns();
  identity.created_boot_ns = read_clock(CLOCK_BOOTTIME);
  std::memcpy(identity.run_id, run_id_, sizeof identity.run_id);
  identity.role = static_cast<std::int32_t>(rank_ >= 0 ? ProcessRole::kRank : ProcessRole::kMain);
  identity.rank = rank_;
  identity.local_rank = local_rank_;
  identity.world_size = world_size_;
  identity.worker_id = -1;
  RingLive& live = page_->live;
  live.step = live.step_end_ns = live.collective_group = live.collective_sequence = -1;
}

bool RingFile::open() {
  start_ticks_ = start_ticks_of_self();
  if (start_ticks_ == 0) return false;
  if (!is_usable_folder(folder_)) return false;  // nor may the reason be left there
  char path[kPathBytes];
  std::snprintf(path, sizeof path, "%s/%d-%llu.%s.ring", folder_, static_cast<int>(::getpid()),
                static_cast<unsigned long long>(start_ticks_), source_);
  sequence_ = command_word_ = records_ = 0;
  used_ = limit_ = 0;
  return make_file(path);
}

void RingFile::forget() {
  if (page_ != nullptr) ::munmap(page_, kRingPageBytes + kDataBytes);
  page_ = nullptr;
  data_ = nullptr;
}

HookCommand RingFile::take_command() {
  const std::uint64_t word = std::atomic_ref(page_->command.word).load(std::memory_order_acquire);
  if (word == command_word_) return HookCommand::kNone;
  command_word_ = word;
  return static_cast<HookCommand>(word & 0xFFFF);
}

void RingFile::answer(HookAnswer answer) {
  page_->answer.result = static_cast<std::uint64_t>(answer);
  std::atomic_ref(page_->answer.word).store(command_word_, std::memory_order_release);
}

bool RingFile::begin_frame() {
  constexpr std::size_t kWorthIt = 1024;  // the longest record fits; less room is as good as none
  limit_ = std::min<std::size_t>(sizeof payload_, ring_payload_room(*page_, kDataBytes));
  used_ = 0;
  records_ = 0;
  return limit_ >= kWorthIt;
}

void RingFile::append(const void* record, std::size_t bytes, std::string_view first, std::string_view second) {
  const std::size_t begin = used_;
  for (const std::string_view part : {std::string_view(static_cast<const char*>(record), bytes), first, second}) {
    if (!part.empty()) std::memcpy(payload_ + used_, part.data(), part.size());
    used_ += part.size();
  }
  for (; (used_ - begin) % 8 != 0; ++used_) payload_[used_] = std::byte{0};
  ++records_;
}

void RingFile::end_frame() {
  if (used_ == 0) return;
  if (publish_frame(*page_, data_, kDataBytes, payload_, used_, sequence_)) {
    ++sequence_;
    page_->live.records_sent += records_;
  } else {  // only if the reader's end of the file was tampered with: there was room
    page_->live.records_dropped += records_;
    page_->live.frames_dropped += 1;
  }
  used_ = 0;
  records_ = 0;
}

}  // namespace hotlap
