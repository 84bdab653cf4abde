#include "ingest/json_scan.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "base/ascii.h"
#include "base/text.h"

namespace hotlap::json {
namespace {

// Quotes, brackets of either sort ('[' and ']' differ from '{' and '}' in bit 5), and 'n' and 'i' of null, nan, None,
// inf, of the 16 bytes at `at`.
std::uint32_t stops_in_nest(const char* at) {
  const Lane bytes = load_lane(at);
  const Lane folded = bytes | 0x20;
  return lane_bits((bytes == '"') | (folded == '{') | (folded == '}') | (folded == 'n') | (folded == 'i'));
}

constexpr bool is_odd(char c) { return static_cast<signed char>(c) < 0x20; }  // a control byte, or from 0x80 on
constexpr bool is_stop_in_text(char c) { return c == '"' || c == '\\' || is_odd(c); }
constexpr std::int64_t kNsPerUs = 1000;
constexpr int kNsDigits = 3;

std::optional<std::int64_t> rounded(double value) {
  constexpr double kMax = 9.2e18;
  if (!(std::fabs(value) < kMax)) return std::nullopt;
  return std::llround(value);
}

constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The code unit of "\uXXXX" whose digits begin at `at`; -1: none.
int code_unit(std::string_view digits) {
  if (digits.size() < 4) return -1;
  int unit = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hex_digit(digits[static_cast<std::size_t>(i)]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6U));
    put(0x80 | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12U));
    put(0x80 | ((code >> 6U) & 0x3FU));
    put(0x80 | (code & 0x3FU));
  } else {
    put(0xF0 | (code >> 18U));
    put(0x80 | ((code >> 12U) & 0x3FU));
    put(0x80 | ((code >> 6U) & 0x3FU));
    put(0x80 | (code & 0x3FU));
  }
}

// Resolves "\u…" whose digits begin at `at`, surrogate pairs too; returns the characters used, 0: not an escape.
std::size_t append_unicode(std::string_view rest, std::string& out) {
  const int first = code_unit(rest);
  if (first < 0) return 0;
  if (first >= 0xDC00 && first < 0xE000) return 0;
  if (first < 0xD800 || first >= 0xE000) {
    append_utf8(static_cast<std::uint32_t>(first), out);
    return 4;
  }
  const int second = rest.size() >= 10 && rest[4] == '\\' && rest[5] == 'u' ? code_unit(rest.substr(6)) : -1;
  if (second < 0xDC00 || second >= 0xE000) return 0;
  append_utf8(
      0x10000 + ((static_cast<std::uint32_t>(first) - 0xD800) << 10U) + static_cast<std::uint32_t>(second) - 0xDC00,
      out);
  return 10;
}

}  // namespace

Scan scan_long_text(const char*& at, const char* end, Text& out) {
  const char* const begin = at;
  const char* p = at;
  out.has_escape = false;
  out.has_control = false;
  out.has_high = false;
  while (true) {
    while (end - p >= kLaneBytes) {
      const Lane bytes = load_lane(p);
      const std::uint32_t stops = lane_bits((bytes == '"') | (bytes == '\\') | (std::bit_cast<LaneMask>(bytes) < 0x20));
      p += stops == 0 ? kLaneBytes : std::countr_zero(stops);
      if (stops != 0) break;
    }
    while (p != end && !is_stop_in_text(*p)) ++p;
    if (p == end) return Scan::kCutOff;
    if (*p == '"') {
      out.raw = {begin, static_cast<std::size_t>(p - begin)};
      at = p + 1;
      return Scan::kOk;
    }
    if (*p == '\\') {
      if (end - p < 2) return Scan::kCutOff;
      out.has_escape = true;
      p += 2;
    } else if (static_cast<unsigned char>(*p) < 0x20) {
      out.has_control = true;
      ++p;
    } else {
      out.has_high = true;
      while (p != end && static_cast<unsigned char>(*p) >= 0x80) ++p;
    }
  }
}

