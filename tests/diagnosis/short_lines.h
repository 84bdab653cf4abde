#pragma once
// What people can read at a glance: the fixed grammar of view/verdict_text.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "view/verdict_text.h"

namespace hotlap {

// At most five parts, none of them over many lines, no line too wide.
inline void expect_short_lines(std::string_view verdict) {
  int parts = 0;
  int lines = 0;
  for (std::string_view line; next_line(verdict, line); ++lines) {
    const auto columns = std::ranges::count_if(line, [](unsigned char c) { return (c & 0xC0U) != 0x80U; });
    EXPECT_LE(columns, static_cast<std::ptrdiff_t>(kVerdictColumns)) << line;
    if (!line.starts_with("        ")) ++parts;
  }
  EXPECT_LE(parts, 5);
  EXPECT_LE(lines, 8);
}

}  // namespace hotlap
