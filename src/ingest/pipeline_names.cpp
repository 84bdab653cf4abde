#include "ingest/pipeline_names.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::string_view kBetween = " _-:=[(#";  // what may stand between words and in front of the number

constexpr bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

void skip_between(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word) || (text.size() > word.size() && is_letter(text[word.size()]))) return false;
  text.remove_prefix(word.size());
  skip_between(text);
  return true;
}

}  // namespace

std::optional<std::int32_t> pipeline_stage_in_name(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  for (std::size_t at = 0; at < lower.size(); ++at) {
    if (at > 0 && (is_letter(lower[at - 1]) || is_digit(lower[at - 1]))) continue;
    std::string_view rest = std::string_view(lower).substr(at);
    if (!take_word(rest, "pp") && !take_word(rest, "pipeline")) continue;
    if (!take_word(rest, "rank")) (void)take_word(rest, "stage");
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto number = parse_i64(rest.substr(0, digits));
    if (number && *number <= INT32_MAX) return static_cast<std::int32_t>(*number);
  }
  return std::nullopt;
}

}  // namespace hotlap
