// A comparison of traces as text and JSON.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "view/trace_comparison.h"

namespace hotlap {
namespace {

constexpr std::size_t kRowsShown = 10;  // of a table; all of them are in the JSON
constexpr std::size_t kNameColumns = 58;

std::string clean(std::string_view text) {
  std::string out = strip_control(to_valid_utf8(text));
  std::ranges::replace(out, '\n', ' ');
  return out;
}

std::string short_name(std::string_view name) {
  std::string text = clean(name);
  if (text.empty()) return "(no operator)";
  return text.size() <= kNameColumns ? text : to_valid_utf8(text.substr(0, kNameColumns - 3)) + "...";
}

std::string percent_text(double before, double after) {
  return before > 0 ? format("{:+.0f} %", 100 * (after / before - 1)) : "";
}

std::string time_line(const ComparedTime& time) {
  const auto side = [](std::optional<double> ms) { return ms ? format("{:.2f}", *ms) : std::string("missing"); };
  std::string line = format("  {:<36} {:>10} -> {:>10} ms", time.name, side(time.before_ms), side(time.after_ms));
  if (time.before_ms && time.after_ms) line += format("  {:>7}", percent_text(*time.before_ms, *time.after_ms));
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::string row_line(const ComparedRow& row) {
  std::string line = format("  {:<6} {:>+9.3f} ms  {:>9.3f} -> {:>9.3f}", to_string(row.change), row.difference_ms(),
                            row.before_ms, row.after_ms);
  if (row.before_calls != row.after_calls) {
    line += format("  calls {:.4g} -> {:.4g}", row.before_calls, row.after_calls);
  }
  return line + "  " + short_name(row.name);
}

}  // namespace

std::string trace_comparison_text(const TraceComparison& c) {
  std::string out;
  if (!c.times.empty() && c.times.front().before_ms && c.times.front().after_ms) {
    const ComparedTime& first = c.times.front();
    out += format("{} {:.1f} -> {:.1f} ms{}: two traces, no interval\n\n", c.is_per_step ? "step" : "devices",
                  *first.before_ms, *first.after_ms, ", " + percent_text(*first.before_ms, *first.after_ms));
  }
  out += format("Before: {}\nAfter:  {}\nTimes are {}\n\n", clean(c.before), clean(c.after),
                c.is_per_step ? "per step" : "of the whole trace");
  for (const ComparedTime& time : c.times) {
    if (time.before_ms.value_or(0) < 0.005 && time.after_ms.value_or(0) < 0.005) continue;
    out += time_line(time) + "\n";
  }
  for (const ComparedTable& table : c.tables) {
    if (table.rows.empty()) continue;
    out += "\n" + table.title + "\n";
    for (std::size_t i = 0; i < table.rows.size() && i < kRowsShown; ++i) out += row_line(table.rows[i]) + "\n";
    if (table.rows.size() > kRowsShown) out += format("  and {} more (--json)\n", table.rows.size() - kRowsShown);
    if (table.unchanged > 0) out += format("  {} without a difference worth a line\n", table.unchanged);
    if (table.is_cut) out += "  the tables were cut: something small may be said to be added or gone\n";
  }
  return out;
}

std::string trace_comparison_json(const TraceComparison& c) {
  JsonWriter w(JsonWriter::Style::kPretty);
  w.begin_object().field("schema", kTraceComparisonSchema).field("before", std::string_view(c.before));
  w.field("after", std::string_view(c.after)).field("per_step", c.is_per_step);
  w.key("times").begin_array();
  for (const ComparedTime& time : c.times) {
    w.begin_object().field("name", trim(time.name));
    w.field("before_ms", time.before_ms).field("after_ms", time.after_ms).end_object();
  }
  w.end_array().key("tables").begin_array();
  for (const ComparedTable& table : c.tables) {
    w.begin_object().field("fact", std::string_view(table.kind)).key("rows").begin_array();
    for (const ComparedRow& row : table.rows) {
      w.begin_object().field("name", std::string_view(row.name)).field("change", to_string(row.change));
      w.field("before_ms", row.before_ms).field("after_ms", row.after_ms);
      w.field("before_calls", row.before_calls).field("after_calls", row.after_calls).end_object();
    }
    w.end_array().field("unchanged", table.unchanged).field("cut", table.is_cut).end_object();
  }
  w.end_array().end_object();
  return w.take() + "\n";
}

}  // namespace hotlap
