// A comparison as text, Markdown, JUnit and JSON.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cost/price.h"
#include "rules/words.h"
#include "view/change.h"
#include "view/comparison.h"

namespace hotlap {
namespace {

std::string clean(std::string_view text) {
  std::string out = strip_control(to_valid_utf8(text));
  std::replace(out.begin(), out.end(), '\n', ' ');
  std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

// One digit more than a finding has: differences of a percent are what this is about.
std::string number_text(double value) {
  const double size = std::abs(value);
  return size >= 10 ? format("{:.1f}", value) : size >= 1 ? format("{:.2f}", value) : figure(value);
}

std::string value_text(const ComparedFigure& compared, double value) {
  const std::string_view unit = compared.unit;
  if (unit == "By") return format_bytes(value);
  // A step costs parts of a cent.
  if (compared.desc->unit == "$" && value > 0 && value < 0.01) return format("{} {:.3g}", unit, value);
  if (compared.desc->unit == "$") return format_money(value, unit);
  const std::string number = number_text(value);
  return unit.starts_with('{') ? number : format("{} {}", number, unit);
}

std::string side_text(const ComparedFigure& compared, const std::optional<Measured>& side) {
  if (!side) return "missing";
  std::string text = value_text(compared, side->value);
  if (side->half_width && side->value > 0) {
    // In percent of a mean, in points of a share.
    const bool is_share = compared.desc->scale == ChangeScale::kPoints;
    text += is_share ? format(" +/- {}", figure(*side->half_width))
                     : format(" +/- {} %", figure(100 * *side->half_width / side->value));
  }
  return text;
}

std::string change_text(const ComparedFigure& compared) {
  if (!compared.change) return {};
  const Change& change = *compared.change;
  const std::string_view unit = compared.desc->scale == ChangeScale::kPercent ? "%" : "points";
  return format("{} {} ({} to {})", change_figure(change.change), unit, change_figure(change.low),
                change_figure(change.high));
}

std::string run_line(const ComparedRun& run) {
  return format("{}  {}  {}, {} steps", clean(run.id), clean(run.name), run.is_live ? "running" : run.status,
                shown_count(static_cast<std::uint64_t>(std::max<std::int64_t>(run.steps, 0))));
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += " " + row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - columns_of(row[i]) + 1, ' ');
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

// What nobody measured on either side is named together below the table.
bool is_on_neither(const ComparedFigure& compared) { return !compared.before && !compared.after; }

std::string prediction_text(const Prediction& prediction) {
  return format("predicted for {}: {}-{} ms, {}", clean(prediction.change), figure(prediction.step_ms_low),
                figure(prediction.step_ms_high), prediction.place);
}

std::string condition_text(const CheckedCondition& condition) {
  const std::string_view state = !condition.holds ? "not checked" : *condition.holds ? "holds" : "does not hold";
  return format("--fail-on {}: {}; {}", condition.text, state, clean(condition.why));
}

std::string to_text(const Comparison& c) {
  std::string out;
  for (const ComparedRun& run : c.before) out += "before  " + run_line(run) + "\n";
  for (const ComparedRun& run : c.after) out += "after   " + run_line(run) + "\n";
  if (!c.refusal.empty()) {
    out += format("not comparable: {}\n", clean(c.refusal));
  } else {
    out += headline_text(c) + "\n";
    if (c.prediction) out += prediction_text(*c.prediction) + "\n";
    out += "\n";
    std::vector<std::vector<std::string>> rows{{"", "before", "after", "change", ""}};
    for (const ComparedFigure& one : c.figures) {
      if (is_on_neither(one)) continue;
      rows.push_back({std::string(one.desc->title), side_text(one, one.before), side_text(one, one.after),
                      one.change ? change_text(one) : clean(one.missing), one.word});
    }
    out += table_text(rows);
    for (const ComparedFigure& one : c.figures) {
      if (is_on_neither(one)) out += format("  {}: missing, {}\n", one.desc->title, clean(one.missing));
    }
  }
  if (!c.settings.empty()) {
    out += "\nDifferent settings\n";
    std::vector<std::vector<std::string>> rows;
    for (const SettingDifference& one : c.settings) {
      rows.push_back({one.area, clean(one.name), format("{} -> {}", clean(one.before), clean(one.after))});
    }
    out += table_text(rows);
  } else {
    out += "\nDifferent settings: none found\n";
  }
  if (!c.notes.empty()) out += "\n";
  for (const std::string& note : c.notes) out += clean(note) + "\n";
  for (const std::string& problem : c.problems) out += "not readable: " + clean(problem) + "\n";
  for (const CheckedCondition& condition : c.conditions) out += condition_text(condition) + "\n";
  return out;
}

// Inside a cell: no line ends, no bars, nothing that Markdown or HTML takes for its own.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : clean(text)) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<' || c == '[' || c == ']') out += '\\';
    out += c;
  }
  return out;
}

std::string to_markdown(const Comparison& c) {
  std::string out = "## hotlap compare\n\n";
  if (!c.refusal.empty()) {
    out += format("**Not comparable**: {}\n", cell(c.refusal));
  } else {
    out += format("**{}**\n", cell(headline_text(c)));
    if (c.prediction) out += "\n" + cell(prediction_text(*c.prediction)) + "\n";
    out += "\n| | before | after | change | |\n|---|---|---|---|---|\n";
    for (const ComparedFigure& one : c.figures) {
      const bool is_bad = one.word == "worse";
      out += format("| {} | {} | {} | {} | {} |\n", cell(one.desc->title), cell(side_text(one, one.before)),
                    cell(side_text(one, one.after)), cell(one.change ? change_text(one) : one.missing),
                    is_bad ? "**worse**" : one.word);
    }
  }
  out += "\n| | run | name | state | steps |\n|---|---|---|---|---|\n";
  for (const auto& [side, runs] : {std::pair{"before", &c.before}, std::pair{"after", &c.after}}) {
    for (const ComparedRun& run : *runs) {
      out += format("| {} | {} | {} | {} | {} |\n", side, cell(run.id), cell(run.name),
                    run.is_live ? "running" : run.status, run.steps);
    }
  }
  if (c.settings.empty()) {
    out += "\nDifferent settings: none found.\n";
  } else {
    out += "\n| different setting | | before | after |\n|---|---|---|---|\n";
    for (const SettingDifference& one : c.settings) {
      out += format("| {} | {} | {} | {} |\n", one.area, cell(one.name), cell(one.before), cell(one.after));
    }
  }
  if (!c.notes.empty() || !c.problems.empty() || !c.conditions.empty()) out += "\n";
  for (const std::string& note : c.notes) out += "- " + cell(note) + "\n";
  for (const std::string& problem : c.problems) out += "- not readable: " + cell(problem) + "\n";
  for (const CheckedCondition& condition : c.conditions) out += "- " + cell(condition_text(condition)) + "\n";
  return out;
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : clean(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// Every condition is a test case; without conditions every figure is one, and a worse figure is still no failure: what
// may get worse by how much is for --fail-on to say.
std::string to_junit(const Comparison& c) {
  std::string cases;
  std::size_t count = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
  for (const CheckedCondition& one : c.conditions) {
    ++count;
    cases += format("  <testcase classname=\"hotlap.compare\" name=\"{}\">", xml(one.text));
    if (!one.holds) {
      ++errors;
      cases += format("<error message=\"{}\"/>", xml(one.why));
    } else if (*one.holds) {
      ++failures;
      cases += format("<failure message=\"{}\"/>", xml(one.why));
    } else {
      cases += format("<system-out>{}</system-out>", xml(one.why));
    }
    cases += "</testcase>\n";
  }
  if (c.conditions.empty() && !c.refusal.empty()) {
    ++count;
    ++errors;
    cases += format("  <testcase classname=\"hotlap.compare\" name=\"comparable\"><error message=\"{}\"/></testcase>\n",
                    xml(c.refusal));
  }
  for (const ComparedFigure& one : c.conditions.empty() && c.refusal.empty() ? c.figures : decltype(c.figures){}) {
    ++count;
    cases += format("  <testcase classname=\"hotlap.compare\" name=\"{}\">", one.desc->name);
    if (one.change) {
      cases += format("<system-out>{} -> {}: {}, {}</system-out>", xml(side_text(one, one.before)),
                      xml(side_text(one, one.after)), xml(change_text(one)), one.word);
    } else {
      ++skipped;
      cases += format("<skipped message=\"{}\"/>", xml(one.missing));
    }
    cases += "</testcase>\n";
  }
  return format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"hotlap compare\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      count, failures, errors, skipped, cases);
}

void write_side(JsonWriter& w, const std::optional<Measured>& side) {
  if (!side) {
    w.null();
    return;
  }
  w.begin_object().field("value", side->value).field("half_width", side->half_width).end_object();
}

void text_or_null(JsonWriter& w, std::string_view name, std::string_view text) {
  w.key(name);
  text.empty() ? w.null() : w.value(text);
}

void write_figure(JsonWriter& w, const ComparedFigure& one) {
  constexpr std::string_view kBetter[] = {"lower", "higher", "neither"};
  w.begin_object().field("figure", one.desc->name).field("unit", std::string_view(one.unit));
  w.field("better", kBetter[static_cast<std::size_t>(one.desc->better)]);
  w.key("before");
  write_side(w, one.before);
  w.key("after");
  write_side(w, one.after);
  w.key("change");
  if (one.change) {
    w.begin_object().field("scale", one.desc->scale == ChangeScale::kPercent ? "percent" : "points");
    w.field("value", one.change->change).field("low", one.change->low).field("high", one.change->high);
    w.field("interval", one.change->is_between_runs ? "between runs" : "within runs").end_object();
  } else {
    w.null();
  }
  text_or_null(w, "word", one.word);
  text_or_null(w, "missing", one.missing);
  w.end_object();
}

std::string to_json_text(const Comparison& c) {
  JsonWriter w(JsonWriter::Style::kPretty);
  w.begin_object().field("schema", kComparisonSchema).field("comparable", c.refusal.empty());
  text_or_null(w, "refusal", c.refusal);
  for (const auto& [name, runs] : {std::pair{"before", &c.before}, std::pair{"after", &c.after}}) {
    w.key(name).begin_array();
    for (const ComparedRun& run : *runs) {
      w.begin_object().field("id", std::string_view(run.id)).field("name", std::string_view(run.name));
      w.field("status", std::string_view(run.status)).field("live", run.is_live).field("steps", run.steps);
      w.end_object();
    }
    w.end_array();
  }
  w.key("headline");
  if (c.refusal.empty()) {
    const ComparedFigure& headline = c.figures[c.headline];
    w.begin_object().field("figure", headline.desc->name).field("word", std::string_view(headline.word));
    w.field("text", std::string_view(headline_text(c))).end_object();
  } else {
    w.null();
  }
  w.key("figures").begin_array();
  for (const ComparedFigure& one : c.figures) write_figure(w, one);
  w.end_array().key("settings").begin_array();
  for (const SettingDifference& one : c.settings) {
    w.begin_object().field("area", std::string_view(one.area)).field("name", std::string_view(one.name));
    w.field("before", std::string_view(one.before)).field("after", std::string_view(one.after)).end_object();
  }
  w.end_array().key("prediction");
  if (c.prediction) {
    w.begin_object().field("change", std::string_view(c.prediction->change));
    w.field("step_ms_low", c.prediction->step_ms_low).field("step_ms_high", c.prediction->step_ms_high);
    w.field("place", std::string_view(c.prediction->place)).end_object();
  } else {
    w.null();
  }
  w.key("fail_on").begin_array();
  for (const CheckedCondition& one : c.conditions) {
    w.begin_object().field("condition", std::string_view(one.text));
    w.field("holds", one.holds).field("why", std::string_view(one.why)).end_object();
  }
  w.end_array();
  for (const auto& [name, texts] : {std::pair{"notes", &c.notes}, std::pair{"problems", &c.problems}}) {
    w.key(name).begin_array();
    for (const std::string& text : *texts) w.value(std::string_view(text));
    w.end_array();
  }
  w.end_object();
  return w.take() + "\n";
}

}  // namespace

std::string headline_text(const Comparison& c) {
  const ComparedFigure& one = c.figures[c.headline];
  const auto number = [&](double value) { return one.unit == "ms" ? number_text(value) : value_text(one, value); };
  return format("{} {} -> {}{}, {}: {}", one.desc->title, number(one.before->value), number(one.after->value),
                one.unit == "ms" ? " ms" : "", change_text(one), one.word);
}

std::string format_comparison(const Comparison& comparison, ComparisonFormat format) {
  switch (format) {
    case ComparisonFormat::kText: return to_text(comparison);
    case ComparisonFormat::kMarkdown: return to_markdown(comparison);
    case ComparisonFormat::kJunit: return to_junit(comparison);
    case ComparisonFormat::kJson: break;
  }
  return to_json_text(comparison);
}

}  // namespace hotlap
