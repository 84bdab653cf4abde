#include "view/fail_on.h"

#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "view/run_figures.h"

namespace hotlap {
namespace {

constexpr std::string_view kExample = "it takes such as 'step_ms>+5%', 'samples_per_s<-2%' or 'gpu_busy_pct<90'";

Error bad(std::string_view condition, std::string_view why) {
  return {ErrorCode::kInvalidInput,
          format("--fail-on '{}': {}; {}", strip_control(to_valid_utf8(condition)), why, kExample)};
}

Result<std::size_t> figure_of(std::string_view condition, std::string_view name) {
  if (const auto found = find_figure(name)) return *found;
  std::vector<std::string_view> names;
  for (const FigureDesc& figure : figure_descriptions()) names.push_back(figure.name);
  const std::string_view nearest = nearest_text(name, names);
  const std::string shown = strip_control(to_valid_utf8(name));
  if (!nearest.empty()) {
    return Error{ErrorCode::kInvalidInput, format("--fail-on '{}': no figure '{}'; did you mean {}?",
                                                  strip_control(to_valid_utf8(condition)), shown, nearest)};
  }
  std::string known;
  for (const std::string_view one : names) known += (known.empty() ? "" : ", ") + std::string(one);
  return Error{ErrorCode::kInvalidInput, format("--fail-on '{}': no figure '{}'; there are: {}",
                                                strip_control(to_valid_utf8(condition)), shown, known)};
}

Result<FailCondition> parse_one(std::string_view text) {
  const std::string_view whole = trim(text);
  if (whole.empty()) return bad(whole, "is empty");
  const std::size_t op = whole.find_first_of("<>");
  if (op == std::string_view::npos) return bad(whole, "has no < or >");
  FailCondition out;
  out.text = strip_control(to_valid_utf8(whole));
  out.is_greater = whole[op] == '>';
  HOTLAP_TRY_ASSIGN(out.figure, figure_of(whole, trim(whole.substr(0, op))));
  std::string_view limit = whole.substr(op + 1);
  if (limit.starts_with('=')) {
    out.is_or_equal = true;
    limit.remove_prefix(1);
  }
  limit = trim(limit);
  const bool is_percent = limit.ends_with('%');
  if (is_percent) limit = trim(limit.substr(0, limit.size() - 1));
  const bool is_signed = limit.starts_with('+') || limit.starts_with('-');
  const auto number = parse_f64(limit.starts_with('+') ? limit.substr(1) : limit);
  if (!number || !std::isfinite(*number) || limit.starts_with("+-") || limit.starts_with("++")) {
    return bad(whole, format("'{}' is no number", strip_control(to_valid_utf8(limit))));
  }
  if (is_percent && !is_signed) return bad(whole, "a change in percent has a sign: +5% or -5%");
  out.limit = *number;
  out.limit_kind = is_percent  ? FailCondition::Limit::kChangePct
                   : is_signed ? FailCondition::Limit::kChange
                               : FailCondition::Limit::kValue;
  return out;
}

}  // namespace

Result<std::vector<FailCondition>> parse_fail_on(std::string_view text_untrusted) {
  std::vector<FailCondition> out;
  for (const std::string_view one : split(text_untrusted, ',')) {
    HOTLAP_TRY_ASSIGN(FailCondition condition, parse_one(one));
    out.push_back(std::move(condition));
  }
  return out;
}

}  // namespace hotlap
