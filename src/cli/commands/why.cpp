// The verdict of a run, live or finished, made anew from its recording.
#include <array>
#include <ostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/rule_flags.h"
#include "cli/shown.h"
#include "store/run_folder.h"
#include "view/analyze.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{FlagSpec{.name = "--json", .help = "the whole answer as JSON, as `hotlap analyze --json`"},
                            kConfigFlag, kRuleFlag, kRuleConfigFlag};
constexpr std::array kPositionals{
    PositionalSpec{.name = "RUN", .help = "id, start of an id, name, path or last (the default)", .names_runs = true},
};

// The first line bold, on a terminal.
std::string shown(std::string_view verdict, const Ink& ink) {
  std::string_view line;
  next_line(verdict, line);
  std::string out = ink.bold(line) + "\n";
  while (next_line(verdict, line)) out += std::string(line) + "\n";
  return out;
}

Result<int> run(const Args& args, Streams& streams) {
  HOTLAP_TRY_ASSIGN(const Config config, config_with_rules(args));
  const auto& given = args.positional("RUN");
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, given.empty() ? "last" : given.front()));
  HOTLAP_TRY_ASSIGN(const AnalysisDocument document, analyze_run(folder, rule_settings(config)));
  if (args.has("--json")) {
    streams.out << to_json(document);
    return int{kExitSuccess};
  }
  const Ink ink(streams.out_is_terminal);
  streams.out << shown(document.verdict_text, ink);
  for (const std::string& line : footer_lines(document)) streams.out << line << '\n';
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_why{
    .name = "why",
    .summary = "Say what holds a run back, what to change, and what it gains.",
    .example = "hotlap why last",
    .help = "Works on a run that is still going on as well. How to read the answer: docs/guide/verdicts.md.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
