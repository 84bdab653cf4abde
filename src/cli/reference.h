#pragma once
// docs/reference/ as far as it is made from specs; tests compare the files with these texts.
#include <span>
#include <string>

#include "cli/command.h"
#include "query/table.h"
#include "rules/rule.h"

namespace hotlap {

std::string cli_reference(std::span<const CommandSpec* const> commands);
// The part of sql.md from "## Tables" on.
std::string sql_reference(std::span<const TableSpec* const> tables);
std::string config_reference(std::span<const RuleSpec* const> rules);

}  // namespace hotlap
