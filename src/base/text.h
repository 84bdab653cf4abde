#pragma once
// Scanning of kernel text and cleaning of foreign text. No <regex>: it is slow to compile and to run.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

// Splits off and returns the next line without its '\n'; `rest` advances. Empty and false at the end.
bool next_line(std::string_view& rest, std::string_view& line);
// Splits off and returns the next run of characters that are neither space nor tab; empty at the end of the line.
std::string_view next_word(std::string_view& rest);
std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

// Whole-text numbers: nothing when there is anything else in `text`, or it does not fit.
std::optional<std::uint64_t> parse_u64(std::string_view text);
std::optional<std::int64_t> parse_i64(std::string_view text);
std::optional<double> parse_f64(std::string_view text);

// "500ms", "2s", "1.5min", "1h" → nanoseconds; units ns us ms s min h d. Nothing when it is not such a text.
std::optional<std::int64_t> parse_duration_ns(std::string_view text);
// 1'500'000'000 → "1.5 s"; three significant digits.
std::string format_duration(std::int64_t ns);
// 1234567 → "1,234,567".
std::string shown_count(std::uint64_t count);
// 1536 → "1.5 KiB".
std::string format_bytes(double bytes);

// Bad bytes become U+FFFD.
std::string to_valid_utf8(std::string_view text_untrusted);
// For terminals: control characters (C0 but '\n' and '\t', DEL, C1, escape sequences' lead-in) become '?' or a space.
std::string strip_control(std::string_view text_untrusted);

// The candidate that `typed` was probably meant to be; empty when none is near. For "did you mean …".
std::string_view nearest_text(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace hotlap
