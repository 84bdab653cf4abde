#include "config/config.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "config/toml.h"

namespace hotlap {
namespace {

constexpr std::size_t kFileBytesMax = 1U << 20U;
constexpr double kNsPerDay = 86'400e9;

constexpr std::array kKeys{
    ConfigKey{.name = "hook",
              .type = ConfigType::kTruth,
              .example = "false",
              .help = "Load the hook into the job's Python processes (steps, data loading). Default: true."},
    ConfigKey{.name = "horovod_timeline",
              .type = ConfigType::kTruth,
              .example = "true",
              .help = "Have Horovod write its timeline into the run's folder. Default: false."},
    ConfigKey{.name = "instance",
              .type = ConfigType::kText,
              .example = "\"g5.2xlarge\"",
              .help = "The machine's type in the catalogue, from which the price follows. Excludes price."},
    ConfigKey{.name = "interval",
              .type = ConfigType::kDuration,
              .example = "\"500ms\"",
              .min = 10e6,
              .max = 60e9,
              .help = "Time between samples. Default: 500 ms."},
    ConfigKey{.name = "keep",
              .type = ConfigType::kDuration,
              .example = "\"30d\"",
              .min = 3'600e9,
              .max = 36'500 * kNsPerDay,
              .help =
                  "hotlap rm --old removes finished runs that ended longer ago than this. Nothing is ever removed by "
                  "itself."},
    ConfigKey{.name = "name", .type = ConfigType::kText, .example = "\"resnet\"", .help = "The name of runs."},
    ConfigKey{.name = "price",
              .type = ConfigType::kNumber,
              .example = "1.21",
              .min = 1e-4,
              .max = 1e5,
              .help = "USD per hour of the machine. Excludes instance."},
    ConfigKey{.name = "quiet",
              .type = ConfigType::kTruth,
              .example = "true",
              .help = "Print nothing of ours beside the job. Default: false."},
};

Error invalid(std::string_view where, std::string_view what) {
  return Error{ErrorCode::kInvalidInput, format("{}: {}", where, what)};
}

std::string_view expected_text(ConfigType type) {
  switch (type) {
    case ConfigType::kText: return "text in quotes";
    case ConfigType::kNumber: return "a number";
    case ConfigType::kDuration: return "a duration in quotes, such as \"500ms\"";
    case ConfigType::kTruth: return "true or false";
  }
  return {};
}

Error wrong_type(const TomlEntry& entry, const ConfigKey& key) {
  return invalid(entry.where, format("takes {}, not {}", expected_text(key.type), entry.shown()));
}

Result<double> ranged(const TomlEntry& entry, const ConfigKey& key, double number) {
  if (key.min == key.max || (number >= key.min && number <= key.max)) return number;
  const auto text = [&](double bound) {
    return key.type == ConfigType::kDuration ? format_duration(static_cast<std::int64_t>(bound))
                                             : format("{:.15g}", bound);
  };
  return invalid(entry.where,
                 format("{} is out of range: it takes {} to {}", entry.shown(), text(key.min), text(key.max)));
}

Result<std::string> take_text(const TomlEntry& entry, const ConfigKey& key) {
  if (entry.kind != TomlEntry::Kind::kText) return wrong_type(entry, key);
  if (trim(entry.text).empty()) return invalid(entry.where, "is empty; leave the line out instead");
  return entry.text;
}

Result<double> take_number(const TomlEntry& entry, const ConfigKey& key) {
  const auto number = entry.kind == TomlEntry::Kind::kNumber ? parse_f64(entry.text) : std::nullopt;
  if (!number) return wrong_type(entry, key);
  return ranged(entry, key, *number);
}

Result<std::int64_t> take_duration(const TomlEntry& entry, const ConfigKey& key) {
  const auto ns = entry.kind == TomlEntry::Kind::kText ? parse_duration_ns(entry.text) : std::nullopt;
  if (!ns) return wrong_type(entry, key);
  HOTLAP_TRY(ranged(entry, key, static_cast<double>(*ns)));
  return *ns;
}

Result<bool> take_truth(const TomlEntry& entry, const ConfigKey& key) {
  if (entry.kind != TomlEntry::Kind::kTruth) return wrong_type(entry, key);
  return entry.text == "true";
}

template <class T>
Result<void> put(std::optional<T>& field, Result<T> taken) {
  if (!taken.ok()) return std::move(taken).error();
  field = std::move(taken).value();
  return {};
}

Result<void> store_value(const TomlEntry& entry, const ConfigKey& key, Config& out) {
  if (key.name == "interval") return put(out.interval_ns, take_duration(entry, key));
  if (key.name == "keep") return put(out.keep_ns, take_duration(entry, key));
  if (key.name == "name") return put(out.name, take_text(entry, key));
  if (key.name == "instance") {
    out.instance_where = entry.where;
    return put(out.instance, take_text(entry, key));
  }
  if (key.name == "price") return put(out.price_per_hour, take_number(entry, key));
  if (key.name == "hook") return put(out.hook, take_truth(entry, key));
  if (key.name == "horovod_timeline") return put(out.horovod_timeline, take_truth(entry, key));
  if (key.name == "quiet") return put(out.quiet, take_truth(entry, key));
  HOTLAP_CHECK(false);  // a key of the table that nothing takes
  return {};
}

Result<void> take_key(const TomlEntry& entry, Config& out) {
  const auto* const key =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const ConfigKey& k) { return k.name == entry.key; });
  if (key == kKeys.end()) {
    std::vector<std::string_view> names{"rules"};
    for (const ConfigKey& known : kKeys) names.push_back(known.name);
    const std::string_view nearest = nearest_text(entry.key, names);
    return invalid(entry.where,
                   nearest.empty() ? std::string("unknown key") : format("unknown key; did you mean {}?", nearest));
  }
  HOTLAP_TRY(store_value(entry, *key, out));
  if (out.price_per_hour && out.instance) {
    return invalid(entry.where, "price and instance exclude each other; keep one");
  }
  return {};
}

