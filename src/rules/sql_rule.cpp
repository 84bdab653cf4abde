#include "rules/sql_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "rules/registry.h"

namespace hotlap {
namespace {

constexpr std::size_t kIdBytesMax = 64;
constexpr std::size_t kTextBytesMax = 1'000;  // of a cause, an advice, a text of evidence
constexpr std::array<std::string_view, 6> kKeys{"id", "severity", "needs", "cause", "advice", "title"};

std::string clipped(std::string_view text_untrusted) {
  std::string text = strip_control(to_valid_utf8(text_untrusted.substr(0, kTextBytesMax)));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool is_rule_id(std::string_view text) {
  if (text.size() < 2 || text.size() > kIdBytesMax || !(text[0] >= 'A' && text[0] <= 'Z')) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

template <class T>
std::optional<T> named(std::string_view text, std::initializer_list<T> values) {
  for (const T value : values) {
    if (to_string(value) == text) return value;
  }
  return std::nullopt;
}
std::optional<Severity> severity_of(std::string_view text) {
  return named(text, {Severity::kInfo, Severity::kWarning, Severity::kCritical});
}
std::optional<Certainty> certainty_of(std::string_view text) {
  return named(text, {Certainty::kPossible, Certainty::kLikely, Certainty::kCertain});
}

// What is wrong with the entry; empty: nothing.
std::string take_entry(std::string_view key, std::string_view value, SqlRule& rule) {
  if (value.empty()) return format("{} has no value", key);
  if (key == "id") {
    if (!is_rule_id(value)) return format("the id '{}' is not in PascalCase, such as SlowTail", clipped(value));
    for (const RuleSpec* known : all_rules()) {
      if (known->id == value) return format("{} is a rule of hotlap's own: take another id", value);
    }
    rule.id = std::string(value);
  } else if (key == "severity") {
    const auto severity = severity_of(value);
    if (!severity) return format("the severity '{}' is not info, warning or critical", clipped(value));
    rule.severity = *severity;
  } else if (key == "needs") {
    for (const std::string_view need : split(value, ',')) {
      if (!trim(need).empty()) rule.needs.push_back(clipped(trim(need)));
    }
  } else if (key == "advice") {
    rule.advice.push_back(clipped(value));
  } else {
    rule.cause = clipped(value);
  }
  return {};
}

std::optional<double> number_of(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&cell);
  return real != nullptr && std::isfinite(*real) ? std::optional(*real) : std::nullopt;
}
std::optional<std::int64_t> whole_of(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
  const auto number = number_of(cell);
  if (!number || std::abs(*number) > 9e18) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}
std::string text_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) return clipped(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return format("{}", *whole);
  const auto number = number_of(cell);
  return number ? format("{:.4g}", *number) : std::string();
}

void take_cell(std::string_view name, const Cell& cell, Finding& finding, Advice& advice) {
  if (std::holds_alternative<std::monostate>(cell)) return;
  if (name == "cause") {
    finding.cause = text_of(cell);
  } else if (name == "why") {
    finding.why.push_back(text_of(cell));
  } else if (name == "certainty") {
    finding.certainty = certainty_of(text_of(cell)).value_or(finding.certainty);
  } else if (name == "severity") {
    finding.severity = severity_of(text_of(cell)).value_or(finding.severity);
  } else if (name == "lost_s") {
    finding.lost_s = number_of(cell);
  } else if (name == "lost_pct") {
    finding.lost_pct = number_of(cell);
  } else if (name == "from_ns") {
    finding.from_ns = whole_of(cell).value_or(finding.from_ns);
  } else if (name == "to_ns") {
    finding.to_ns = whole_of(cell).value_or(finding.to_ns);
  } else if (name == "node") {
    finding.where.node = text_of(cell);
  } else if (name == "rank") {
    const auto rank = whole_of(cell);
    if (rank && *rank >= 0 && *rank <= INT32_MAX) finding.where.rank = static_cast<std::int32_t>(*rank);
  } else if (name == "device") {
    finding.where.device = text_of(cell);
  } else if (name == "process") {
    finding.where.process = text_of(cell);
  } else if (name == "advice") {
    advice.change = text_of(cell);
  } else if (name == "step_ms_low") {
    advice.step_ms_low = number_of(cell);
  } else if (name == "step_ms_high") {
    advice.step_ms_high = number_of(cell);
  } else if (const auto number = number_of(cell)) {
    finding.evidence.emplace(clipped(name), *number);
    finding.why.push_back(format("{} {}", clipped(name), text_of(cell)));
  } else {
    finding.evidence.emplace(clipped(name), text_of(cell));
    finding.why.push_back(format("{} {}", clipped(name), text_of(cell)));
  }
}

}  // namespace

Result<SqlRule> parse_sql_rule(std::string_view text_untrusted, std::string_view file_name) {
  const std::string file = clipped(file_name);
  const auto wrong = [&](int line, const std::string& why) {
    return Error{ErrorCode::kInvalidInput,
                 line > 0 ? format("{}:{}: {}", file, line, why) : format("{}: {}", file, why)};
  };
  if (text_untrusted.size() > kSqlRuleBytesMax) return wrong(0, format("is larger than {} bytes", kSqlRuleBytesMax));
  if (text_untrusted.find('\0') != std::string_view::npos) return wrong(0, "is not a text");
  SqlRule rule;
  rule.file = file;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // editors of Windows write it
  if (text_untrusted.starts_with(kByteOrderMark)) text_untrusted.remove_prefix(kByteOrderMark.size());
  rule.sql = to_valid_utf8(text_untrusted);
  std::string_view rest(rule.sql);
  int number = 0;
  // The header is the comments before the query.
  for (std::string_view line; next_line(rest, line);) {
    ++number;
    line = trim(line);
    if (line.empty()) continue;
    if (!line.starts_with("--")) break;
    line = trim(
        line.substr(line.find_first_not_of('-') == std::string_view::npos ? line.size() : line.find_first_not_of('-')));
    const std::size_t colon = line.find(':');
    const std::string_view key = trim(line.substr(0, colon));
    const bool is_entry = colon != std::string_view::npos && !key.empty() && key.find(' ') == std::string_view::npos;
    if (!is_entry) continue;
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      const std::string_view nearest = nearest_text(key, kKeys);
      return wrong(number, format("the header has no '{}'{}", clipped(key),
                                  nearest.empty() ? std::string("; it has id, severity, needs, cause, advice")
                                                  : format("; did you mean {}?", nearest)));
    }
    if (const std::string why = take_entry(key, trim(line.substr(colon + 1)), rule); !why.empty()) {
      return wrong(number, why);
    }
  }
  if (rule.id.empty()) return wrong(0, "the header has no id: -- id: SlowTail");
  return rule;
}

