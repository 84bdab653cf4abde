#include "cli/options.h"

#include <filesystem>

#include "base/format.h"
#include "cost/price.h"
#include "rules/registry.h"
#include "store/home.h"

namespace hotlap {
namespace {

Error unusable(Error error) {
  error.code = ErrorCode::kInvalidInput;
  return error;
}

// Of the strongest source that names a price or an instance.
Result<void> take_price(const Args& args, const Config& config, RunOptions& options) {
  const bool is_by_flag = args.has("--price") || args.has("--instance");
  if (args.has("--price") && args.has("--instance")) {
    return Error{ErrorCode::kInvalidInput, "--price and --instance exclude each other: keep one"};
  }
  const std::optional<double> usd_per_hour = is_by_flag ? args.number("--price") : config.price_per_hour;
  options.instance_type = is_by_flag ? args.text("--instance") : config.instance;
  if (!usd_per_hour && !options.instance_type) return {};
  Result<Price> price = usd_per_hour ? price_per_hour(*usd_per_hour) : price_of_instance(*options.instance_type);
  if (!price.ok()) {
    Error error = unusable(std::move(price).error());
    return is_by_flag ? std::move(error) : std::move(error).with_context(config.instance_where);
  }
  if (!is_by_flag && usd_per_hour) price->source = "configuration";
  options.price = std::move(price).value();
  return {};
}

}  // namespace

Result<Config> config_of(const Args& args) {
  ConfigPlaces places;
  if (const Result<std::filesystem::path> home = hotlap_home(); home.ok()) places.home = *home;
  std::error_code unknown;
  places.working_directory = std::filesystem::current_path(unknown);
  places.file = args.text("--config").value_or("");
  HOTLAP_TRY_ASSIGN(Config config, load_config(places));
  HOTLAP_TRY(check_rules(config, all_rules()));
  return config;
}

Result<void> check_rules(const Config& config, std::span<const RuleSpec* const> rules) {
  std::vector<KnownRule> known;
  for (const RuleSpec* rule : rules) {
    KnownRule& one = known.emplace_back(KnownRule{.id = rule->id, .params = {}});
    for (const ParamDesc& param : rule->params) one.params.push_back(param.name);
  }
  HOTLAP_TRY(check_rule_names(config, known));
  for (const RuleSpec* rule : rules) {
    const auto set = config.rules.find(rule->id);
    if (set == config.rules.end()) continue;
    // One by one, so that the message can name the line.
    for (const auto& [param, setting] : set->second) {
      const Result<Params> made = Params::make(rule->id, rule->params, {{param, setting.value}});
      if (!made.ok()) return unusable(Error(made.error()).with_context(setting.where));
    }
  }
  return {};
}

RuleSettings rule_settings(const Config& config) {
  RuleSettings settings;
  for (const auto& [rule, entries] : config.rules) {
    for (const auto& [param, entry] : entries) settings[rule][param] = entry.value;
  }
  return settings;
}

Result<RunOptions> run_options(const Args& args, const Config& config) {
  RunOptions options;
  options.name = args.has("--name") ? args.text("--name") : config.name;
  if (options.name && (options.name->find_first_not_of(" \t") == std::string::npos || *options.name == "last")) {
    return Error(ErrorCode::kInvalidInput,
                 format("--name '{}': a run needs a name of its own; last means the newest run", *options.name));
  }
  options.interval_ns = args.duration_ns("--interval").value_or(config.interval_ns.value_or(kIntervalNsDefault));
  options.wants_hook = config.hook.value_or(true);
  options.wants_horovod_timeline = config.horovod_timeline.value_or(false);
  options.is_quiet = args.has("--quiet") || config.quiet.value_or(false);
  HOTLAP_TRY(take_price(args, config, options));
  return options;
}

}  // namespace hotlap
