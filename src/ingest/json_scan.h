#pragma once
// Scanning of untrusted JSON in place, for gigabytes of it: no tree, no allocation, no recursion. Every function looks
// at [at, end) only and tells apart what is cut off from what is wrong, so that a caller that gets the input in pieces
// waits for more, and one that has met damage looks for the next sound place. What is skipped is not validated.
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/lane.h"

namespace hotlap::json {

enum class Scan : std::uint8_t { kOk, kCutOff, kWrong };

constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline const char* skip_space(const char* at, const char* end) {
  while (at != end && is_space(*at)) ++at;
  return at;
}

// The inside of a string, as it stands in the text.
struct Text {
  std::string_view raw;
  bool has_escape = false;
  bool has_control = false;  // bytes below 0x20, which JSON forbids
  bool has_high = false;     // bytes from 0x80 on: UTF-8, or none
  bool is_plain() const { return !(has_escape || has_control || has_high); }
};

// Why text that was skipped may not be JSON: found on the way and without cost; damage_in() tells whether it is so.
struct Doubts {
  bool in_text = false;    // an escape, a control byte or a byte from 0x80 on
  bool in_number = false;  // a token that is neither a short number nor true, false, null
  bool any() const { return in_text || in_number; }
};

// scan_text() where a text is long, has anything but plain characters, or stands near the end.
Scan scan_long_text(const char*& at, const char* end, Text& out);
// `at` stands behind the opening quote; it is left behind the closing one.
inline Scan scan_text(const char*& at, const char* end, Text& out) {
  if (end - at >= kLaneBytes) {
    // A quote, a backslash, a byte below 0x20 or from 0x80 on (one comparison, with sign).
    const Lane bytes = load_lane(at);
    const std::uint32_t stops = lane_bits((bytes == '"') | (bytes == '\\') | (std::bit_cast<LaneMask>(bytes) < 0x20));
    const int stop = std::countr_zero(stops);
    if (stops != 0 && at[stop] == '"') {
      out = {.raw = {at, static_cast<std::size_t>(stop)}};
      at += stop + 1;
      return Scan::kOk;
    }
  }
  return scan_long_text(at, end, out);
}

constexpr bool ends_token(char c) { return c == ',' || c == '}' || c == ']' || c == ':' || c == '"' || is_space(c); }
Scan scan_token_near_end(const char*& at, const char* end, std::string_view& out);
// A value that is no string, object or list: a number, true, null, nan. `at` is left behind it.
inline Scan scan_token(const char*& at, const char* end, std::string_view& out) {
  if (end - at >= kLaneBytes) {
    const Lane bytes = load_lane(at);  // ']' and '}' differ in bit 5; control bytes end a token as blanks do
    const std::uint32_t stops =
        lane_bits((bytes == ',') | ((bytes | 0x20) == '}') | (bytes == ':') | (bytes == '"') | (bytes <= 0x20));
    const int length = std::countr_zero(stops);
    if (stops != 0 && length > 0 && (static_cast<unsigned char>(at[length]) >= 0x20 || is_space(at[length]))) {
      out = {at, static_cast<std::size_t>(length)};
      at += length;
      return Scan::kOk;
    }
  }
  return scan_token_near_end(at, end, out);
}

// Whether a token needs a closer look: it is neither a number that surely fits int64 nor true, false, null.
inline bool is_doubtful(std::string_view token) {
  constexpr std::size_t kShortToken = 18;
  if (is_digit(token.front())) return token.size() > kShortToken;
  if (token.front() == '-') return token.size() < 2 || !is_digit(token[1]) || token.size() > kShortToken;
  return token != "true" && token != "false" && token != "null";
}

// `at` stands behind the opening bracket of an object or list. Brackets are counted, not matched.
Scan skip_nest(const char*& at, const char* end, Doubts& doubts);

// `at` stands at the first character of any value; it is left behind the value.
inline Scan skip_value(const char*& at, const char* end, Doubts& doubts) {
  if (at == end) return Scan::kCutOff;
  if (*at == '"') {
    ++at;
    Text text;
    const Scan scanned = scan_text(at, end, text);
    doubts.in_text |= !text.is_plain();
    return scanned;
  }
  if (*at == '{' || *at == '[') {
    ++at;
    return skip_nest(at, end, doubts);
  }
  std::string_view token;
  const Scan scanned = scan_token(at, end, token);
  if (scanned == Scan::kOk) doubts.in_number |= is_doubtful(token);
  return scanned;
}
inline Scan skip_value(const char*& at, const char* end) {
  Doubts ignored;
  return skip_value(at, end, ignored);
}

// A decimal number of microseconds ("12", "12.345", "1.5e3") as nanoseconds, exact to the nanosecond. Nothing when it
// is no number or beyond int64.
std::optional<std::int64_t> nanoseconds_of_us(std::string_view number);
// Whole numbers; those beyond int64 and up to 2^64 wrap, since identifiers are printed so. Nothing for anything else.
std::optional<std::int64_t> whole_number(std::string_view number);

// What is wrong with the texts and tokens of any piece of JSON. Its structure is not looked at.
struct Damage {
  bool has_bad_text = false;     // a control byte, a byte that is not UTF-8, an escape that JSON does not have
  bool has_bad_number = false;   // nan, inf, None, 0x10, +1, beyond 64 bits …
  bool has_wide_number = false;  // a whole number beyond int64
};
Damage damage_in(std::string_view json);
// What is_plain() doubts of a text.
bool is_sound(const Text& text);
enum class Token : std::uint8_t { kSound, kWide, kBad };
// Of a number, true, false or null: what JSON says to it.
Token token_kind(std::string_view token);

// Appends `text` with its escapes resolved and as valid UTF-8 without control characters but tabs and line ends. False
// when something had to be mended: a byte that is not UTF-8, a control character, an escape that JSON does not have.
bool append_clean(const Text& text, std::string& out);

}  // namespace hotlap::json
