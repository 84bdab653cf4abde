#pragma once
// Cuts a stream of text into lines, whatever the chunks in which it comes. Memory is bounded: of a line that is too
// long only the beginning is kept. UTF-16 (what a redirection in PowerShell writes) and a byte order mark are taken for
// what they are.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/text.h"

namespace hotlap {

struct TextLine {
  std::string_view text;     // without its end; valid during the call
  std::int64_t offset = 0;   // byte of the input where it begins
  bool is_too_long = false;  // what is beyond the bound is missing
  bool has_end = true;       // false: the input ended before the line did
};

enum class LineEnds : std::uint8_t {
  kNewline,                 // a '\r' before it is dropped
  kNewlineOrCarriageReturn  // progress bars draw over their own line
};

// Confined to the importing thread.
class LineCutter {
 public:
  explicit LineCutter(std::size_t line_bytes_max, LineEnds ends = LineEnds::kNewline)
      : line_bytes_max_(line_bytes_max), ends_(ends) {}

  // Calls take(const TextLine&) for each line that `chunk_untrusted` ends.
  template <class F>
  void push(ByteView chunk_untrusted, F&& take) {
    const std::string_view chunk = as_text(chunk_untrusted);
    if (encoding_ == Encoding::kUnknown && !learn_encoding(chunk)) return;
    const std::string head = take_head();
    for (const std::string_view part : {std::string_view(head), rest_of(chunk)}) {
      if (encoding_ == Encoding::kUtf8) {
        cut(part, take);
      } else {
        for (const char c : part) cut_utf16(c, take);
      }
    }
  }
  // The last line, where it has no end.
  template <class F>
  void finish(F&& take) {
    if (encoding_ == Encoding::kUnknown && !head_.empty()) {
      encoding_ = Encoding::kUtf8;
      const std::string head = take_head();
      cut(std::string_view(head), take);
    }
    if (!line_.empty() || is_too_long_) give(false, take);
  }

  std::uint64_t bytes() const { return bytes_; }  // taken so far

 private:
  enum class Encoding : std::uint8_t { kUnknown, kUtf8, kUtf16Little, kUtf16Big };

  // Needs the first three bytes; what it was given before waits in head_. True once it knows.
  bool learn_encoding(std::string_view chunk);
  std::string take_head();
  // What of the chunk was not moved to head_.
  std::string_view rest_of(std::string_view chunk);
  // The text of a UTF-16 unit that is complete with `byte`; empty before.
  std::string_view decode_utf16(char byte);

  template <class F>
  void cut(std::string_view part, F& take) {
    while (!part.empty()) {
      const std::size_t end = ends_ == LineEnds::kNewline ? part.find('\n') : part.find_first_of("\n\r");
      const bool is_ended = end != std::string_view::npos;
      const std::string_view text = part.substr(0, end);
      bytes_ += text.size() + (is_ended ? 1U : 0U);
      if (is_ended && line_.empty() && !is_too_long_ && text.size() <= line_bytes_max_) {
        take(TextLine{.text = without_return(text), .offset = line_offset_});  // the usual case copies nothing
        line_offset_ = static_cast<std::int64_t>(bytes_);
      } else {
        keep(text);
        if (is_ended) give(true, take);
      }
      if (!is_ended) return;
      part.remove_prefix(end + 1);
    }
  }
  template <class F>
  void cut_utf16(char byte, F& take) {
    ++bytes_;
    const std::string_view text = decode_utf16(byte);
    if (text.empty()) return;
    if (text == "\n" || (text == "\r" && ends_ == LineEnds::kNewlineOrCarriageReturn)) {
      give(true, take);
    } else {
      keep(text);
    }
  }
  template <class F>
  void give(bool has_end, F& take) {
    take(TextLine{
        .text = without_return(line_), .offset = line_offset_, .is_too_long = is_too_long_, .has_end = has_end});
    line_.clear();
    is_too_long_ = false;
    line_offset_ = static_cast<std::int64_t>(bytes_);
  }
  void keep(std::string_view text);
  static std::string_view without_return(std::string_view text) {
    if (text.ends_with('\r')) text.remove_suffix(1);
    return text;
  }

  std::size_t line_bytes_max_;
  LineEnds ends_;
  Encoding encoding_ = Encoding::kUnknown;
  std::string head_;       // the first bytes, until the encoding is known
  std::size_t moved_ = 0;  // of the current chunk, to head_
  std::string line_;
  std::int64_t line_offset_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t unit_ = 0;       // of UTF-16
  std::uint32_t surrogate_ = 0;  // the first half of a pair; 0: none
  bool has_half_unit_ = false;
  bool is_too_long_ = false;
  std::string decoded_;
};

// The first bytes of a file as lines, for sniffing: in UTF-8, without byte order mark.
std::string sniffed_text(ByteView head_untrusted);
// The first line that is neither blank nor a comment ('#'), trimmed: the titles of a table. Empty: there is none.
std::string_view first_row(std::string_view text);
// Whether one of the first `lines_max` lines is of the wanted kind: titles that may stand below a heading.
template <class F>
bool has_line(std::string_view text, int lines_max, F is_wanted) {
  std::string_view line;
  for (int i = 0; i < lines_max && next_line(text, line); ++i) {
    if (is_wanted(line)) return true;
  }
  return false;
}

}  // namespace hotlap
