#include "ingest/dump_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::int64_t kTickNs = kNsPerS / 100;         // of the kernel's times of cores
constexpr std::int64_t kSmallestJumpNs = kNsPerS / 2;   // what copying takes may differ by less
constexpr std::int64_t kSmallestGuessNs = 5 * kNsPerS;  // by the times of cores alone, which have holes
constexpr double kShareOfStretch = 0.2;                 // of the time between two dumps, that may be missing in them

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

// Time of one core: that of all cores together, by their number.
std::optional<std::int64_t> core_ns(std::string_view stat) {
  std::string_view line;
  double all = -1;
  double cores = 0;
  while (next_line(stat, line)) {
    if (!line.starts_with("cpu")) break;
    std::string_view rest = line;
    const std::string_view name = next_word(rest);
    if (name != "cpu") {
      cores += 1;
      continue;
    }
    all = 0;
    // user nice system idle iowait irq softirq steal; guests are parts of user and nice.
    for (int i = 0; i < 8; ++i) {
      const auto ticks = parse_u64(next_word(rest));
      if (!ticks) break;
      all += static_cast<double>(*ticks);
    }
  }
  if (all < 0 || cores < 1 || all / cores > 1e10) return std::nullopt;
  return std::llround(all / cores * static_cast<double>(kTickNs));
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

DumpClock::Jump DumpClock::take(std::int64_t wall_ns, std::string_view stat_untrusted,
                                std::string_view uptime_untrusted) {
  Jump jump;
  const auto uptime = uptime_ns(uptime_untrusted);
  const auto core = core_ns(stat_untrusted);
  if (last_wall_ns_) {
    const std::int64_t wall = wall_ns - *last_wall_ns_;
    const bool has_uptime = uptime && last_uptime_ns_ && *uptime >= *last_uptime_ns_;
    const bool has_core = core && last_core_ns_ && *core >= *last_core_ns_;
    const std::int64_t awake_and_asleep = has_uptime ? *uptime - *last_uptime_ns_ : 0;
    const std::int64_t awake = has_core ? *core - *last_core_ns_ : 0;
    if (has_uptime && std::llabs(wall - awake_and_asleep) >= kSmallestJumpNs) {
      jump.step_ns = wall - awake_and_asleep;
    } else if (has_uptime && has_core && awake_and_asleep - awake >= kSmallestGuessNs &&
               static_cast<double>(awake) < kShareOfStretch * static_cast<double>(awake_and_asleep)) {
      jump.sleep_ns = awake_and_asleep - awake;
    } else if (!has_uptime && has_core && std::llabs(wall - awake) >= kSmallestGuessNs && wall - awake < 0) {
      jump.step_ns = wall - awake;
    } else if (!has_uptime && has_core && wall - awake >= kSmallestGuessNs &&
               static_cast<double>(awake) < kShareOfStretch * static_cast<double>(wall)) {
      jump.step_ns = wall - awake;  // or it slept: without /proc/uptime that looks the same
    } else if (!has_uptime && !has_core && wall < 0) {
      jump.step_ns = wall;  // whatever passed meanwhile
    }
  }
  last_wall_ns_ = wall_ns;
  if (uptime) last_uptime_ns_ = uptime;
  if (core) last_core_ns_ = core;
  jumped_ns_ += jump.step_ns;
  time_ns_ = wall_ns - jumped_ns_;
  return jump;
}

}  // namespace hotlap
