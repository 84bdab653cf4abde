#pragma once
// What /proc/PID says, as numbers. Each function takes the text of one file; nothing when it is not such a text.
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/host.h"

namespace hotlap {

// Stored: append only.
enum class ProcessState : std::uint8_t {
  kUnknown = 0,
  kRunning = 1,  // or runnable
  kSleeping = 2,
  kDiskSleep = 3,  // uninterruptible: mostly waiting for I/O
  kStopped = 4,
  kTraced = 5,
  kZombie = 6,
  kIdle = 7,
};

struct ProcessStat {
  ProcessState state = ProcessState::kUnknown;
  std::int32_t parent_pid = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;  // since boot; tells a process from a later one with its pid
  std::uint64_t rss_pages = 0;
};
// /proc/PID/stat. The name in it may hold anything, brackets, blanks and line ends too.
std::optional<ProcessStat> parse_process_stat(std::string_view text);
// Nothing when there is no such process, or it may not be seen.
std::optional<ProcessStat> read_process_stat(const Host& host, std::int32_t pid);

struct ProcessIo {
  std::uint64_t read_chars = 0;
  std::uint64_t written_chars = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
};
std::optional<ProcessIo> parse_process_io(std::string_view text);

struct ContextSwitches {
  std::uint64_t voluntary = 0;
  std::uint64_t involuntary = 0;
};
// /proc/PID/status.
std::optional<ContextSwitches> parse_context_switches(std::string_view text);

struct SchedulerTimes {
  std::uint64_t run_ns = 0;
  std::uint64_t wait_ns = 0;  // runnable, but without a core
};
// schedstat of a task: of the one thread that it names.
std::optional<SchedulerTimes> parse_schedstat(std::string_view text);

// /proc/PID/smaps_rollup: kB.
std::optional<std::uint64_t> parse_pss_kib(std::string_view text);

}  // namespace hotlap