Result<void> take_rules(const TomlEntry& entry, Config& out) {
  constexpr std::string_view kShape = "takes tables, one per rule: [rules.InputBound]";
  if (entry.kind != TomlEntry::Kind::kTable) return invalid(entry.where, kShape);
  for (const TomlEntry& rule : entry.members) {
    if (rule.kind != TomlEntry::Kind::kTable) return invalid(rule.where, kShape);
    for (const TomlEntry& param : rule.members) {
      if (param.kind == TomlEntry::Kind::kTable || param.kind == TomlEntry::Kind::kOther) {
        return invalid(param.where, format("takes one value, not {}", param.shown()));
      }
      out.rules[rule.key][param.key] = RuleSetting{.value = param.text, .where = param.where};
    }
  }
  return {};
}

template <class T>
void replace(std::optional<T>& under, std::optional<T>& over) {
  if (over) under = std::move(over);
}

Result<Config> load_file(const std::filesystem::path& path, const std::string& shown_name, bool must_exist) {
  Result<std::string> text = read_regular_file(path, kFileBytesMax);
  if (!text.ok()) {
    if (!must_exist && text.error().code == ErrorCode::kNotFound) return Config{};
    return Error{ErrorCode::kInvalidInput, "configuration " + text.error().message};
  }
  HOTLAP_TRY_ASSIGN(Config config, parse_config(*text, shown_name));
  config.files.push_back(path);
  return config;
}

}  // namespace

std::span<const ConfigKey> config_keys() { return kKeys; }

Result<Config> parse_config(std::string_view toml_untrusted, std::string_view file_name) {
  HOTLAP_TRY_ASSIGN(const std::vector<TomlEntry> entries, parse_toml(toml_untrusted, file_name));
  Config config;
  for (const TomlEntry& entry : entries)
    HOTLAP_TRY(entry.key == "rules" ? take_rules(entry, config) : take_key(entry, config));
  return config;
}

Config merge_config(Config under, Config over) {
  if (over.price_per_hour) under.instance.reset();
  if (over.instance) under.price_per_hour.reset();
  replace(under.interval_ns, over.interval_ns);
  replace(under.name, over.name);
  replace(under.price_per_hour, over.price_per_hour);
  if (over.instance) under.instance_where = over.instance_where;
  replace(under.instance, over.instance);
  replace(under.keep_ns, over.keep_ns);
  replace(under.hook, over.hook);
  replace(under.horovod_timeline, over.horovod_timeline);
  replace(under.quiet, over.quiet);
  for (auto& [rule, settings] : over.rules) {
    for (auto& [param, setting] : settings) under.rules[rule].insert_or_assign(param, std::move(setting));
  }
  under.files.insert(under.files.end(), over.files.begin(), over.files.end());
  return under;
}

Result<Config> load_config(const ConfigPlaces& places) {
  Config home;
  if (!places.home.empty()) {
    const std::filesystem::path file = places.home / "config.toml";
    HOTLAP_TRY_ASSIGN(home, load_file(file, file.string(), false));
  }
  const bool is_named = !places.file.empty();
  const std::filesystem::path project_file = is_named ? places.file : places.working_directory / "hotlap.toml";
  HOTLAP_TRY_ASSIGN(Config project, load_file(project_file, is_named ? places.file.string() : "hotlap.toml", is_named));
  return merge_config(std::move(home), std::move(project));
}

Result<void> check_rule_names(const Config& config, std::span<const KnownRule> known) {
  std::vector<std::string_view> ids;
  for (const KnownRule& rule : known) ids.push_back(rule.id);
  for (const auto& [id, settings] : config.rules) {
    const auto rule = std::find_if(known.begin(), known.end(), [&](const KnownRule& k) { return k.id == id; });
    for (const auto& [param, setting] : settings) {
      const bool is_rule_known = rule != known.end();
      const std::string_view typed = is_rule_known ? param : id;
      const std::vector<std::string_view>& names = is_rule_known ? rule->params : ids;
      if (is_rule_known && std::find(names.begin(), names.end(), typed) != names.end()) continue;
      const std::string_view nearest = nearest_text(typed, names);
      return invalid(setting.where, format("unknown {}{}", is_rule_known ? "parameter of " + id : "rule",
                                           nearest.empty() ? std::string() : format("; did you mean {}?", nearest)));
    }
  }
  return {};
}

}  // namespace hotlap
