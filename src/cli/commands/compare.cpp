// Two runs beside each other, or two groups of runs: did the change help, by how much, and as predicted?
#include <array>
#include <optional>
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/imported_run.h"
#include "cli/options.h"
#include "cli/shown.h"
#include "cost/price.h"
#include "store/run_folder.h"
#include "view/comparison.h"
#include "view/trace_comparison.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--format",
             .type = FlagType::kText,
             .placeholder = "FORMAT",
             .help = "text (the default), md, junit or json"},
    FlagSpec{.name = "--json", .help = "as --format json (docs/reference/json.md)"},
    FlagSpec{
        .name = "--fail-on",
        .type = FlagType::kText,
        .placeholder = "CONDITION",
        .help = "exit 3 when it holds: 'step_ms>+5%', 'samples_per_s<-2%', 'gpu_busy_pct<90'; several with commas"},
    FlagSpec{.name = "--price",
             .type = FlagType::kNumber,
             .placeholder = "USD/H",
             .help = "what a machine costs per hour, for both sides; default: what each run was recorded with",
             .min = 1e-4,
             .max = 1e5},
    FlagSpec{.name = "--traces", .help = "by what is inside the steps, also of runs that traces were imported into"},
    kConfigFlag};
constexpr std::array kPositionals{
    PositionalSpec{.name = "BEFORE",
                   .help = "id, start of an id, name or path; several with commas between them; or a trace file; "
                           "without both: the last two of one script",
                   .names_runs = true},
    PositionalSpec{.name = "AFTER", .help = "the same", .names_runs = true},
};

struct Sides {
  std::vector<RunFolder> before;
  std::vector<RunFolder> after;
};

Result<Sides> last_two(const std::filesystem::path& home) {
  const std::vector<RunFolder> runs = RunFolder::list(home, nullptr);
  for (const RunFolder& after : runs) {
    for (const RunFolder& before : runs) {
      if (before.info().id < after.info().id && !after.info().script.empty() &&
          before.info().script == after.info().script) {
        return Sides{{before}, {after}};
      }
    }
  }
  return Error{
      ErrorCode::kNotFound,
      format("no script was recorded twice ({} runs); name two runs: hotlap compare BEFORE AFTER", runs.size())};
}

// "A1,A2". A path with a comma in it is one run.
Result<std::vector<RunFolder>> side_of(const std::filesystem::path& home, const std::string& text) {
  std::vector<RunFolder> side;
  std::error_code ignored;
  if (std::filesystem::exists(text, ignored)) {
    HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::find(home, text));
    side.push_back(std::move(folder));
    return side;
  }
  for (const std::string_view one : split(text, ',')) {
    if (trim(one).empty()) {
      return Error{ErrorCode::kInvalidInput, format("'{}': a run is missing at a comma", one_line(text))};
    }
    HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::find(home, trim(one)));
    for (const RunFolder& known : side) {
      if (known.path() == folder.path()) {
        return Error{ErrorCode::kInvalidInput, format("run {} is named twice on one side", folder.info().id)};
      }
    }
    side.push_back(std::move(folder));
  }
  return side;
}

Result<Sides> chosen(const Args& args, const std::filesystem::path& home) {
  const auto& before = args.positional("BEFORE");
  const auto& after = args.positional("AFTER");
  if (before.empty()) return last_two(home);
  if (after.empty())
    return Error{ErrorCode::kInvalidInput, "compare takes two runs, or none for the last two of one script"};
  Sides sides;
  HOTLAP_TRY_ASSIGN(sides.before, side_of(home, before.front()));
  HOTLAP_TRY_ASSIGN(sides.after, side_of(home, after.front()));
  return sides;
}

Result<ComparisonFormat> format_of(const Args& args) {
  const std::string name = args.text("--format").value_or(args.has("--json") ? "json" : "text");
  if (name == "text") return ComparisonFormat::kText;
  if (name == "md") return ComparisonFormat::kMarkdown;
  if (name == "junit") return ComparisonFormat::kJunit;
  if (name == "json") return ComparisonFormat::kJson;
  return Error{ErrorCode::kInvalidInput, format("no format {}; there are: text, md, junit, json", one_line(name))};
}

Result<std::vector<RunFigures>> figures_of(const std::vector<RunFolder>& side, const RuleSettings& settings,
                                           const std::optional<Price>& price) {
  std::vector<RunFigures> out;
  for (const RunFolder& folder : side) {
    HOTLAP_TRY_ASSIGN(RunFigures figures, read_run_figures(folder, settings, price));
    out.push_back(std::move(figures));
  }
  return out;
}

// A trace file, or a run that one was imported into; `imported` holds the former for as long as it is looked at.
Result<TraceSide> trace_side(const std::filesystem::path& home, const std::string& text,
                             std::optional<ImportedRun>& imported, Streams& streams) {
  if (means_foreign(home, text)) {
    ImportRequest request;
    request.paths.emplace_back(text);
    HOTLAP_TRY_ASSIGN(imported, ImportedRun::borrow(request, streams));
    return read_trace_side(imported->folder(), text);
  }
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, text));
  return read_trace_side(folder, folder.info().name.empty() ? folder.info().id : folder.info().name);
}

