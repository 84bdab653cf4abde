#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/format.h"

namespace hotlap {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Lead bytes of UTF-8 with the range of their second byte, which keeps overlong forms, surrogates and what lies beyond
// U+10FFFF out (Unicode, table 3-7).
struct Utf8Lead {
  unsigned char first;
  unsigned char last;
  unsigned char length;
  unsigned char second_min;
  unsigned char second_max;
};
constexpr std::array kUtf8Leads{
    Utf8Lead{0x00, 0x7F, 1, 0, 0},       Utf8Lead{0xC2, 0xDF, 2, 0x80, 0xBF}, Utf8Lead{0xE0, 0xE0, 3, 0xA0, 0xBF},
    Utf8Lead{0xE1, 0xEC, 3, 0x80, 0xBF}, Utf8Lead{0xED, 0xED, 3, 0x80, 0x9F}, Utf8Lead{0xEE, 0xEF, 3, 0x80, 0xBF},
    Utf8Lead{0xF0, 0xF0, 4, 0x90, 0xBF}, Utf8Lead{0xF1, 0xF3, 4, 0x80, 0xBF}, Utf8Lead{0xF4, 0xF4, 4, 0x80, 0x8F},
};

// Length of the valid UTF-8 sequence that `text` starts with; 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Utf8Lead& lead : kUtf8Leads) {
    if (at(0) < lead.first || at(0) > lead.last) continue;
    if (text.size() < lead.length) return 0;
    if (lead.length > 1 && (at(1) < lead.second_min || at(1) > lead.second_max)) return 0;
    for (std::size_t i = 2; i < lead.length; ++i) {
      if ((at(i) & 0xC0U) != 0x80U) return 0;
    }
    return lead.length;
  }
  return 0;
}

struct DurationUnit {
  std::string_view name;
  double ns;
};
constexpr std::array kDurationUnits{DurationUnit{"ns", 1.0},    DurationUnit{"us", 1e3},   DurationUnit{"ms", 1e6},
                                    DurationUnit{"s", 1e9},     DurationUnit{"min", 60e9}, DurationUnit{"h", 3'600e9},
                                    DurationUnit{"d", 86'400e9}};

// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

bool next_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) return false;
  const std::size_t end = rest.find('\n');
  line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return true;
}

std::string_view next_word(std::string_view& rest) {
  const std::size_t begin = rest.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    rest = {};
    return {};
  }
  const std::size_t end = rest.find_first_of(" \t\n", begin);
  const std::string_view word = rest.substr(begin, end == std::string_view::npos ? end : end - begin);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
  return word;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text = text.substr(end + 1);
  }
}

std::optional<std::uint64_t> parse_u64(std::string_view text) { return parse_number<std::uint64_t>(text); }
std::optional<std::int64_t> parse_i64(std::string_view text) { return parse_number<std::int64_t>(text); }
std::optional<double> parse_f64(std::string_view text) { return parse_number<double>(text); }

std::optional<std::int64_t> parse_duration_ns(std::string_view text) {
  const std::size_t unit_begin = text.find_first_not_of("0123456789.");
  if (unit_begin == std::string_view::npos) return std::nullopt;
  const auto number = parse_f64(text.substr(0, unit_begin));
  if (!number) return std::nullopt;
  for (const DurationUnit& unit : kDurationUnits) {
    if (text.substr(unit_begin) != unit.name) continue;
    const double ns = *number * unit.ns;
    if (ns >= 9.2e18) return std::nullopt;
    return static_cast<std::int64_t>(std::llround(ns));
  }
  return std::nullopt;
}

std::string format_duration(std::int64_t ns) {
  const double value = static_cast<double>(ns);
  const double magnitude = std::fabs(value);
  if (magnitude < 1e3) return format("{} ns", ns);
  if (magnitude < 1e6) return format("{:.3g} us", value / 1e3);
  if (magnitude < 1e9) return format("{:.3g} ms", value / 1e6);
  if (magnitude < 120e9) return format("{:.3g} s", value / 1e9);
  if (magnitude < 7'200e9) return format("{:.3g} min", value / 60e9);
  if (magnitude < 48 * 3'600e9) return format("{:.3g} h", value / 3'600e9);
  return magnitude < 1'000 * 86'400e9 ? format("{:.3g} d", value / 86'400e9) : format("{:.0f} d", value / 86'400e9);
}

std::string shown_count(std::uint64_t count) {
  std::string digits = format("{}", count);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string format_bytes(double bytes) {
  constexpr std::array kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1024.0 && unit + 1 < kNames.size()) {
    bytes /= 1024.0;
    ++unit;
  }
  return unit == 0 ? format("{:.0f} B", bytes) : format("{:.1f} {}", bytes, kNames[unit]);
}

std::string to_valid_utf8(std::string_view text_untrusted) {
  std::string clean;
  clean.reserve(text_untrusted.size());
  while (!text_untrusted.empty()) {
    const std::size_t length = utf8_length(text_untrusted);
    if (length == 0) {
      clean += "\xEF\xBF\xBD";
      text_untrusted.remove_prefix(1);
    } else {
      clean += text_untrusted.substr(0, length);
      text_untrusted.remove_prefix(length);
    }
  }
  return clean;
}

std::string strip_control(std::string_view text_untrusted) {
  std::string clean = to_valid_utf8(text_untrusted);
  std::string out;
  out.reserve(clean.size());
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const auto c = static_cast<unsigned char>(clean[i]);
    const bool is_c1 = c == 0xC2 && i + 1 < clean.size() && static_cast<unsigned char>(clean[i + 1]) < 0xA0;
    if (is_c1) {
      out += '?';
      ++i;
    } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
      out += c == '\r' ? ' ' : '?';
    } else {
      out += clean[i];
    }
  }
  return out;
}

std::string_view nearest_text(std::string_view typed, std::span<const std::string_view> candidates) {
  // A third of the letters may be wrong, or the rest of a long name may be missing.
  constexpr std::size_t kTypedMax = 64;  // nobody mistypes more; bounds the work for hostile input
  if (typed.empty() || typed.size() > kTypedMax) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, typed.size() / 3);
  for (const std::string_view candidate : candidates) {
    const bool is_start = typed.size() >= 3 && candidate.starts_with(typed);
    const std::size_t distance = is_start ? 1 : edit_distance(typed, candidate);
    if (distance > best_distance || (distance == best_distance && !best.empty())) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace hotlap