Scan scan_token_near_end(const char*& at, const char* end, std::string_view& out) {
  const char* const begin = at;
  const char* p = at;
  while (p != end && !ends_token(*p)) ++p;
  if (p == end) return Scan::kCutOff;
  if (p == begin) return Scan::kWrong;
  out = {begin, static_cast<std::size_t>(p - begin)};
  at = p;
  return Scan::kOk;
}

Scan skip_nest(const char*& at, const char* end, Doubts& doubts) {
  std::uint64_t depth = 1;
  const char* p = at;
  // Takes the character at `stop`; true when the nest has ended there, or `failed` is set.
  Scan failed = Scan::kOk;
  const auto take = [&](const char* stop) {
    p = stop + 1;
    switch (*stop) {
      case '"': {
        Text text;
        failed = scan_text(p, end, text);
        doubts.in_text |= !text.is_plain();
        return failed != Scan::kOk;
      }
      case '{':
      case '[': ++depth; return false;
      case '}':
      case ']': return --depth == 0;
      case 'n':
        if (end - p >= 3 && std::memcmp(p, "ull", 3) == 0) {
          p += 3;
          return false;
        }
        [[fallthrough]];
      case 'N':
      case 'i':
      case 'I': doubts.in_number = true; return false;
      default: return false;
    }
  };
  bool is_done = false;
  while (!is_done) {
    if (end - p >= kLaneBytes) {
      const char* const lane = p;
      std::uint32_t stops = stops_in_nest(lane);
      p = lane + kLaneBytes;
      for (; stops != 0 && !is_done; stops &= stops - 1) {
        is_done = take(lane + std::countr_zero(stops));
        // Behind a text the rest of these bytes means something else, or lies behind.
        if (p > lane + std::countr_zero(stops) + 1) break;
      }
      if (stops == 0 && !is_done) p = lane + kLaneBytes;
    } else {
      if (p == end) return Scan::kCutOff;
      is_done = take(p);
    }
  }
  if (failed == Scan::kOk) at = p;
  return failed;
}

Token token_kind(std::string_view token) {
  if (token == "true" || token == "false" || token == "null") return Token::kSound;
  const char* p = token.data();
  const char* const end = p + token.size();
  const bool is_negative = p != end && *p == '-';
  if (is_negative) ++p;
  const char* const digits = p;
  while (p != end && is_digit(*p)) ++p;
  const auto whole_digits = p - digits;
  if (whole_digits == 0 || (whole_digits > 1 && *digits == '0')) return Token::kBad;
  if (p == end) {
    if (parse_i64(token)) return Token::kSound;
    return !is_negative && parse_u64(token) ? Token::kWide : Token::kBad;
  }
  if (*p == '.') {
    const char* const fraction = ++p;
    while (p != end && is_digit(*p)) ++p;
    if (p == fraction) return Token::kBad;
  }
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p != end && (*p == '+' || *p == '-')) ++p;
    const char* const exponent = p;
    while (p != end && is_digit(*p)) ++p;
    if (p == exponent) return Token::kBad;
  }
  return p == end ? Token::kSound : Token::kBad;
}

bool is_sound(const Text& text) {
  if (text.is_plain()) return true;
  std::string ignored;
  return append_clean(text, ignored);
}

Damage damage_in(std::string_view json) {
  Damage damage;
  const char* at = json.data();
  const char* const end = at + json.size();
  while (at != end) {
    const char c = *at;
    if (c == '"') {
      Text text;
      ++at;
      if (scan_text(at, end, text) != Scan::kOk) return damage;
      damage.has_bad_text |= !is_sound(text);
    } else if (c == '{' || c == '[' || ends_token(c)) {
      ++at;
    } else {
      const char* const begin = at;
      while (at != end && *at != '{' && *at != '[' && !ends_token(*at)) ++at;
      switch (token_kind({begin, static_cast<std::size_t>(at - begin)})) {
        case Token::kSound: break;
        case Token::kWide: damage.has_wide_number = true; break;
        case Token::kBad: damage.has_bad_number = true; break;
      }
    }
  }
  return damage;
}

