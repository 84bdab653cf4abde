#pragma once
// The machine that is looked at: where /proc and /sys are, and the few calls that ask the kernel directly.
// Everything a collector reads goes through here, so that tests put a fake machine (tests/hosts/) in its place.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

struct FilesystemUsage {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;       // for root
  std::uint64_t available_bytes = 0;  // for others
  std::uint64_t inodes_total = 0;
  std::uint64_t inodes_free = 0;
};

// Thread-safe: no mutable state but what a test changes between ticks.
class Host {
 public:
  virtual ~Host() = default;

  // Where `absolute` ("/proc/stat") lies: itself on the real machine, below the fixture on a fake one.
  virtual std::string resolve(std::string_view absolute) const { return std::string(absolute); }
  // True on a fake machine whose files are replaced between ticks: kept files are then opened anew at each read.
  virtual bool reopens() const { return false; }
  // The errno with which a fake machine refuses to open or read a file; 0: it does not. Asked only where reopens().
  virtual int injected_error(std::string_view /*absolute*/) const { return 0; }
  // What dlopen is given for a driver's library; a fake machine has its own.
  virtual std::string library(std::string_view name) const { return std::string(name); }
  // For measuring how long a source took to answer; stands still on a fake machine, where what a test sees must not
  // depend on how busy the real one is.
  virtual std::int64_t mono_ns() const;
  // statvfs of a mount point. Blocks for as long as its server does not answer: only from a lane that may block.
  virtual Result<FilesystemUsage> filesystem_usage(std::string_view mount_point) const;
  virtual std::int64_t clock_ticks_per_s() const;  // unit of the CPU times in /proc
  virtual std::uint64_t page_bytes() const;
  virtual std::uint32_t user_id() const;  // effective
  // CPU time of all threads of a process, ns. Finer than the ticks of /proc/PID/stat. kNotFound: it ended.
  virtual Result<std::uint64_t> process_cpu_ns(std::int32_t pid) const;

  // Whole content, at most `bytes_max` (kResourceLimit beyond).
  Result<std::string> read_text(std::string_view absolute, std::size_t bytes_max = std::size_t{1} << 20) const;
  // Names in a folder, sorted, without "." and "..".
  Result<std::vector<std::string>> list(std::string_view absolute) const;
  Result<std::string> read_link(std::string_view absolute) const;
  bool exists(std::string_view absolute) const;
};

const Host& system_host();

// A small kernel file that is read at every tick: the descriptor is kept, content is read from offset 0 into one
// buffer that grows as needed (a /proc/stat of 1,024 cores has 100 KiB). Not thread-safe: one owner.
class KeptFile {
 public:
  KeptFile() = default;
  KeptFile(KeptFile&& other) noexcept;
  KeptFile& operator=(KeptFile&& other) noexcept;
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  ~KeptFile();

  // `host` must outlive the file.
  static Result<KeptFile> open(const Host& host, std::string_view absolute);

  bool is_open() const { return fd_ >= 0; }
  // Whole content; the view is valid until the next read. An error closes nothing: the caller decides.
  Result<std::string_view> read();
  // The same for files that the kernel makes in one piece (all of /proc/PID, /proc/stat, meminfo, PSI, sysfs,
  // cgroup files): a short read is the end, which saves a call.
  Result<std::string_view> read_record();
  // The same for lists whose lines are short (diskstats, net/dev, vmstat, blkio; not mountinfo and mountstats): the
  // kernel stops before a line that does not fit, so a read that leaves room for any line is the end.
  Result<std::string_view> read_list();
  const std::string& path() const { return path_; }

 private:
  Result<void> reopen();
  Result<std::string_view> read_text(std::size_t line_bytes_max);

  const Host* host_ = nullptr;
  std::string path_;
  std::string buffer_;
  int fd_ = -1;
};

}  // namespace hotlap