Result<void> SqlRuleRows::row(std::span<const Cell> cells) {
  if (findings_.size() >= kSqlRuleFindingsMax) {
    ++left_out_;
    return {};
  }
  Finding finding;
  finding.rule = rule_.id;
  finding.severity = rule_.severity;
  finding.certainty = Certainty::kPossible;
  finding.from_ns = from_ns_;
  finding.to_ns = to_ns_;
  finding.cause = rule_.cause.empty() ? rule_.id : rule_.cause;
  Advice advice;
  for (std::size_t i = 0; i < cells.size() && i < names_.size(); ++i) take_cell(names_[i], cells[i], finding, advice);
  if (finding.lost_pct) finding.lost_pct = std::clamp(*finding.lost_pct, 0.0, 100.0);
  if (finding.lost_s && *finding.lost_s < 0) finding.lost_s.reset();
  // Half a range is none.
  const bool is_range = advice.step_ms_low && advice.step_ms_high && *advice.step_ms_low > 0 &&
                        *advice.step_ms_high >= *advice.step_ms_low;
  if (!is_range) {
    advice.step_ms_low.reset();
    advice.step_ms_high.reset();
  }
  if (advice.change.empty() && !rule_.advice.empty()) advice.change = rule_.advice.front();
  if (!advice.change.empty()) finding.advice.push_back(advice);
  for (std::size_t i = 1; i < rule_.advice.size(); ++i) {
    finding.advice.push_back(
        {.change = rule_.advice[i], .step_ms_low = {}, .step_ms_high = {}, .note = {}, .gain = {}});
  }
  findings_.push_back(std::move(finding));
  return {};
}

}  // namespace hotlap