std::optional<std::int64_t> nanoseconds_of_us(std::string_view number) {
  const char* p = number.data();
  const char* const end = p + number.size();
  const bool is_negative = p != end && *p == '-';
  if (is_negative) ++p;
  if (p == end) return std::nullopt;
  std::uint64_t whole = 0;
  int digits = 0;
  for (; p != end && *p >= '0' && *p <= '9'; ++p, ++digits) whole = whole * 10 + static_cast<std::uint64_t>(*p - '0');
  int fraction_digits = 0;
  std::uint64_t fraction = 0;
  bool rounds_up = false;
  int all_fraction_digits = 0;
  if (p != end && *p == '.') {
    for (++p; p != end && *p >= '0' && *p <= '9'; ++p, ++all_fraction_digits) {
      if (fraction_digits < kNsDigits) {
        fraction = fraction * 10 + static_cast<std::uint64_t>(*p - '0');
        ++fraction_digits;
      } else if (fraction_digits == kNsDigits) {
        rounds_up = *p >= '5';
        ++fraction_digits;
      }
    }
  }
  constexpr int kDigitsMax = 18;                              // `whole` has not wrapped
  constexpr std::uint64_t kWholeMax = 9'000'000'000'000'000;  // × 1000 stays inside int64
  if (p != end || digits > kDigitsMax || whole > kWholeMax || digits + all_fraction_digits == 0) {
    if (digits + all_fraction_digits == 0) return std::nullopt;
    double value = 0;
    const auto [stop, failed] = std::from_chars(number.data(), end, value);
    if (failed != std::errc() || stop != end) return std::nullopt;
    return rounded(value * static_cast<double>(kNsPerUs));
  }
  for (; fraction_digits < kNsDigits; ++fraction_digits) fraction *= 10;
  const auto ns =
      static_cast<std::int64_t>(whole) * kNsPerUs + static_cast<std::int64_t>(fraction) + (rounds_up ? 1 : 0);
  return is_negative ? -ns : ns;
}

std::optional<std::int64_t> whole_number(std::string_view number) {
  const char* p = number.data();
  const char* const end = p + number.size();
  const bool is_negative = p != end && *p == '-';
  if (is_negative) ++p;
  if (p == end) return std::nullopt;
  constexpr std::ptrdiff_t kSafeDigits = 18;
  if (end - p > kSafeDigits) {
    if (is_negative) return parse_i64(number);
    const auto wide = parse_u64(number);
    return wide ? std::optional(static_cast<std::int64_t>(*wide)) : std::nullopt;
  }
  std::int64_t value = 0;
  for (; p != end; ++p) {
    if (*p < '0' || *p > '9') {
      // "12.0" is a whole number as well.
      const auto real = parse_f64(number);
      return real && *real == std::floor(*real) ? rounded(*real) : std::nullopt;
    }
    value = value * 10 + (*p - '0');
  }
  return is_negative ? -value : value;
}

bool append_clean(const Text& text, std::string& out) {
  bool is_sound = true;
  std::string resolved;
  const std::string_view raw = text.raw;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (static_cast<unsigned char>(c) < 0x20) {
      is_sound = false;
      resolved += ' ';
      continue;
    }
    if (c != '\\' || i + 1 >= raw.size()) {
      resolved += c;
      continue;
    }
    const char escaped = raw[++i];
    switch (escaped) {
      case '"':
      case '\\':
      case '/': resolved += escaped; break;
      case 'n': resolved += '\n'; break;
      case 't': resolved += '\t'; break;
      case 'r': resolved += '\r'; break;
      case 'b':
      case 'f': resolved += ' '; break;
      case 'u':
        if (const std::size_t used = append_unicode(raw.substr(i + 1), resolved); used > 0) {
          i += used;
          break;
        }
        [[fallthrough]];
      default:
        is_sound = false;
        resolved += '\\';
        resolved += escaped;
    }
  }
  std::string valid = to_valid_utf8(resolved);
  is_sound = is_sound && valid == resolved;
  out += valid;
  return is_sound;
}

}  // namespace hotlap::json
