#include "cli/rule_flags.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "cli/options.h"
#include "rules/registry.h"

namespace hotlap {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} << 20U;
constexpr std::size_t kRulesMax = 1000;
constexpr std::string_view kList = "ProfilerRuleConfigurations";
constexpr std::string_view kInvoked = "rule_to_invoke";
constexpr std::string_view kReport = "ProfilerReport";
// Of their machinery: where data lies, how often it is looked at, where results go.
constexpr std::array<std::string_view, 8> kOfTheirs{"rule_to_invoke",  "scan_interval_us",  "base_trial",
                                                    "other_trials",    "opt_out_telemetry", "s3_results_path",
                                                    "profiler_report", "local_path"};

Error invalid(std::string message) { return Error{ErrorCode::kInvalidInput, std::move(message)}; }

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return to_lower(x) == to_lower(y); });
}

// As our rules spell it; theirs are the same but for upper and lower case.
std::string own_spelling(std::string_view rule) {
  for (const RuleSpec* spec : all_rules()) {
    if (same_name(spec->id, rule)) return std::string(spec->id);
  }
  return std::string(rule);
}

std::optional<std::string> value_text(const JsonValue& value) {
  if (auto text = value.text()) return text;
  if (const auto number = value.number()) return format("{:.15g}", *number);
  return std::nullopt;
}

// Of ProfilerReport: "CPUBottleneck_threshold" is the parameter `threshold` of CPUBottleneck.
std::optional<std::pair<std::string, std::string>> of_report(std::string_view name) {
  for (const RuleSpec* spec : all_rules()) {
    if (name.size() <= spec->id.size() + 1 || name[spec->id.size()] != '_') continue;
    if (same_name(name.substr(0, spec->id.size()), spec->id))
      return std::pair(std::string(spec->id), std::string(name.substr(spec->id.size() + 1)));
  }
  return std::nullopt;
}

Result<void> take_rule(const JsonValue& one, const std::string& where, Config& out) {
  const JsonValue params = one["RuleParameters"];
  if (params.exists() && !params.is_object() && !params.is_null())
    return invalid(where + ".RuleParameters: not an object");
  const auto invoked = params.is_object() ? params[kInvoked].text() : one["RuleConfigurationName"].text();
  if (!invoked)
    return invalid(format("{}.RuleParameters.{}: missing; which rule it is for is not said", where, kInvoked));
  const std::string rule = own_spelling(*invoked);
  const bool is_report = same_name(rule, kReport);
  const auto specs = all_rules();
  if (!is_report && std::ranges::none_of(specs, [&](const RuleSpec* spec) { return spec->id == rule; })) {
    return invalid(
        format("{}: there is no rule '{}' here; rules about tensors and rules of one's own are not taken over", where,
               strip_control(*invoked)));
  }
  for (const std::string& name : params.is_object() ? params.keys() : std::vector<std::string>{}) {
    if (std::ranges::any_of(kOfTheirs, [&](std::string_view one_of) { return same_name(one_of, name); })) continue;
    const std::string key = format("{}.RuleParameters.{}", where, name);
    const auto value = value_text(params[name]);
    if (!value) return invalid(key + ": takes text or a number");
    if (same_name(trim(*value), "none") || trim(*value).empty()) continue;  // theirs for "the default"
    const auto target = is_report ? of_report(name) : std::optional(std::pair(rule, name));
    if (!target) return invalid(key + ": takes RULE_PARAMETER of a rule that there is");
    out.rules[target->first][target->second] = RuleSetting{.value = std::string(trim(*value)), .where = key};
  }
  return {};
}

Result<void> take_flag(const std::string& given, Config& config) {
  const std::size_t equals = given.find('=');
  const std::size_t colon = given.find(':');
  if (equals == std::string::npos || colon == std::string::npos || colon > equals || colon == 0 ||
      colon + 1 == equals) {
    return invalid(format("--rule is '{}'; it takes RULE:PARAMETER=VALUE, as in LowGPUUtilization:threshold_p95=60",
                          strip_control(given)));
  }
  config.rules[own_spelling(given.substr(0, colon))][given.substr(colon + 1, equals - colon - 1)] =
      RuleSetting{.value = given.substr(equals + 1), .where = format("--rule {}", strip_control(given))};
  return {};
}

}  // namespace

Result<Config> parse_profiler_rules(std::string_view json_untrusted, std::string_view file_name) {
  const Result<JsonDocument> document = JsonDocument::parse(json_untrusted);
  if (!document.ok()) return invalid(format("{}: {}", file_name, document.error().message));
  const JsonValue root = document->root();
  const JsonValue list = root.is_array() ? root : root[kList];
  if (!list.is_array()) return invalid(format("{}: has no list {}", file_name, kList));
  const std::vector<JsonValue> items = list.items();
  if (items.size() > kRulesMax) return invalid(format("{}: more than {} rules", file_name, kRulesMax));
  Config out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    HOTLAP_TRY(take_rule(items[i], format("{}: {}[{}]", file_name, kList, i), out));
  }
  return out;
}

Result<Config> config_with_rules(const Args& args) {
  HOTLAP_TRY_ASSIGN(Config config, config_of(args));
  if (const auto file = args.text("--rule-config")) {
    const Result<std::string> text = read_regular_file(*file, kFileBytesMax);
    if (!text.ok()) return invalid("--rule-config " + text.error().message);
    HOTLAP_TRY_ASSIGN(Config theirs, parse_profiler_rules(*text, *file));
    config = merge_config(std::move(config), std::move(theirs));
  }
  Config flags;
  const auto given = args.values.find("--rule");
  if (given != args.values.end()) {
    for (const std::string& one : given->second) HOTLAP_TRY(take_flag(one, flags));
  }
  config = merge_config(std::move(config), std::move(flags));
  HOTLAP_TRY(check_rules(config, all_rules()));
  return config;
}

}  // namespace hotlap