// A side is a file that is no run of ours: traces are compared, by what is inside their steps.
bool names_trace(const Args& args, const std::filesystem::path& home) {
  const auto& before = args.positional("BEFORE");
  const auto& after = args.positional("AFTER");
  return !before.empty() && !after.empty() &&
         (means_foreign(home, before.front()) || means_foreign(home, after.front()));
}

struct TraceSides {
  TraceSide before;
  TraceSide after;
};
Result<TraceSides> trace_sides(const Args& args, const std::filesystem::path& home, Streams& streams) {
  std::optional<ImportedRun> before_files;
  std::optional<ImportedRun> after_files;
  TraceSides sides;
  HOTLAP_TRY_ASSIGN(sides.before, trace_side(home, args.positional("BEFORE").front(), before_files, streams));
  HOTLAP_TRY_ASSIGN(sides.after, trace_side(home, args.positional("AFTER").front(), after_files, streams));
  return sides;
}

// Both sides name runs of ours, though something of that name lies here, too.
bool may_be_runs(const Args& args, const std::filesystem::path& home) {
  const auto is_run = [&](const std::string& word) {
    return word.find('/') == std::string::npos && RunFolder::find(home, word).ok();
  };
  return is_run(args.positional("BEFORE").front()) && is_run(args.positional("AFTER").front());
}

Result<int> show_traces(const Args& args, const TraceSides& sides, Streams& streams) {
  const std::string name = args.text("--format").value_or(args.has("--json") ? "json" : "text");
  if (name != "text" && name != "json") {
    return Error{ErrorCode::kInvalidInput, format("traces are compared as text or json, not {}", one_line(name))};
  }
  if (args.has("--fail-on") || args.has("--price")) {
    return Error{ErrorCode::kInvalidInput, "--fail-on and --price are for runs: a trace has too few steps to judge"};
  }
  const TraceComparison comparison = compare_traces(sides.before, sides.after);
  streams.out << (name == "json" ? trace_comparison_json(comparison) : trace_comparison_text(comparison));
  return int{kExitSuccess};
}

Result<int> run(const Args& args, Streams& streams) {
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  if (args.has("--traces") || names_trace(args, home)) {
    if (args.positional("AFTER").empty()) return Error{ErrorCode::kInvalidInput, "--traces takes two traces"};
    Result<TraceSides> sides = trace_sides(args, home, streams);
    if (sides.ok()) return show_traces(args, *sides, streams);
    // What lies here is no trace: then the runs of that name are meant.
    if (args.has("--traces") || sides.error().code != ErrorCode::kUnsupported || !may_be_runs(args, home))
      return std::move(sides).error();
  }
  HOTLAP_TRY_ASSIGN(const ComparisonFormat format_wanted, format_of(args));
  std::vector<FailCondition> conditions;
  if (const auto text = args.text("--fail-on")) {
    HOTLAP_TRY_ASSIGN(conditions, parse_fail_on(*text));
  }
  std::optional<Price> price;
  if (const auto usd_per_hour = args.number("--price")) {
    HOTLAP_TRY_ASSIGN(price, price_per_hour(*usd_per_hour));
  }
  HOTLAP_TRY_ASSIGN(const Config config, config_of(args));
  const RuleSettings settings = rule_settings(config);
  HOTLAP_TRY_ASSIGN(const Sides sides, chosen(args, home));
  HOTLAP_TRY_ASSIGN(const std::vector<RunFigures> before, figures_of(sides.before, settings, price));
  HOTLAP_TRY_ASSIGN(const std::vector<RunFigures> after, figures_of(sides.after, settings, price));
  const Comparison comparison = compare_sides(before, after, conditions);
  const bool is_for_programs = format_wanted == ComparisonFormat::kJson || format_wanted == ComparisonFormat::kJunit;
  // A program reads the reason where it reads the figures; a person gets one line.
  if (comparison.refusal.empty() || is_for_programs) streams.out << format_comparison(comparison, format_wanted);
  if (!comparison.refusal.empty()) return Error{ErrorCode::kUnsupported, comparison.refusal};
  if (comparison.fails()) return int{kExitFailOn};
  // A gate that cannot be checked does not open by itself.
  if (const std::string unchecked = comparison.unchecked(); !unchecked.empty()) {
    return Error{ErrorCode::kNotFound, "--fail-on " + unchecked};
  }
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_compare{
    .name = "compare",
    .summary = "Compare two runs: step time, throughput, waiting, memory, energy and cost, with intervals.",
    .example = "hotlap compare --fail-on 'step_ms>+5%'",
    .help =
        "Without runs: the last two of the same script. Several runs on a side (A1,A2 B1,B2) give intervals between "
        "runs; one gives those within it, never finer than 2 %. Settings that differ are found and listed. Refuses, "
        "and "
        "says why, where the runs cannot be compared. Two trace files are compared by what is inside their steps: "
        "operators and kernels that were added, are gone, take longer or take less. How to read it: "
        "docs/guide/compare.md.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
