// Verdict, step times and every finding of one run; several runs together are one (nodes that recorded apart).
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "cli/command.h"
#include "cli/imported_run.h"
#include "cli/options.h"
#include "cli/rule_flags.h"
#include "cli/shown.h"
#include "store/run_folder.h"
#include "view/analyze.h"
#include "view/fact_words.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--json", .help = "as JSON (docs/reference/analyze-schema.json)"},
    FlagSpec{.name = "--fail-on",
             .type = FlagType::kText,
             .placeholder = "SEVERITY",
             .help = "exit 3 when there is a finding of info, warning or critical and above"},
    FlagSpec{.name = "--strict", .help = "of files: refuse one at its first repair or drop"},
    kConfigFlag,
    kRuleFlag,
    kRuleConfigFlag,
};
constexpr std::array kPositionals{PositionalSpec{
    .name = "RUN",
    .help = "ids, starts of ids, names or paths of runs, or foreign files and folders; last when there is none",
    .is_repeated = true}};

// The runs named, with the foreign files among them imported as one; `imported` holds that one for as long as it is
// looked at.
Result<std::vector<RunFolder>> folders_of(const Args& args, std::optional<ImportedRun>& imported, Streams& streams) {
  std::vector<std::string> given = args.positional("RUN");
  if (given.empty()) given.emplace_back("last");
  ImportRequest request{.is_strict = args.has("--strict")};
  std::vector<RunFolder> folders;
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  for (const std::string& one : given) {
    if (means_foreign(home, one)) {
      request.paths.emplace_back(one);
      continue;
    }
    HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::find(home, one));
    // A run that is named twice is no second node.
    const auto is_same = [&](const RunFolder& other) { return other.path() == folder.path(); };
    if (std::none_of(folders.begin(), folders.end(), is_same)) folders.push_back(std::move(folder));
  }
  if (!request.paths.empty()) {
    HOTLAP_TRY_ASSIGN(imported, ImportedRun::borrow(request, streams));
    folders.push_back(imported->folder());
  }
  return folders;
}

Result<Severity> severity_from(std::string_view text) {
  for (const Severity severity : {Severity::kInfo, Severity::kWarning, Severity::kCritical}) {
    if (to_string(severity) == text) return severity;
  }
  return Error{ErrorCode::kInvalidInput, format("--fail-on is '{}'; it takes info, warning or critical", text)};
}

std::string percent(const std::optional<double>& value) { return value ? format("{:.1f} %", *value) : "not measured"; }

constexpr std::size_t kNameColumns = 60;

std::string short_name(const std::string& name) {
  const std::string text = one_line(name);
  return text.size() <= kNameColumns ? text : text.substr(0, kNameColumns - 3) + "...";
}

void print_steps(const AnalysisDocument& d, std::ostream& out) {
  const StepsDocument& steps = d.steps;
  if (!steps.mean_ms) return;
  out << format("\nSteps: {} typical of {}, {:.1f} ms", shown_count(static_cast<std::uint64_t>(steps.count)),
                shown_count(static_cast<std::uint64_t>(steps.count_all)), *steps.mean_ms);
  if (steps.half_width_ms) out << format(" +/- {:.1f}", *steps.half_width_ms);
  if (steps.median_ms && steps.p99_ms) out << format(", median {:.1f}, p99 {:.1f}", *steps.median_ms, *steps.p99_ms);
  if (steps.samples_per_s) out << format(", {:.1f} samples/s", *steps.samples_per_s);
  out << (!steps.is_inferred ? "\n"
          : d.is_trace       ? " (inferred: the trace marks no steps)\n"
                             : " (inferred from the loader's cadence)\n");
  const Breakdown& b = steps.breakdown;
  for (const auto& [name, share] :
       {std::pair{"data wait", b.data_wait}, std::pair{"forward", b.forward}, std::pair{"backward", b.backward},
        std::pair{"optimizer", b.optimizer}, std::pair{"communication", b.communication},
        std::pair{"checkpoint", b.checkpoint}, std::pair{"garbage collection", b.gc},
        std::pair{"evaluation", b.evaluation}, std::pair{"compilation", b.compile}, std::pair{"hotlap", b.hook},
        std::pair{"other", b.other}}) {
    out << format("  {:<20}{}\n", name, percent(share));
  }
  for (const auto& [name, share] : b.named) out << format("    {:<18}{}\n", short_name(name), percent(share));
}

constexpr std::size_t kRowsShown = 8;  // of a table; all of them are in the JSON

