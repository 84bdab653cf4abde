#pragma once
// Cuts a stream into its JSON objects: JSON lines, or the elements of one array, whether it is closed or not. Memory is
// bounded by one object. An object that is cut off or damaged costs itself: the next one is found again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace hotlap {

struct JsonObjectText {
  std::string_view text;    // with its braces, else what there is of it; valid during the call
  std::int64_t offset = 0;  // byte of the input where it begins
  bool is_whole = true;     // false: cut off, too long, or nested beyond the bound
};

// Confined to the importing thread.
class JsonObjectCutter {
 public:
  explicit JsonObjectCutter(std::size_t object_bytes_max) : object_bytes_max_(object_bytes_max) {}

  // Calls take(const JsonObjectText&) for each object that `chunk_untrusted` ends.
  template <class F>
  void push(ByteView chunk_untrusted, F&& take) {
    const std::string_view chunk = as_text(chunk_untrusted);
    for (const char c : chunk) {
      step(c, take);
      ++bytes_;
    }
  }
  template <class F>
  void finish(F&& take) {
    if (depth_ > 0 || is_in_junk_) give(false, take);
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kDepthMax = 63;

  enum class Next : std::uint8_t { kGoOn, kWhole, kDamagedBefore, kDamagedHere };
  // Takes a character inside an object.
  Next look(char c);

  template <class F>
  void step(char c, F& take) {
    if (depth_ == 0) return step_between(c, take);
    switch (look(c)) {
      case Next::kGoOn: keep(c); return;
      case Next::kWhole: keep(c); return give(!is_too_long_, take);
      case Next::kDamagedBefore:  // this brace begins the next one
        give(false, take);
        return begin();
      case Next::kDamagedHere:
        give(false, take);
        is_after_damage_ = c != '\n';
        return;
    }
  }
  template <class F>
  void step_between(char c, F& take) {
    if (is_after_damage_) {  // to the end of the line
      is_after_damage_ = c != '\n';
      return;
    }
    const bool is_end = c == '\n' || c == '{';
    if (is_in_junk_ && is_end) give(false, take);
    if (c == '{') return begin();
    const bool is_expected = c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == '[' || c == ']';
    if (is_in_junk_ || !is_expected) {
      if (is_end) return;
      if (!is_in_junk_) offset_ = static_cast<std::int64_t>(bytes_);
      is_in_junk_ = true;
      keep(c);
    }
  }
  template <class F>
  void give(bool is_whole, F& take) {
    depth_ = 0;
    is_in_junk_ = false;
    take(JsonObjectText{.text = text_, .offset = offset_, .is_whole = is_whole});
    text_.clear();
    is_too_long_ = false;
  }
  void begin();
  void keep(char c) {
    if (text_.size() < object_bytes_max_) {
      text_ += c;
    } else {
      is_too_long_ = true;
    }
  }
  bool is_array(std::size_t depth) const { return ((arrays_ >> depth) & 1U) != 0; }

  std::size_t object_bytes_max_;
  std::string text_;
  std::int64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t depth_ = 0;     // of containers; 0: between objects
  std::uint64_t arrays_ = 0;  // a bit for each level that is an array
  char before_ = 0;           // the last character that is neither blank nor in a string
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool is_in_junk_ = false;  // what is neither an object nor stands between two
  bool is_after_damage_ = false;
  bool is_too_long_ = false;
};

}  // namespace hotlap
