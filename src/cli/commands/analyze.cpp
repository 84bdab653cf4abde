// Verdict, step times and every finding of one run; several runs together are one (nodes that recorded apart).
#include <algorithm>
#include <array>
#include <ostream>

#include "base/format.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/shown.h"
#include "store/run_folder.h"
#include "view/analyze.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--json", .help = "as JSON (docs/reference/analyze-schema.json)"},
    FlagSpec{.name = "--fail-on",
             .type = FlagType::kText,
             .placeholder = "SEVERITY",
             .help = "exit 3 when there is a finding of info, warning or critical and above"},
    kConfigFlag,
};
constexpr std::array kPositionals{PositionalSpec{
    .name = "RUN", .help = "ids, starts of ids, names or paths; last when there is none", .is_repeated = true}};

Result<Severity> severity_from(std::string_view text) {
  for (const Severity severity : {Severity::kInfo, Severity::kWarning, Severity::kCritical}) {
    if (to_string(severity) == text) return severity;
  }
  return Error{ErrorCode::kInvalidInput, format("--fail-on is '{}'; it takes info, warning or critical", text)};
}

std::string percent(const std::optional<double>& value) { return value ? format("{:.1f} %", *value) : "not measured"; }

void print_steps(const AnalysisDocument& d, std::ostream& out) {
  const StepsDocument& steps = d.steps;
  if (!steps.mean_ms) return;
  out << format("\nSteps: {} typical of {}, {:.1f} ms", shown_count(static_cast<std::uint64_t>(steps.count)),
                shown_count(static_cast<std::uint64_t>(steps.count_all)), *steps.mean_ms);
  if (steps.half_width_ms) out << format(" +/- {:.1f}", *steps.half_width_ms);
  if (steps.median_ms && steps.p99_ms) out << format(", median {:.1f}, p99 {:.1f}", *steps.median_ms, *steps.p99_ms);
  if (steps.samples_per_s) out << format(", {:.1f} samples/s", *steps.samples_per_s);
  out << (steps.is_inferred ? " (inferred from the loader's cadence)\n" : "\n");
  const Breakdown& b = steps.breakdown;
  for (const auto& [name, share] :
       {std::pair{"data wait", b.data_wait}, std::pair{"forward", b.forward}, std::pair{"backward", b.backward},
        std::pair{"optimizer", b.optimizer}, std::pair{"communication", b.communication},
        std::pair{"checkpoint", b.checkpoint}, std::pair{"garbage collection", b.gc},
        std::pair{"evaluation", b.evaluation}, std::pair{"compilation", b.compile}, std::pair{"hotlap", b.hook},
        std::pair{"other", b.other}}) {
    out << format("  {:<20}{}\n", name, percent(share));
  }
}

void print_findings(const AnalysisDocument& d, std::ostream& out) {
  if (!d.findings.empty()) out << "\nFindings\n";
  for (const Finding& finding : d.findings) {
    out << format("  {}  {}, {}", one_line(finding.id()), to_string(finding.severity), to_string(finding.certainty));
    if (finding.lost_pct) out << format(", {:.1f} % of the {}", *finding.lost_pct, to_string(finding.lost_of));
    if (finding.lost_s) out << format(", {:.1f} s so far", *finding.lost_s);
    if (!finding.explained_by.empty()) out << ", the same wait as " << one_line(finding.explained_by);
    out << format("\n    {}\n", one_line(finding.cause));
  }
  if (!d.rules_not_run.empty()) out << "\nNot looked at\n";
  for (const RuleNotRun& rule : d.rules_not_run) {
    std::string missing;
    for (const std::string& fact : rule.missing) missing += (missing.empty() ? "" : ", ") + fact;
    out << format("  {}: needs {}\n", rule.rule, missing);
  }
}

Result<int> run(const Args& args, Streams& streams) {
  std::optional<Severity> fail_on;
  if (const auto text = args.text("--fail-on")) {
    const Result<Severity> severity = severity_from(*text);
    if (!severity.ok()) return severity.error();
    fail_on = *severity;
  }
  HOTLAP_TRY_ASSIGN(const Config config, config_of(args));
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  std::vector<std::string> given = args.positional("RUN");
  if (given.empty()) given.emplace_back("last");
  std::vector<RunFolder> folders;
  for (const std::string& one : given) {
    HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::find(home, one));
    // A run that is named twice is no second node.
    const auto is_same = [&](const RunFolder& known) { return known.path() == folder.path(); };
    if (std::none_of(folders.begin(), folders.end(), is_same)) folders.push_back(std::move(folder));
  }
  HOTLAP_TRY_ASSIGN(LiveAnalysis analysis, LiveAnalysis::open(std::move(folders), rule_settings(config)));
  HOTLAP_TRY(analysis.refresh());
  analysis.finish();
  const AnalysisDocument document = analysis.document();
  if (args.has("--json")) {
    streams.out << to_json(document);
  } else {
    streams.out << document.verdict_text << '\n';
    print_steps(document, streams.out);
    print_findings(document, streams.out);
    const auto footer = footer_lines(document);
    if (!footer.empty()) streams.out << '\n';
    for (const std::string& line : footer) streams.out << line << '\n';
  }
  for (const Finding& finding : document.findings) {
    if (fail_on && finding.severity >= *fail_on) return int{kExitFailOn};
  }
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_analyze{
    .name = "analyze",
    .summary = "Print verdict, step times and all findings of a run.",
    .example = "hotlap analyze last --json",
    .help = "Several runs are taken together as one: nodes that recorded apart.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
