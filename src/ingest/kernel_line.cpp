#include "ingest/kernel_line.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/text.h"
#include "ingest/civil_time.h"

namespace hotlap {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::size_t kDecimals = 6;  // of the kernel's own stamps

// A number of at most `digits_max` digits behind blanks.
std::optional<unsigned> take_number(std::string_view& rest, std::size_t digits_max) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits > digits_max) return std::nullopt;
  const auto number = parse_u64(rest.substr(0, digits));
  rest.remove_prefix(digits);
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}
bool take(std::string_view& rest, char c) {
  if (!rest.starts_with(c)) return false;
  rest.remove_prefix(1);
  return true;
}

struct Moment {
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
};
// "Dec  1 15:37:49"; `rest` moves behind it.
std::optional<Moment> take_moment(std::string_view& rest) {
  const auto* const month = std::ranges::find(kMonths, rest.substr(0, 3));
  if (month == kMonths.end()) return std::nullopt;
  rest.remove_prefix(3);
  Moment moment{.month = static_cast<unsigned>(month - kMonths.begin()) + 1};
  const auto day = take_number(rest, 2);
  const auto hour = take_number(rest, 2);
  if (!day || !hour || !take(rest, ':')) return std::nullopt;
  const auto minute = take_number(rest, 2);
  if (!minute || !take(rest, ':')) return std::nullopt;
  const auto second = take_number(rest, 2);
  if (!second) return std::nullopt;
  moment.day = *day, moment.hour = *hour, moment.minute = *minute, moment.second = *second;
  return moment;
}

std::optional<std::int64_t> time_of(int year, const Moment& moment) {
  return unix_ns_of(year, moment.month, moment.day, moment.hour, moment.minute, moment.second, 0);
}

// "[12345.678901] ", also "[12345.678901][T4711] "; `rest` moves behind it.
std::optional<std::int64_t> take_boot_time(std::string_view& rest) {
  if (!rest.starts_with('[')) return std::nullopt;
  const std::size_t end = rest.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view time = trim(rest.substr(1, end - 1));
  const bool has_form = time.size() > kDecimals + 1 && time[time.size() - kDecimals - 1] == '.' &&
                        std::ranges::all_of(time, [](char c) { return is_digit(c) || c == '.'; });
  const auto seconds = has_form ? parse_u64(time.substr(0, time.size() - kDecimals - 1)) : std::nullopt;
  const auto micros = has_form ? parse_u64(time.substr(time.size() - kDecimals)) : std::nullopt;
  constexpr std::uint64_t kSecondsMax = 4'000'000'000;
  if (!seconds || !micros || *seconds > kSecondsMax) return std::nullopt;
  rest.remove_prefix(end + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  // Who said it: "[T4711]", "[    C3]".
  if (const std::size_t caller = rest.find(']'); rest.starts_with('[') && caller != std::string_view::npos) {
    const std::string_view name = trim(rest.substr(1, caller - 1));
    if (name.size() > 1 && (name[0] == 'T' || name[0] == 'C') && std::ranges::all_of(name.substr(1), is_digit))
      rest.remove_prefix(caller + 1);
  }
  return static_cast<std::int64_t>(*seconds) * kNsPerS + static_cast<std::int64_t>(*micros) * (kNsPerS / 1'000'000);
}

// "[Mon Dec  1 15:37:49 2026] " of dmesg -T.
bool take_spelled_time(std::string_view& rest, KernelLine& out) {
  if (!rest.starts_with('[')) return false;
  std::string_view inside = rest.substr(1);
  if (std::ranges::find(kWeekdays, inside.substr(0, 3)) == kWeekdays.end()) return false;
  inside.remove_prefix(3);
  if (!take(inside, ' ')) return false;
  const auto moment = take_moment(inside);
  const auto year = moment ? take_number(inside, 4) : std::nullopt;
  if (!year || !take(inside, ']')) return false;
  out.unix_ns = time_of(static_cast<int>(*year), *moment);
  rest = inside;
  return out.unix_ns.has_value();
}

// "n07 kernel: ", of a system's log and of the journal; `rest` moves behind it.
bool take_sender(std::string_view& rest) {
  std::string_view behind = rest;
  next_word(behind);
  if (next_word(behind) != "kernel:") return false;
  rest = behind;
  return true;
}

// What stands before the time: "<4>", "kern  :warn  : ".
void take_level(std::string_view& rest) {
  const std::size_t end = rest.find('>');
  if (rest.starts_with('<') && end != std::string_view::npos && end <= 4) rest.remove_prefix(end + 1);
  if (!rest.starts_with("kern ")) return;
  const std::size_t first = rest.find(':');
  const std::size_t second = first == std::string_view::npos ? first : rest.find(':', first + 1);
  constexpr std::size_t kLevelMax = 20;
  if (second == std::string_view::npos || second > kLevelMax) return;
  rest.remove_prefix(second + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
}

}  // namespace

std::optional<KernelLine> read_kernel_line(std::string_view line_untrusted) {
  std::string_view rest = line_untrusted;
  take_level(rest);
  KernelLine out;
  if (take_spelled_time(rest, out)) {
    out.text = trim(rest);
    return out;
  }
  if (const auto civil = read_civil_time(rest)) {
    out.unix_ns = civil->unix_ns;
    out.has_zone = civil->has_zone;
    rest.remove_prefix(civil->length);
    // dmesg names no sender: only with a zone and no other word is it told from other logs.
    const bool is_of_system = take_sender(rest);
    if (!is_of_system && !(civil->has_zone && line_untrusted.size() > 10 && line_untrusted[10] == 'T'))
      return std::nullopt;
  } else if (std::string_view behind = rest; const auto moment = take_moment(behind)) {
    out.unix_ns = time_of(kKernelYearUnknown, *moment);
    out.has_year = false;
    rest = behind;
    if (!out.unix_ns || !take_sender(rest)) return std::nullopt;
  }
  rest = trim(rest);
  const auto boot_ns = take_boot_time(rest);
  if (!boot_ns && !out.unix_ns) return std::nullopt;
  out.boot_ns = boot_ns;
  if (!out.unix_ns) take_sender(rest);  // journalctl -o short-monotonic
  out.text = trim(rest);
  return out;
}

}  // namespace hotlap
