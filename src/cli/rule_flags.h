#pragma once
// Parameters of rules from the command line: --rule, and --rule-config with what a SageMaker job was given.
#include "base/result.h"
#include "cli/command.h"
#include "config/config.h"

namespace hotlap {

inline constexpr FlagSpec kRuleFlag{.name = "--rule",
                                    .type = FlagType::kText,
                                    .placeholder = "RULE:PARAMETER=VALUE",
                                    .help = "set a parameter of a rule (docs/reference/rules.md); may be repeated"};
inline constexpr FlagSpec kRuleConfigFlag{.name = "--rule-config",
                                          .type = FlagType::kText,
                                          .placeholder = "FILE",
                                          .help =
                                              "take parameters of rules from a SageMaker job's "
                                              "ProfilerRuleConfigurations (JSON); --rule wins over it"};

// The configuration for a command that has kConfigFlag and both of these. kInvalidInput in one line with what is wrong
// and where: not RULE:PARAMETER=VALUE, an unknown rule or parameter, a value out of range, JSON of another kind.
Result<Config> config_with_rules(const Args& args);

// What ProfilerRuleConfigurations say: the list itself, or an object that holds it (as DescribeTrainingJob answers).
// Parameters of SageMaker's own machinery are left out. `file_name` is only for messages.
Result<Config> parse_profiler_rules(std::string_view json_untrusted, std::string_view file_name);

}  // namespace hotlap
