#pragma once
// What the configuration files say: <home>/config.toml, over it ./hotlap.toml (or the file of --config). Flags win over
// both; that is the commands' business. Wrong configuration is an Error with file, line and key, never a guess.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

struct RuleSetting {
  std::string value;  // as text, for Params::make
  std::string where;  // "hotlap.toml:12: rules.InputBound.min_pct": the start of a message about it
};
using RuleEntries = std::map<std::string, RuleSetting, std::less<>>;

// Absent: the files do not say.
struct Config {
  std::optional<std::int64_t> interval_ns;
  std::optional<std::string> name;
  std::optional<double> price_per_hour;  // USD; never together with `instance`
  std::optional<std::string> instance;
  std::string instance_where;  // "hotlap.toml:3: instance": the start of a message about it
  std::optional<std::int64_t> keep_ns;
  std::optional<bool> hook;
  std::optional<bool> horovod_timeline;
  std::optional<bool> quiet;
  std::map<std::string, RuleEntries, std::less<>> rules;  // by rule id
  std::vector<std::filesystem::path> files;               // those that were read, weakest first
};

// A key as users may write it; help, checks and docs/reference/config.md read this table.
enum class ConfigType : std::uint8_t { kText, kNumber, kDuration, kTruth };
struct ConfigKey {
  std::string_view name;
  ConfigType type = ConfigType::kText;
  std::string_view example;  // as TOML
  double min = 0;            // of a number, or of a duration in ns; min == max: any
  double max = 0;
  std::string_view help;
};
std::span<const ConfigKey> config_keys();

// `file_name` is only for messages. kInvalidInput: "hotlap.toml:3: intervall: unknown key; did you mean interval?"
Result<Config> parse_config(std::string_view toml_untrusted, std::string_view file_name);

// `over` wins, key by key; a price set there also replaces an instance from `under`, and the other way round.
Config merge_config(Config under, Config over);

struct ConfigPlaces {
  std::filesystem::path home;               // config.toml in it, when there is one; empty: no home
  std::filesystem::path working_directory;  // hotlap.toml in it, when there is one
  std::filesystem::path file;               // --config: read in place of the latter, and must exist; empty: none
};
Result<Config> load_config(const ConfigPlaces& places);

// What the configuration may set of one rule; made from the rules' specs, which lie above this library.
struct KnownRule {
  std::string_view id;
  std::vector<std::string_view> params;
};
Result<void> check_rule_names(const Config& config, std::span<const KnownRule> known);

}  // namespace hotlap
