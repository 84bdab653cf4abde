#pragma once
// Foreign text in Markdown: nothing in it means anything there, and it stays on its line.
#include <string>
#include <string_view>

#include "base/text.h"

namespace hotlap {

inline std::string markdown_text(std::string_view text_untrusted) {
  std::string out;
  for (const char c : strip_control(to_valid_utf8(text_untrusted))) {
    const bool is_blank = c == '\n' || c == '\t';
    if (std::string_view("|\\`*_<>[]#").find(c) != std::string_view::npos) out += '\\';
    out += is_blank ? ' ' : c;
  }
  return out;
}

// As code, in a cell of a table too: no backtick ends it, no bar cuts it.
inline std::string markdown_code(std::string_view text_untrusted) {
  std::string out = "`";
  for (const char c : strip_control(to_valid_utf8(text_untrusted))) {
    if (c == '|') out += '\\';
    out += c == '`' ? '\'' : c == '\n' || c == '\t' ? ' ' : c;
  }
  return out + "`";
}

}  // namespace hotlap