// "  12.3 ms  41.0 %  x 120  name"
void print_rows(const AnalysisDocument& d, std::string_view kind, std::string_view title, std::string_view time,
                std::string_view share, std::ostream& out) {
  std::size_t shown = 0;
  for (const Fact& fact : d.inside) {
    if (fact.kind != kind) continue;
    if (shown++ == 0) out << '\n' << title << '\n';
    if (shown > kRowsShown) continue;
    out << format("  {:>10.3f} ms", fact.number(time).value_or(0));
    if (!share.empty()) out << format(" {:>6}", fact.number(share) ? format("{:.1f} %", *fact.number(share)) : "");
    const std::string name = short_name(fact.text("name").value_or(""));
    const auto calls = fact.number("calls");
    if (calls) out << format(" {:>8}", shown_count(static_cast<std::uint64_t>(*calls)));
    out << "  " << (name.empty() ? "(no operator)" : name);
    const auto device_ms = fact.number("device_ms");
    out << (device_ms ? format("  (device {:.3f} ms)\n", *device_ms) : "\n");
  }
  if (shown > kRowsShown) out << format("  and {} more (--json)\n", shown - kRowsShown);
}

void print_devices(const AnalysisDocument& d, std::ostream& out) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kCauses{
      {{"idle_data_ms", "data"},
       {"idle_sync_ms", "host had waited"},
       {"idle_setup_ms", "allocating or loading code"},
       {"idle_dispatch_ms", "launch-bound"},
       {"idle_host_ms", "host did other work"},
       {"idle_launch_ms", "launch on its way"},
       {"idle_queued_ms", "queued for what is not seen"},
       {"idle_unknown_ms", "not known"}}};
  for (const Fact& fact : d.inside) {
    if (fact.kind != "device.time") continue;
    const auto ms = [&](std::string_view field) { return fact.number(field).value_or(0); };
    out << format(
        "\n{}: {:.1f} ms, of it computing {:.1f}, communication {:.1f} ({:.1f} exposed), copies {:.1f} ({:.1f} "
        "exposed), idle {:.1f} ({:.1f} %)\n",
        fact.where.device, ms("wall_ms"), ms("compute_ms"), ms("communication_ms"), ms("exposed_communication_ms"),
        ms("copy_ms"), ms("exposed_copy_ms"), ms("idle_ms"), ms("idle_pct"));
    std::string causes;
    for (const auto& [field, words] : kCauses) {
      if (ms(field) >= 0.05) causes += format("{}{} {:.1f} ms", causes.empty() ? "" : ", ", words, ms(field));
    }
    if (!causes.empty()) out << "  idle: " << causes << '\n';
  }
}

// "If these were free: waits -2.1 %, dispatch -31.0 %": what a replay says, where it can be trusted.
void print_replay(const AnalysisDocument& d, std::ostream& out) {
  constexpr double kErrorMax = 0.1;
  constexpr double kSaidFromPct = 0.1;
  std::string words;
  for (const Fact& fact : d.inside) {
    if (fact.kind != "replay.scenario") continue;
    const std::string free = fact.text("free").value_or("");
    const double wall_ms = fact.number("wall_ms").value_or(0);
    const double replayed_ms = fact.number("replayed_ms").value_or(0);
    if (free == "nothing" && (wall_ms <= 0 || std::fabs(replayed_ms / wall_ms - 1) > kErrorMax)) {
      out << format("\nThe replay of its dependencies takes {:.1f} ms, not {:.1f}: it tells nothing\n", replayed_ms,
                    wall_ms);
      return;
    }
    const double saved = fact.number("saved_pct").value_or(0);
    if (free == "nothing" || saved < kSaidFromPct) continue;
    words += format("{}{} -{:.1f} %", words.empty() ? "" : ", ", free, saved);
  }
  if (!words.empty()) out << "\nIf these were free (replay): " << words << '\n';
}

constexpr double kMemorySaidFrom = 1 << 20;  // bytes; a number or two on the CPU are no timeline

void print_memory(const AnalysisDocument& d, std::ostream& out) {
  for (const Fact& fact : d.inside) {
    if (fact.kind != "memory.timeline" || fact.number("peak_bytes").value_or(0) < kMemorySaidFrom) continue;
    const auto bytes = [&](std::string_view field) { return format_bytes(fact.number(field).value_or(0)); };
    out << format("\nMemory of tensors on {}: {} at first, most {} after {:.1f} of {:.1f} ms, {} at last",
                  fact.where.device, bytes("first_bytes"), bytes("peak_bytes"), fact.number("peak_ms").value_or(0),
                  fact.number("span_ms").value_or(0), bytes("last_bytes"));
    out << (fact.number("reserved_peak_bytes") ? format("; reserved {}\n", bytes("reserved_peak_bytes")) : "\n");
  }
}

