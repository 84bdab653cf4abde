#pragma once
// What command line and configuration files say together: flags win over files.
#include "base/result.h"
#include "cli/command.h"
#include "config/config.h"
#include "record/run_plan.h"

namespace hotlap {

inline constexpr FlagSpec kConfigFlag{
    .name = "--config", .type = FlagType::kText, .placeholder = "FILE", .help = "read FILE in place of ./hotlap.toml"};

// The configuration for a command that has kConfigFlag.
Result<Config> config_of(const Args& args);

// For a command with the flags --name --interval --price --instance --no-hook --quiet. kInvalidInput before anything is
// started: a price and an instance together, an instance that the catalogue lacks.
Result<RunOptions> run_options(const Args& args, const Config& config);

}  // namespace hotlap
