#include "cli/reference.h"

#include "base/format.h"
#include "base/text.h"
#include "cli/help.h"
#include "config/config.h"

namespace hotlap {
namespace {

constexpr std::string_view kCliHead = R"(# Commands

Made from the commands' descriptions; do not edit.

A RUN is named by its id, the start of an id, its name (the newest of that name), the path of its folder or of a
`.hotlap` file, or `last`. `--json` prints one JSON document on standard output ([json.md](json.md)) with a `schema`
number; a field is never renamed or given another meaning without that number growing, and what is not known is `null`.
Our messages go to standard error. Colour is used on a terminal only, and never when `NO_COLOR` is set.
Exit codes: [exit-codes.md](exit-codes.md).

| command | |
|---|---|
)";

constexpr std::string_view kConfigHead = R"(# Configuration

Made from the descriptions of the keys; do not edit.

Two files in [TOML](https://toml.io) are read, both optional: `config.toml` in hotlap's home (`$HOTLAP_HOME`, by default
`~/.local/share/hotlap`), and over it `hotlap.toml` in the working directory, or in its place the file of `--config`.
Flags of the command line win over both. The files set values only: nothing in them is ever executed.

A mistake (not TOML, an unknown key, a wrong type, a value out of range) is answered with one line that names file, line
and key, and exit code 2. `hotlap run` checks the configuration before it starts the job: a job never runs under a
configuration that was misread, and a configuration never stops one that runs.

```toml
interval = "500ms"
price = 1.21

[rules.InputBound]
wait_pct = 5
```

| key | example | range | |
|---|---|---|---|
)";

// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void add_command(const CommandSpec& spec, std::string& out) {
  out += format("\n## hotlap {}\n\n{}\n\n```\n{}\n```\n\nExample: `{}`\n", spec.name, spec.summary, command_usage(spec),
                spec.example);
  if (!spec.help.empty()) out += format("\n{}\n", trim(spec.help));
  if (spec.positionals.empty() && spec.flags.empty()) return;
  out += "\n| | |\n|---|---|\n";
  for (const PositionalSpec& positional : spec.positionals) {
    out += format("| `{}` | {} |\n", cell(positional.name), cell(positional.help));
  }
  for (const FlagSpec& flag : spec.flags) {
    out += format("| `{}` | {}{} |\n", cell(flag_heading(flag)), cell(flag.help), flag_range(flag));
  }
}

std::string range_of(const ConfigKey& key) {
  if (key.min == key.max) return {};
  if (key.type != ConfigType::kDuration) return format("{:.15g} to {:.15g}", key.min, key.max);
  return format("{} to {}", format_duration(static_cast<std::int64_t>(key.min)),
                format_duration(static_cast<std::int64_t>(key.max)));
}

std::string range_of(const ParamDesc& param) {
  if (param.min >= param.max) return {};
  if (param.type == ParamType::kDuration) {
    return format("{} to {}", format_duration(static_cast<std::int64_t>(param.min)),
                  format_duration(static_cast<std::int64_t>(param.max)));
  }
  return format("{:.15g} to {:.15g}{}", param.min, param.max,
                param.unit == "1" || param.unit.empty() ? std::string() : " " + std::string(param.unit));
}

}  // namespace

std::string cli_reference(std::span<const CommandSpec* const> commands) {
  std::string out(kCliHead);
  for (const CommandSpec* spec : commands) {
    if (!spec->is_hidden) out += format("| [{0}](#hotlap-{0}) | {1} |\n", spec->name, cell(spec->summary));
  }
  for (const CommandSpec* spec : commands) {
    if (!spec->is_hidden) add_command(*spec, out);
  }
  return out;
}

std::string sql_reference(std::span<const TableSpec* const> tables) {
  constexpr std::string_view kTypes[] = {"integer", "real", "text"};
  std::string text = "## Tables\n\nMade from the tables' descriptions; do not edit below this line.\n";
  for (const TableSpec* table : tables) {
    text += format("\n### {}\n\n{}.\n\n| column | type | |\n|---|---|---|\n", table->name, table->help);
    for (const ColumnDesc& column : table->columns) {
      text += format("| `{}` | {} | {} |\n", column.name, kTypes[static_cast<std::size_t>(column.type)], column.help);
    }
  }
  return text;
}

std::string config_reference(std::span<const RuleSpec* const> rules) {
  std::string out(kConfigHead);
  for (const ConfigKey& key : config_keys()) {
    out += format("| `{}` | `{}` | {} | {} |\n", key.name, cell(key.example), range_of(key), cell(key.help));
  }
  out += "\n## Parameters of rules\n\nEach in the table of its rule: `[rules.InputBound]`.\n\n";
  out += "| rule | parameter | default | range | |\n|---|---|---|---|---|\n";
  for (const RuleSpec* rule : rules) {
    for (const ParamDesc& param : rule->params) {
      out += format("| {} | `{}` | `{}` | {} | {} |\n", rule->id, param.name, param.default_text, range_of(param),
                    cell(param.help));
    }
  }
  return out;
}

}  // namespace hotlap
