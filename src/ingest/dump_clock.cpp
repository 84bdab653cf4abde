#include "ingest/dump_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::int64_t kTickNs = kNsPerS / 100;         // of the kernel's times of cores
constexpr std::int64_t kSmallestJumpNs = kNsPerS / 2;   // what copying takes may differ by less
constexpr std::int64_t kSmallestGuessNs = 5 * kNsPerS;  // by the times of cores alone, which have holes
constexpr double kAwakeShare = 0.5;                     // of the time between two dumps: more of it is no sleep
constexpr double kAwakeShareGuess = 0.2;                // the same without /proc/uptime
constexpr double kBootWithinS = 2;                      // the time of the start is told to the second
constexpr std::int64_t kOnePassNs = kNsPerS;            // in which the files of one dump are read
constexpr std::size_t kHeadedFilesMax = 4096;
constexpr std::uint64_t kCoreIdMax = 8192;           // the kernel's own bound
constexpr std::uint64_t kTicksMax = 10'000'000'000;  // three years

// "1700000000.25" as nanoseconds, exact.
std::optional<std::int64_t> read_seconds(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto whole = parse_i64(text.substr(0, dot));
  if (!whole || *whole < 0 || *whole > 9'000'000'000) return std::nullopt;
  std::int64_t ns = *whole * kNsPerS;
  if (dot == std::string_view::npos) return ns;
  std::int64_t unit = kNsPerS / 10;
  for (const char c : text.substr(dot + 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    ns += unit * (c - '0');
    unit /= 10;
  }
  return ns;
}

// "12345.67 8910.11"
std::optional<std::int64_t> uptime_ns(std::string_view text) {
  const auto seconds = parse_f64(next_word(text));
  if (!seconds || !(*seconds >= 0 && *seconds < 4e9)) return std::nullopt;
  return std::llround(*seconds * 1e9);
}

CoreTimes core_times(std::string_view stat) {
  CoreTimes times;
  for (std::string_view line; next_line(stat, line);) {
    const std::string_view name = next_word(line);
    if (name == "btime") {
      times.boot_s = parse_i64(next_word(line));
      continue;
    }
    const auto core = name.starts_with("cpu") ? parse_u64(name.substr(3)) : std::nullopt;
    if (!core || *core > kCoreIdMax || times.ticks.size() > kCoreIdMax) continue;
    // user nice system idle iowait irq softirq steal; guests are parts of user and nice.
    std::uint64_t sum = 0;
    for (int i = 0; i < 8; ++i) {
      const auto ticks = parse_u64(next_word(line));
      if (!ticks || *ticks > kTicksMax) break;
      sum += *ticks;
    }
    times.ticks.emplace_back(static_cast<std::uint32_t>(*core), static_cast<std::int64_t>(sum));
  }
  std::ranges::sort(times.ticks);
  return times;
}

// What passed on the core in the middle, of those that are there before and after and were not reset. Others come and
// go, and the sum of all with them.
std::optional<std::int64_t> awake_ns(const CoreTimes& before, const CoreTimes& after) {
  std::vector<std::int64_t> ticks;
  for (auto [a, b] = std::pair(before.ticks.begin(), after.ticks.begin());
       a != before.ticks.end() && b != after.ticks.end();) {
    if (a->first != b->first) {
      ++(a->first < b->first ? a : b);
      continue;
    }
    if (b->second >= a->second) ticks.push_back(b->second - a->second);
    ++a;
    ++b;
  }
  if (ticks.empty()) return std::nullopt;
  const auto middle = ticks.begin() + std::ssize(ticks) / 2;
  std::ranges::nth_element(ticks, middle);
  return *middle * kTickNs;
}

// Whether the wall clock was set: the kernel moves the time of the start with it, and not when the machine sleeps.
bool moved_with_clock(const CoreTimes& before, const CoreTimes& after, std::int64_t step_ns) {
  if (!before.boot_s || !after.boot_s) return false;
  std::int64_t moved_s = 0;
  if (__builtin_sub_overflow(*after.boot_s, *before.boot_s, &moved_s)) return false;
  return std::abs(static_cast<double>(moved_s) - static_cast<double>(step_ns) * 1e-9) <= kBootWithinS;
}

// So much less was counted than passed that the machine was not running.
bool is_sleep(std::int64_t passed_ns, std::int64_t awake_ns, double share) {
  return passed_ns - awake_ns >= kSmallestGuessNs &&
         static_cast<double>(awake_ns) < share * static_cast<double>(passed_ns);
}

}  // namespace

std::optional<DumpHeader> read_dump_header(std::string_view line) {
  if (!line.starts_with('#')) return std::nullopt;
  line = trim(line.substr(std::min(line.find_first_not_of('#'), line.size())));
  if (!line.starts_with("t=")) return std::nullopt;
  line.remove_prefix(2);
  const std::size_t end = line.find_first_of(" \t,;");
  const auto t_ns = read_seconds(line.substr(0, end));
  if (!t_ns) return std::nullopt;
  return DumpHeader{.t_ns = *t_ns, .rest = end == std::string_view::npos ? std::string_view{} : trim(line.substr(end))};
}

void HeadedFiles::begin(const DumpHeader& header, bool names_file) {
  names_.clear();
  t_ns_ = header.t_ns;
  if (names_file) names_.emplace(header.rest);
}

bool HeadedFiles::goes_on(const DumpHeader& header) {
  const bool is_soon = header.t_ns >= t_ns_ && header.t_ns - t_ns_ < kOnePassNs;
  return !names_.empty() && is_soon && names_.size() < kHeadedFilesMax && names_.emplace(header.rest).second;
}

DumpClock::Jump DumpClock::take(std::int64_t wall_ns, std::string_view stat_untrusted,
                                std::string_view uptime_untrusted) {
  Jump jump;
  const auto uptime = uptime_ns(uptime_untrusted);
  CoreTimes cores = core_times(stat_untrusted);
  if (last_wall_ns_) {
    const std::int64_t wall = wall_ns - *last_wall_ns_;
    const auto awake = awake_ns(last_cores_, cores);
    if (uptime && last_uptime_ns_ && *uptime >= *last_uptime_ns_) {
      const std::int64_t passed = *uptime - *last_uptime_ns_;
      if (std::llabs(wall - passed) >= kSmallestJumpNs) jump.step_ns = wall - passed;
      if (awake && is_sleep(passed, *awake, kAwakeShare)) jump.sleep_ns = passed - *awake;
    } else if (awake && wall - *awake <= -kSmallestGuessNs) {
      jump.step_ns = wall - *awake;
    } else if (awake && is_sleep(wall, *awake, kAwakeShareGuess)) {
      const bool was_set = moved_with_clock(last_cores_, cores, wall - *awake);
      (was_set ? jump.step_ns : jump.unsure_ns) = wall - *awake;
    } else if (!awake && wall < 0) {
      jump.step_ns = wall;  // whatever passed meanwhile
    }
  }
  last_wall_ns_ = wall_ns;
  if (uptime) last_uptime_ns_ = uptime;
  if (!cores.ticks.empty()) last_cores_ = std::move(cores);
  jumped_ns_ += jump.step_ns;
  time_ns_ = wall_ns - jumped_ns_;
  return jump;
}

}  // namespace hotlap
