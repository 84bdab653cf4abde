#pragma once
// Dates and times of day as logs write them, in Unix nanoseconds.
#include <cstdint>
#include <optional>
#include <string_view>

namespace hotlap {

struct CivilTime {
  std::int64_t unix_ns = 0;  // as if its zone were UTC, unless has_zone
  bool has_zone = false;     // "Z" or "+02:00" followed: unix_ns is Unix time
  std::size_t length = 0;    // characters read
};

// A zone that is not written lies within this of UTC (UTC-12 … UTC+14).
inline constexpr std::int64_t kZoneUncertaintyNs = 14LL * 3600 * 1'000'000'000;

// The date and time that `text` begins with: "2024/04/05 06:17:19.635", "2024-04-05T06:17:19,635+02:00",
// "2024-04-05 06:17:19". The date's separator is '-' or '/', then a blank, 'T' or '_'; up to nine decimals. Nothing
// when there is none or a field is out of range (years 1970 … 2200).
std::optional<CivilTime> read_civil_time(std::string_view text);

// The same from its fields. Nothing when one is out of range.
std::optional<std::int64_t> unix_ns_of(int year, unsigned month, unsigned day, unsigned hour, unsigned minute,
                                       unsigned second, std::int64_t ns);

}  // namespace hotlap
