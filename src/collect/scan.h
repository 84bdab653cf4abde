#pragma once
// Scanners for the kernel's text: one pass, no allocation, every read bounded by the end of the text. What is not as
// expected makes them say no; they never guess.
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hotlap {

// A place in a text that moves forward. The text must outlive it.
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool at_end() const { return at_ == end_; }
  bool at_line_end() const { return at_ == end_ || *at_ == '\n'; }
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

  // To the first character of the next line; false when there is none.
  bool skip_line() {
    if (at_ == end_) return false;
    const void* found = std::memchr(at_, '\n', static_cast<std::size_t>(end_ - at_));
    at_ = found == nullptr ? end_ : static_cast<const char*>(found) + 1;
    return at_ != end_;
  }
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
  }
  // Moves past `expected` when it comes next.
  bool accept(std::string_view expected) {
    if (!rest().starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  // The next number after blanks, on this line. False, and only blanks are passed, when there is none or it does
  // not fit.
  bool number(std::uint64_t& out) {
    skip_blanks();
    const char* p = at_;
    std::uint64_t value = 0;
    while (p != end_ && *p >= '0' && *p <= '9') {
      const auto digit = static_cast<std::uint64_t>(*p - '0');
      if (value > (UINT64_MAX - digit) / 10) return false;
      value = value * 10 + digit;
      ++p;
    }
    if (p == at_) return false;
    at_ = p;
    out = value;
    return true;
  }
  // Fills `out` with the numbers that come next on this line; returns how many there were.
  std::size_t numbers(std::span<std::uint64_t> out) {
    std::size_t count = 0;
    while (count < out.size() && number(out[count])) ++count;
    return count;
  }
  // The next run of characters other than blanks and line ends; empty at the end of the line.
  std::string_view word() {
    skip_blanks();
    const char* begin = at_;
    while (at_ != end_ && *at_ != ' ' && *at_ != '\t' && *at_ != '\n') ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }
  // What lies before the next `stop` on this line, which is passed; nothing, and no move, when there is none.
  std::optional<std::string_view> until(char stop) {
    for (const char* p = at_; p != end_ && *p != '\n'; ++p) {
      if (*p != stop) continue;
      const std::string_view found{at_, static_cast<std::size_t>(p - at_)};
      at_ = p + 1;
      return found;
    }
    return std::nullopt;
  }

 private:
  const char* at_;
  const char* end_;
};

// "key: value" or "key value" lines, of which some are wanted (meminfo, vmstat, memory.stat). The kernel keeps its
// order, so the line of each key is learnt at the first scan and only checked afterwards.
class KeyedNumbers {
 public:
  // `keys` must outlive this.
  explicit KeyedNumbers(std::span<const std::string_view> keys) : keys_(keys), values_(keys.size()) {}

  void scan(std::string_view text);
  // Of the last scan; nothing when the key was not there.
  std::optional<std::uint64_t> value(std::size_t key) const { return values_[key]; }

 private:
  bool scan_as_learnt(std::string_view text);
  void learn(std::string_view text);

  std::span<const std::string_view> keys_;
  std::vector<std::optional<std::uint64_t>> values_;
  std::vector<std::int16_t> key_of_line_;  // −1: not wanted; ends with the last wanted line
  bool has_learnt_ = false;
};

}  // namespace hotlap
