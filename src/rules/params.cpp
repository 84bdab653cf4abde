#include <algorithm>
#include <variant>

#include "base/check.h"
#include "base/format.h"
#include "base/text.h"
#include "rules/rule.h"

namespace hotlap {
namespace {

Error refused(std::string_view rule, const ParamDesc& desc, std::string_view given) {
  const std::string_view type = desc.type == ParamType::kDuration ? "a duration" : "a number";
  std::string message = format("rule {}: {} is '{}', it takes {}", rule, desc.name, given, type);
  if (desc.min < desc.max) {
    message += desc.type == ParamType::kDuration
                   ? format(" from {} to {}", format_duration(static_cast<std::int64_t>(desc.min)),
                            format_duration(static_cast<std::int64_t>(desc.max)))
                   : format(" from {} to {}{}", desc.min, desc.max, desc.unit == "1" ? "" : format(" {}", desc.unit));
  }
  return Error{ErrorCode::kInvalidInput, message};
}

bool is_in_range(const ParamDesc& desc, double value) {
  return desc.min >= desc.max || (value >= desc.min && value <= desc.max);
}

Result<std::variant<double, std::int64_t, std::string>> value_of(std::string_view rule, const ParamDesc& desc,
                                                                 std::string_view text) {
  using Content = std::variant<double, std::int64_t, std::string>;
  if (desc.type == ParamType::kText) return Content(std::string(text));
  if (desc.type == ParamType::kDuration) {
    const auto ns = parse_duration_ns(text);
    if (!ns || !is_in_range(desc, static_cast<double>(*ns))) return refused(rule, desc, text);
    return Content(*ns);
  }
  const auto number = parse_f64(text);
  if (!number || !is_in_range(desc, *number)) return refused(rule, desc, text);
  return Content(*number);
}

}  // namespace

Result<Params> Params::make(std::string_view rule, std::span<const ParamDesc> descriptions,
                            const std::map<std::string, std::string, std::less<>>& set_by_user) {
  for (const auto& [name, text] : set_by_user) {
    if (std::ranges::find(descriptions, std::string_view(name), &ParamDesc::name) != descriptions.end()) continue;
    std::string known;
    for (const ParamDesc& desc : descriptions) known += (known.empty() ? "" : ", ") + std::string(desc.name);
    return Error{ErrorCode::kInvalidInput,
                 format("rule {} has no parameter '{}'; it has {}", rule, name, known.empty() ? "none" : known)};
  }
  Params params;
  for (const ParamDesc& desc : descriptions) {
    const auto set = set_by_user.find(desc.name);
    const std::string_view text = set == set_by_user.end() ? desc.default_text : std::string_view(set->second);
    HOTLAP_TRY_ASSIGN(auto value, value_of(rule, desc, text));
    params.values_.emplace(desc.name, std::move(value));
  }
  return params;
}

double Params::number(std::string_view name) const {
  const auto found = values_.find(name);
  HOTLAP_CHECK(found != values_.end() && std::holds_alternative<double>(found->second));
  return std::get<double>(found->second);
}

std::int64_t Params::duration_ns(std::string_view name) const {
  const auto found = values_.find(name);
  HOTLAP_CHECK(found != values_.end() && std::holds_alternative<std::int64_t>(found->second));
  return std::get<std::int64_t>(found->second);
}

const std::string& Params::text(std::string_view name) const {
  const auto found = values_.find(name);
  HOTLAP_CHECK(found != values_.end() && std::holds_alternative<std::string>(found->second));
  return std::get<std::string>(found->second);
}

}  // namespace hotlap
