#pragma once
// The times of copies of /proc: the wall clock that stands before each may jump, and the machine may sleep. Time that
// only goes on is in /proc/uptime (with sleep) and in the sum of a core's times (without). Confined to one thread.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hotlap {

// The line before a copy, "## t=1700000000.25", with any number of '#'.
struct DumpHeader {
  std::int64_t t_ns = 0;  // exact
  std::string_view rest;  // what follows the time: a path

  // Smaller times count from any moment.
  bool is_unix_time() const { return t_ns >= 1'000'000'000'000'000'000; }  // 2001
};

// Nothing: the line is another one. A view into it.
std::optional<DumpHeader> read_dump_header(std::string_view line);

// Where a header stands before each file, files that are read one after the other are one dump: until one of them comes
// again, or a second has passed. Bounded.
class HeadedFiles {
 public:
  // A dump begins with this header.
  void begin(const DumpHeader& header, bool names_file);
  // The header, which names a file, is of the dump that has begun.
  bool goes_on(const DumpHeader& header);

 private:
  std::set<std::string, std::less<>> names_;
  std::int64_t t_ns_ = 0;
};

// What /proc/stat says of time.
struct CoreTimes {
  std::vector<std::pair<std::uint32_t, std::int64_t>> ticks;  // of each core, work and idleness together, by its number
  std::optional<std::int64_t> boot_s;                         // Unix time of it: moves when the wall clock is set
};

class DumpClock {
 public:
  // What happened between two dumps, beside the time that passed.
  struct Jump {
    std::int64_t step_ns = 0;   // of the wall clock, forward positive
    std::int64_t sleep_ns = 0;  // of the machine
    // It slept, or its clock jumped forward, for so long: without /proc/uptime they look alike.
    std::int64_t unsure_ns = 0;
    // The cores' times do not cover what passed.
    bool has_gap() const { return sleep_ns != 0 || unsure_ns != 0; }
  };

  // `stat_untrusted`, `uptime_untrusted`: the dump's files, empty where it has none.
  Jump take(std::int64_t wall_ns, std::string_view stat_untrusted, std::string_view uptime_untrusted);
  // Of the dump taken last: its wall time without the jumps so far, so that it never goes back. A sleep stays in it,
  // and so does what may be one: files beside the dump have the same wall clock.
  std::int64_t time_ns() const { return time_ns_; }

 private:
  std::optional<std::int64_t> last_wall_ns_;
  std::optional<std::int64_t> last_uptime_ns_;
  CoreTimes last_cores_;
  std::int64_t jumped_ns_ = 0;
  std::int64_t time_ns_ = 0;
};

}  // namespace hotlap