void print_inside(const AnalysisDocument& d, std::ostream& out) {
  print_devices(d, out);
  print_memory(d, out);
  print_replay(d, out);
  print_rows(d, "path.part", "Critical path: time, share", "total_ms", "share_pct", out);
  print_rows(d, "kernels.sort", "Sorts of kernels: time, share, calls", "total_ms", "share_pct", out);
  print_rows(d, "kernels.kernel", "Kernels: time, share, calls", "total_ms", "share_pct", out);
  print_rows(d, "copies.copy", "Copies: time, calls", "total_ms", "", out);
  print_rows(d, "operators.operator", "Operators: own CPU time, share, calls (time on the device)", "self_ms",
             "self_pct", out);
  print_rows(d, "sync.caller", "Host waited for the device: time, calls, in", "total_ms", "", out);
}

// "  without GPU figures:", at its commas as several lines where it is long.
std::string one_need(std::string_view need) {
  constexpr std::size_t kColumns = 90;
  std::string text = "  without";
  std::size_t columns = text.size();
  for (const std::string_view part : split(need, ',')) {
    const std::string_view words = trim(part);
    if (columns > std::string_view("  without").size()) text += ',', ++columns;
    if (columns + words.size() > kColumns) text += "\n   ", columns = 3;
    text += " " + std::string(words);
    columns += words.size() + 1;
  }
  return text + ":";
}

// By what is missing: of a capture of a GPU alone most rules lack the same few facts.
void print_not_run(const std::vector<RuleNotRun>& rules, std::ostream& out) {
  constexpr std::size_t kColumns = 100;
  std::vector<std::pair<std::string, std::string>> by_need;
  for (const RuleNotRun& rule : rules) {
    const std::string need = fact_words(rule.missing);
    auto found = std::ranges::find(by_need, need, &std::pair<std::string, std::string>::first);
    if (found == by_need.end()) found = by_need.insert(by_need.end(), {need, one_need(need)});
    std::string& text = found->second;
    const std::size_t line_start = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    text += text.size() - line_start + rule.rule.size() < kColumns ? " " : "\n    ";
    text += rule.rule;
  }
  if (!by_need.empty()) out << "\nNot looked at\n";
  for (const auto& [need, text] : by_need) out << text << '\n';
}

void print_findings(const AnalysisDocument& d, std::ostream& out) {
  const auto is_fault = [](const Finding& finding) { return !finding.is_note(); };
  if (std::ranges::any_of(d.findings, is_fault)) out << "\nFindings\n";
  for (const Finding& finding : d.findings) {
    if (!is_fault(finding)) continue;
    out << format("  {}  {}, {}", one_line(finding.id()), to_string(finding.severity), to_string(finding.certainty));
    if (finding.lost_pct) out << format(", {:.1f} % of the {}", *finding.lost_pct, to_string(finding.lost_of));
    if (finding.lost_s) out << format(", {:.1f} s so far", *finding.lost_s);
    if (!finding.explained_by.empty()) out << ", the same wait as " << one_line(finding.explained_by);
    out << format("\n    {}\n", one_line(finding.cause));
  }
  if (!std::ranges::all_of(d.findings, is_fault)) out << "\nFor the record\n";
  for (const Finding& finding : d.findings) {
    if (is_fault(finding)) continue;
    out << format("  {}: {}\n", one_line(finding.id()), one_line(finding.cause));
    for (const std::string& why : finding.why) out << format("    {}\n", one_line(why));
  }
  print_not_run(d.rules_not_run, out);
}

Result<int> run(const Args& args, Streams& streams) {
  std::optional<Severity> fail_on;
  if (const auto text = args.text("--fail-on")) {
    const Result<Severity> severity = severity_from(*text);
    if (!severity.ok()) return severity.error();
    fail_on = *severity;
  }
  HOTLAP_TRY_ASSIGN(const Config config, config_with_rules(args));
  std::optional<ImportedRun> imported;
  HOTLAP_TRY_ASSIGN(std::vector<RunFolder> folders, folders_of(args, imported, streams));
  HOTLAP_TRY_ASSIGN(LiveAnalysis analysis, LiveAnalysis::open(std::move(folders), rule_settings(config)));
  HOTLAP_TRY(analysis.refresh());
  analysis.finish();
  const AnalysisDocument document = analysis.document();
  if (args.has("--json")) {
    streams.out << to_json(document);
  } else {
    streams.out << document.verdict_text << '\n';
    print_steps(document, streams.out);
    print_inside(document, streams.out);
    print_findings(document, streams.out);
    const auto footer = footer_lines(document);
    if (!footer.empty()) streams.out << '\n';
    for (const std::string& line : footer) streams.out << line << '\n';
  }
  for (const Finding& finding : document.findings) {
    if (fail_on && !finding.is_note() && finding.severity >= *fail_on) return int{kExitFailOn};
  }
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_analyze{
    .name = "analyze",
    .summary = "Print verdict, step times and all findings of a run, or of traces and logs.",
    .example = "hotlap analyze last --json",
    .help =
        "Several runs are taken together as one: nodes that recorded apart. Foreign files (hotlap import --formats) "
        "are "
        "read together as one run, and nothing is left behind: hotlap analyze trace.json.gz smi.csv.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
