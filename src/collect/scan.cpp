#include "collect/scan.h"

#include <algorithm>

namespace hotlap {
namespace {

// Reads the value of a line that starts with `key`; false when another key stands there.
bool read_keyed(TextCursor& line, std::string_view key, std::optional<std::uint64_t>& value) {
  if (!line.accept(key)) return false;
  if (!line.accept(":") && !line.accept(" ") && !line.accept("\t")) return false;
  std::uint64_t number = 0;
  value = line.number(number) ? std::optional(number) : std::nullopt;
  return true;
}

}  // namespace

void KeyedNumbers::scan(std::string_view text) {
  if (has_learnt_ && scan_as_learnt(text)) return;
  learn(text);
}

bool KeyedNumbers::scan_as_learnt(std::string_view text) {
  TextCursor cursor(text);
  for (const std::int16_t key : key_of_line_) {
    if (cursor.at_end()) return false;
    if (key >= 0) {
      const auto index = static_cast<std::size_t>(key);
      if (!read_keyed(cursor, keys_[index], values_[index])) return false;
    }
    cursor.skip_line();
  }
  return true;
}

void KeyedNumbers::learn(std::string_view text) {
  constexpr std::size_t kLinesMax = 4096;
  std::fill(values_.begin(), values_.end(), std::nullopt);
  key_of_line_.clear();
  std::size_t wanted_end = 0;
  for (TextCursor cursor(text); !cursor.at_end() && key_of_line_.size() < kLinesMax; cursor.skip_line()) {
    std::int16_t found = -1;
    for (std::size_t k = 0; k < keys_.size() && found < 0; ++k) {
      TextCursor line = cursor;
      std::optional<std::uint64_t> value;
      if (!read_keyed(line, keys_[k], value)) continue;
      values_[k] = value;
      found = static_cast<std::int16_t>(k);
    }
    key_of_line_.push_back(found);
    if (found >= 0) wanted_end = key_of_line_.size();
  }
  key_of_line_.resize(wanted_end);
  has_learnt_ = true;
}

}  // namespace hotlap
