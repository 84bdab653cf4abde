#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "cli/parse.h"

namespace hotlap {
namespace {

struct Row {
  std::string left;
  std::string right;
};

constexpr std::size_t kLeftMax = 26;  // a longer left side pushes its text to the next line
constexpr std::size_t kWidth = 100;

// Continues `text` at column `indent`, breaking at spaces.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (true) {
    const std::string_view word = next_word(text);
    if (word.empty()) return out;
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
}

std::string table(const std::vector<Row>& rows) {
  std::size_t left = 0;
  for (const Row& row : rows) {
    if (row.left.size() <= kLeftMax) left = std::max(left, row.left.size());
  }
  const std::size_t indent = left + 4;
  std::string out;
  for (const Row& row : rows) {
    out += "  " + row.left;
    if (row.left.size() > left) {
      out += "\n" + std::string(indent, ' ');
    } else {
      out += std::string(indent - 2 - row.left.size(), ' ');
    }
    out += wrapped(row.right, indent) + "\n";
  }
  return out;
}

}  // namespace

std::string flag_heading(const FlagSpec& flag) {
  std::string out;
  for (const std::string_view spelling : flag_spellings(flag)) {
    if (!out.empty()) out += ", ";
    out += spelling;
  }
  if (flag.type != FlagType::kSwitch) out += " " + std::string(flag.placeholder.empty() ? "VALUE" : flag.placeholder);
  return out;
}

std::string flag_range(const FlagSpec& flag) {
  if (flag.min == flag.max) return {};
  if (flag.type == FlagType::kDuration) {
    return format(" ({} to {})", format_duration(static_cast<std::int64_t>(flag.min)),
                  format_duration(static_cast<std::int64_t>(flag.max)));
  }
  return format(" ({:.15g} to {:.15g})", flag.min, flag.max);
}

std::string command_usage(const CommandSpec& spec) {
  std::string out = format("hotlap {}", spec.name);
  if (!spec.flags.empty()) out += " [flags]";
  for (const PositionalSpec& positional : spec.positionals) {
    std::string word(positional.name);
    if (positional.is_repeated && !word.ends_with("…")) word += "…";
    if (positional.takes_rest) word = "-- " + word + (word.ends_with("…") ? "" : "…");
    out += positional.is_required ? " " + word : " [" + word + "]";
  }
  return out;
}

std::string command_help(const CommandSpec& spec) {
  std::string out = format("{}\n\nUsage:   {}\nExample: {}\n", spec.summary, command_usage(spec), spec.example);
  if (!spec.help.empty()) out += format("\n{}\n", trim(spec.help));
  std::vector<Row> rows;
  for (const PositionalSpec& positional : spec.positionals) {
    rows.push_back({std::string(positional.name), std::string(positional.help)});
  }
  if (!rows.empty()) out += "\nArguments:\n" + table(rows);
  rows.clear();
  for (const FlagSpec& flag : spec.flags)
    rows.push_back({flag_heading(flag), std::string(flag.help) + flag_range(flag)});
  rows.push_back({"-h, --help", "this text"});
  return out + "\nFlags:\n" + table(rows);
}

std::string program_help(std::span<const CommandSpec* const> commands) {
  std::string out =
      "hotlap records a training job without a change to its code and says what holds it back.\n"
      "\n"
      "  hotlap run -- python train.py    record a job; the verdict comes while it runs and at the end\n"
      "  hotlap why                       the verdict of the last run again\n"
      "\n"
      "Commands:\n";
  std::vector<Row> rows;
  for (const CommandSpec* spec : commands) {
    if (!spec->is_hidden) rows.push_back({std::string(spec->name), std::string(spec->summary)});
  }
  return out + table(rows) +
         "\n"
         "A RUN is an id, the start of an id, a name, a path, or \"last\".\n"
         "hotlap COMMAND --help shows a command's flags with an example.\n"
         "Exit codes: 0 success, 1 failed, 2 wrong use, 3 --fail-on holds; run returns the job's own code.\n";
}

}  // namespace hotlap
