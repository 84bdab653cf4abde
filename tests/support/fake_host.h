#pragma once
// A fake machine for tests: a script (tests/hosts/<name>/host.txt, or text made in a test) says what lies below
// /proc and /sys at each tick, and what the kernel answers. The files are laid out in a temporary folder that goes
// with the object.
//
//   # comment (before the first @file only)
//   @tick 0s                        time since the first tick; what follows holds from this tick on
//   @file /proc/loadavg             the lines up to the next line that starts with @
//   @link /sys/class/net/eth0/device ../../../pci0
//   @dir /sys/class/net/lo
//   @remove /proc/42                file, link or whole folder
//   @error /proc/42/io EACCES       opening it fails so; "none" ends it
//   @usage /mnt 1000 400 300 20 10  total, free and available bytes; total and free inodes (\040 in a path is a blank)
//   @usage /nfs hangs               never answers, until the object goes or another @usage
//   @usage /bad EIO                 fails so
//   @cpu_ns 42 123456               CPU time of a process; "gone" for none
//   @job 42                         the job's root process; 0: none
//   @process 42 main                a live process of the job and its slot; "42 gone" ends it
//   @nvml current                   libnvidia-ml.so.1 is the fake one of that age, or "old" (nvml/fake_nvml.h); the
//                                   lines up to the next @ are its script
//   @clock real                     mono_ns() tells the machine's time; without it, the tick's
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "collect/collector.h"

namespace hotlap::test {

// advance() and the job's view belong to the test's thread; what Host promises holds for all.
class FakeHost final : public Host {
 public:
  static Result<std::unique_ptr<FakeHost>> parse(std::string_view script);
  static Result<std::unique_ptr<FakeHost>> load(const std::filesystem::path& file);
  ~FakeHost() override;  // lets hanging calls go and waits for them
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  std::size_t tick_count() const { return ticks_.size(); }
  // Applies the next tick's changes; an error names the line of the script. Call once before the first use.
  Result<void> advance();
  TickInfo tick() const;  // of the last advance(); valid until the next
  bool hangs(std::string_view mount_point) const;

  std::string resolve(std::string_view absolute) const override;
  std::string library(std::string_view name) const override;
  std::int64_t mono_ns() const override { return has_real_clock_ ? Host::mono_ns() : t_ns_; }
  bool reopens() const override { return true; }
  int injected_error(std::string_view absolute) const override;
  Result<FilesystemUsage> filesystem_usage(std::string_view mount_point) const override;
  std::int64_t clock_ticks_per_s() const override { return 100; }
  std::uint64_t page_bytes() const override { return 4096; }
  std::uint32_t user_id() const override { return 1000; }
  Result<std::uint64_t> process_cpu_ns(std::int32_t pid) const override;

 private:
  struct Step {
    std::size_t line = 0;
    std::string verb;
    std::string target;
    std::string rest;  // the remainder of the line, or the file's content
  };
  struct Tick {
    std::int64_t t_ns = 0;
    std::vector<Step> steps;
  };
  struct Usage {
    FilesystemUsage answer;
    int error = 0;
    bool hangs = false;
  };

  FakeHost() = default;
  Result<void> apply(const Step& step);
  Result<void> apply_to_files(const Step& step) const;
  Result<void> apply_usage(const Step& step);
  Result<void> apply_nvml(const Step& step);

  std::filesystem::path root_;
  std::vector<Tick> ticks_;
  std::size_t next_tick_ = 0;
  std::int64_t t_ns_ = 0;
  std::int32_t root_pid_ = 0;
  std::map<std::int32_t, std::string> slots_;
  std::vector<JobProcess> processes_;
  std::string nvml_;  // path of the library; empty: there is none
  bool has_real_clock_ = false;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int waiting_ = 0;
  bool is_closing_ = false;
  std::map<std::string, Usage, std::less<>> usages_;
  std::map<std::int32_t, std::uint64_t> cpu_ns_;
  std::map<std::string, int, std::less<>> errors_;
};

}  // namespace hotlap::test
