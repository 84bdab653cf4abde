#pragma once
// Letters and digits of ASCII, whatever the locale says: names, titles and numbers of formats are made of them.
#include <string>
#include <string_view>

namespace hotlap {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_letter(char c) { return to_lower(c) >= 'a' && to_lower(c) <= 'z'; }

inline std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

}  // namespace hotlap
