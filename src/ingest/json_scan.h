#pragma once
// Scanning of untrusted JSON in place, for gigabytes of it: no tree, no allocation, no recursion. Every function looks
// at [at, end) only and tells apart what is cut off from what is wrong, so that a caller that gets the input in pieces
// waits for more, and one that has met damage looks for the next sound place. What is skipped is not validated.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
};

// `at` stands behind the opening quote; it is left behind the closing one.
Scan scan_text(const char*& at, const char* end, Text& out);
// `at` stands at the first character of any value; it is left behind the value. Brackets are counted, not matched.
Scan skip_value(const char*& at, const char* end);
// A value that is no string, object or list: a number, true, null, nan. `at` is left behind it.
Scan scan_token(const char*& at, const char* end, std::string_view& out);

// A decimal number of microseconds ("12", "12.345", "1.5e3") as nanoseconds, exact to the nanosecond. Nothing when it
// is no number or beyond int64.
std::optional<std::int64_t> nanoseconds_of_us(std::string_view number);
// Whole numbers; those beyond int64 and up to 2^64 wrap, since identifiers are printed so. Nothing for anything else.
std::optional<std::int64_t> whole_number(std::string_view number);

// Appends `text` with its escapes resolved and as valid UTF-8 without control characters but tabs and line ends. False
// when something had to be mended: a byte that is not UTF-8, a control character, an escape that JSON does not have.
bool append_clean(const Text& text, std::string& out);

}  // namespace hotlap::json
