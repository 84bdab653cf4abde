#include "ingest/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/format.h"

namespace hotlap {
namespace {

// "offset:text", with a mark for a line that is too long or has no end.
std::vector<std::string> cut(std::string_view content, std::size_t chunk_bytes, LineEnds ends = LineEnds::kNewline,
                             std::size_t line_bytes_max = 100) {
  std::vector<std::string> lines;
  LineCutter cutter(line_bytes_max, ends);
  const auto take = [&](const TextLine& line) {
    lines.push_back(format("{}:{}{}{}", line.offset, line.text, line.is_too_long ? " (too long)" : "",
                           line.has_end ? "" : " (no end)"));
  };
  for (std::size_t at = 0; at < content.size(); at += chunk_bytes) {
    cutter.push(as_bytes(content.substr(at, chunk_bytes)), take);
  }
  cutter.finish(take);
  EXPECT_EQ(cutter.bytes(), content.size());
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineCutter, AnyChunksGiveTheSameLines) {
  const std::string content = "a\r\n\nbcd\nlast";
  const Lines expected{"0:a", "3:", "4:bcd", "8:last (no end)"};
  for (std::size_t chunk = 1; chunk <= content.size(); ++chunk) EXPECT_EQ(cut(content, chunk), expected) << chunk;
}

TEST(LineCutter, OfALineThatIsTooLongOnlyTheBeginningIsKept) {
  const std::string content = "ab\n" + std::string(1000, 'x') + "\ncd\n" + std::string(7, 'y');
  for (const std::size_t chunk : {1U, 7U, 5000U}) {
    EXPECT_EQ(cut(content, chunk, LineEnds::kNewline, 5),
              (Lines{"0:ab", "3:xxxxx (too long)", "1004:cd", "1007:yyyyy (too long) (no end)"}));
  }
}

TEST(LineCutter, ProgressBarsEndTheirLinesWithAReturn) {
  EXPECT_EQ(cut("1%\r2%\r\n3%", 1, LineEnds::kNewlineOrCarriageReturn), (Lines{"0:1%", "3:2%", "6:", "7:3% (no end)"}));
}

TEST(LineCutter, ByteOrderMarksAreNotText) {
  for (const std::size_t chunk : {1U, 2U, 100U}) {
    EXPECT_EQ(cut("\xEF\xBB\xBF"
                  "a\nb\n",
                  chunk),
              (Lines{"3:a", "5:b"}));
  }
}

TEST(LineCutter, Utf16IsReadAsText) {
  // "é\n" and a pair of surrogates (U+1F600), little and big; a second half alone is no character.
  const std::string little("\xFF\xFE\xE9\x00\r\x00\n\x00\x3D\xD8\x00\xDE\n\x00\x00\xDE", 16);
  const std::string big("\xFE\xFF\x00\xE9\x00\r\x00\n\xD8\x3D\xDE\x00\x00\n\xDE\x00", 16);
  const Lines expected{"2:\xC3\xA9", "8:\xF0\x9F\x98\x80", "14:\xEF\xBF\xBD (no end)"};
  for (const std::size_t chunk : {1U, 3U, 100U}) {
    EXPECT_EQ(cut(little, chunk), expected);
    EXPECT_EQ(cut(big, chunk), expected);
  }
}

TEST(LineCutter, ShortInputs) {
  EXPECT_EQ(cut("", 1), Lines{});
  EXPECT_EQ(cut("a", 1), Lines{"0:a (no end)"});
  EXPECT_EQ(cut("\n\n", 1), (Lines{"0:", "1:"}));
}

}  // namespace
}  // namespace hotlap
