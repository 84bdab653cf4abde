#pragma once
// Brings the files of one run to one clock, once, when they are imported: those with Unix time stay as they are; local
// times are moved by the whole quarters of an hour that bring them among the others; the rest by what both sides saw,
// the ends of steps with the same number or of collectives; what has nothing in common begins where the others begin.
// Files of messages alone go by the zone and the year of the others, or stay as they are.
// Says with what uncertainty, and where that cannot be told says so. Plain functions.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/recording_reader.h"

namespace hotlap {

// What one file knows of time. Times are as stored: of absolute ones Unix time.
struct FileClock {
  std::string format = {};  // files of one format were written in one zone; empty: unknown
  bool is_absolute = false;
  bool has_year = true;              // false: it would be absolute, but for the year
  bool has_only_events = false;      // messages of a machine, which may reach back for weeks: no measure for the others
  std::int64_t uncertainty_ns = -1;  // of an absolute clock; -1: unknown
  TimeRange extent{.from_ns = INT64_MAX, .to_ns = INT64_MIN};           // from > to: empty
  std::map<std::int64_t, std::int64_t> step_ends_ns;                    // by number
  std::map<std::string, std::vector<std::int64_t>> collective_ends_ns;  // by name, in their order
};

enum class JoinedBy : std::uint8_t { kUnixTime, kTimeZone, kYear, kSteps, kCollectives, kBegin };

struct JoinedClock {
  JoinedBy by = JoinedBy::kUnixTime;
  std::size_t to = 0;                // the other file, where there is one
  std::int64_t shift_ns = 0;         // to be added to this file's times
  std::int64_t uncertainty_ns = -1;  // half width; -1: unknown
  std::size_t matches = 0;           // steps or collectives
  bool is_absolute = false;          // shifted times are Unix time
};

// Of each file. Nothing: the others are brought to this one, or it is empty; so it is with one file.
std::vector<std::optional<JoinedClock>> join_clocks(std::span<const FileClock> files);

// "by 12 steps with a.json, within 3.2 ms" for users.
std::string describe(const JoinedClock& joined, const std::string& other_name);

}  // namespace hotlap
