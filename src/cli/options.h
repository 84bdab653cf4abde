#pragma once
// What command line and configuration files say together: flags win over files.
#include "base/result.h"
#include "cli/command.h"
#include "config/config.h"
#include "record/recorder.h"
#include "record/run_plan.h"
#include "rules/engine.h"

namespace hotlap {

inline constexpr FlagSpec kConfigFlag{
    .name = "--config", .type = FlagType::kText, .placeholder = "FILE", .help = "read FILE in place of ./hotlap.toml"};

// What every command that records takes; run_options() reads them.
inline constexpr FlagSpec kNameFlag{
    .name = "--name", .type = FlagType::kText, .placeholder = "NAME", .help = "name of the run; default: the script's"};
inline constexpr FlagSpec kIntervalFlag{.name = "--interval",
                                        .type = FlagType::kDuration,
                                        .placeholder = "500ms",
                                        .help = "between samples",
                                        .min = static_cast<double>(kIntervalNsMin),
                                        .max = static_cast<double>(kIntervalNsMax)};
inline constexpr FlagSpec kPriceFlag{.name = "--price",
                                     .type = FlagType::kNumber,
                                     .placeholder = "USD/H",
                                     .help = "what the machine costs per hour",
                                     .min = 1e-4,
                                     .max = 1e5};
inline constexpr FlagSpec kInstanceFlag{
    .name = "--instance", .type = FlagType::kText, .placeholder = "TYPE", .help = "type of the machine"};
inline constexpr FlagSpec kQuietFlag{.name = "--quiet", .help = "print nothing"};

// The configuration for a command that has kConfigFlag. Rules and their parameters are checked: they exist, and take
// these values.
Result<Config> config_of(const Args& args);

// kInvalidInput with file, line and key where it sets a rule, a parameter or a value that there is not.
Result<void> check_rules(const Config& config, std::span<const RuleSpec* const> rules);
// What the configuration sets of the rules, for the analysis.
RuleSettings rule_settings(const Config& config);

// For a command with the flags above. kInvalidInput before anything is started: a price and an instance together, an
// instance that the catalogue lacks.
Result<RunOptions> run_options(const Args& args, const Config& config);

}  // namespace hotlap
