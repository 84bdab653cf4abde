#pragma once
// How recorded things look in a terminal or a pipe: tables, times, states. Whatever was recorded is foreign text: it is
// cleaned here before it is printed.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "model/run.h"

namespace hotlap {

// Without control characters, on one line, and valid UTF-8.
std::string one_line(std::string_view text_untrusted);
// At most `columns` columns, with "…" where it was cut; 0: uncut.
std::string cut_to(std::string_view line, std::size_t columns);
// Columns of a terminal that `text` takes, one per code point.
std::size_t columns_of(std::string_view text);

// Local time: "2026-11-30 21:18:02"; "?" when it is not known (below 0).
std::string shown_wall_time(std::int64_t wall_ns);
// "running", "finished", "failed, exit 3", "killed by signal 9", "ended, exit code not known",
// "end not seen".
std::string shown_status(RunStatus status, const RunInfo& info);
// A command line as a person would type it: words with spaces or quotes in quotes, cleaned.
std::string shown_command(const std::vector<std::string>& words_untrusted);

// Columns of a terminal on standard output; 0 when it is none, or does not say.
std::size_t terminal_columns(const Streams& streams);

// Bold on a terminal without NO_COLOR, else as it is.
class Ink {
 public:
  Ink(bool is_terminal);  // NOLINT(google-explicit-constructor)
  std::string bold(std::string_view text) const { return painted("1", text); }
  std::string good(std::string_view text) const { return painted("32", text); }
  std::string warn(std::string_view text) const { return painted("33", text); }
  std::string bad(std::string_view text) const { return painted("31", text); }

 private:
  std::string painted(std::string_view code, std::string_view text) const;
  bool is_on_;
};

// Aligned columns, two spaces between them, no trailing blanks. Cells must be cleaned before.
class TextTable {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct Column {
    std::string_view title;
    Align align = Align::kLeft;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);
  // Every line begins with `indent`; the last column is cut so that a line fits `width` columns (0: uncut). Without
  // titles when every title is empty.
  std::string text(std::string_view indent, std::size_t width, const Ink& ink) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hotlap
