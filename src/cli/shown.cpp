#include "cli/shown.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include "base/check.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"

namespace hotlap {

std::string one_line(std::string_view text_untrusted) {
  std::string line = strip_control(to_valid_utf8(text_untrusted));
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

std::size_t columns_of(std::string_view text) {
  const auto begins_code_point = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_code_point));
}

std::string cut_to(std::string_view line, std::size_t columns) {
  if (columns == 0 || columns_of(line) <= columns) return std::string(line);
  std::size_t end = 0;
  for (std::size_t seen = 0; end < line.size(); ++end) {
    if ((static_cast<unsigned char>(line[end]) & 0xC0U) != 0x80U && ++seen == columns) break;
  }
  return std::string(line.substr(0, end)) + "…";
}

std::string shown_wall_time(std::int64_t wall_ns) {
  if (wall_ns < 0) return "?";
  const std::time_t seconds = wall_ns / kNsPerS;
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "?";
  return format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                local.tm_hour, local.tm_min, local.tm_sec);
}

std::string shown_status(RunStatus status, const RunInfo& info) {
  if (status == RunStatus::kUnknown) return "end not seen";
  if (status == RunStatus::kEnded) return "ended, exit code not known";
  if (info.exit_signal) return format("killed by signal {}", *info.exit_signal);
  if (status == RunStatus::kFailed && info.exit_code) return format("failed, exit {}", *info.exit_code);
  return std::string(to_string(status));
}

std::string shown_command(const std::vector<std::string>& words_untrusted) {
  std::string out;
  for (const std::string& word : words_untrusted) {
    const std::string clean = one_line(word);
    const bool is_plain = !clean.empty() && clean.find_first_of(" '\"\\$`;&|<>()*?[]#~") == std::string::npos;
    if (!out.empty()) out += ' ';
    if (is_plain) {
      out += clean;
      continue;
    }
    out += '\'';
    for (const char c : clean) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

std::size_t terminal_columns(const Streams& streams) {
  if (!streams.out_is_terminal) return 0;
  struct winsize size {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Ink::Ink(bool is_terminal) : is_on_(is_terminal) {
  const char* no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): nothing of ours sets variables
  const char* term = std::getenv("TERM");          // NOLINT(concurrency-mt-unsafe)
  if (no_color != nullptr && *no_color != '\0') is_on_ = false;
  if (term != nullptr && std::string_view(term) == "dumb") is_on_ = false;
}

std::string Ink::painted(std::string_view code, std::string_view text) const {
  return is_on_ ? format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

void TextTable::add(std::vector<std::string> cells) {
  HOTLAP_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(std::string_view indent, std::size_t width, const Ink& ink) const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    titles.emplace_back(columns_[c].title);
    widths.push_back(columns_of(titles[c]));
    for (const std::vector<std::string>& row : rows_) widths[c] = std::max(widths[c], columns_of(row[c]));
  }
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line(indent);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string blanks(widths[c] - std::min(widths[c], columns_of(cells[c])), ' ');
      line += columns_[c].align == Align::kRight ? blanks + cells[c] : cells[c] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return cut_to(line, width);
  };
  std::string out;
  const bool has_titles = std::any_of(titles.begin(), titles.end(), [](const std::string& t) { return !t.empty(); });
  if (has_titles) out += ink.bold(line_of(titles)) + "\n";
  for (const std::vector<std::string>& row : rows_) out += line_of(row) + "\n";
  return out;
}

}  // namespace hotlap
