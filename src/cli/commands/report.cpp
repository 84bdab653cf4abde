// The answer about a run as a document: for people, or for programs.
#include <array>
#include <filesystem>
#include <ostream>

#include "base/format.h"
#include "cli/command.h"
#include "cli/exported.h"
#include "cli/options.h"
#include "cli/shown.h"
#include "report/registry.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "-f,--format",
             .type = FlagType::kText,
             .placeholder = "FORMAT",
             .help = "md (the default), json or ipynb; default: what the ending of the output's name says"},
    FlagSpec{.name = "-o,--output",
             .type = FlagType::kText,
             .placeholder = "FILE",
             .help = "where to; default: standard output"},
    kConfigFlag};
constexpr std::array kPositionals{
    PositionalSpec{.name = "RUN", .help = "id, start of an id, name, path or last (the default)", .names_runs = true}};

std::string known_formats() {
  std::string known;
  for (const ExporterSpec* spec : all_exporters()) {
    if (spec->is_report) known += (known.empty() ? "" : ", ") + std::string(spec->name);
  }
  return known;
}

Result<const ExporterSpec*> wanted(const Args& args) {
  const std::string output = args.text("--output").value_or("");
  std::string name = args.text("--format").value_or("");
  if (name.empty() && output.empty()) name = "md";
  const std::string ending = std::filesystem::path(output).extension().native();
  if (name == "html" || (name.empty() && (ending == ".html" || ending == ".htm"))) {
    return Error{
        ErrorCode::kInvalidInput,
        format("there is no page in HTML yet; there are: {} (a page in Markdown: -o report.md)", known_formats())};
  }
  for (const ExporterSpec* spec : all_exporters()) {
    if (spec->is_report && (name.empty() ? ending == spec->extension : name == spec->name)) return spec;
  }
  return Error{ErrorCode::kInvalidInput,
               name.empty()
                   ? format("{}: the ending says no format of a report; there are: {}; more has hotlap export",
                            one_line(output), known_formats())
                   : format("no report as {}; there are: {}; more has hotlap export", one_line(name), known_formats())};
}

Result<int> run(const Args& args, Streams& streams) {
  HOTLAP_TRY_ASSIGN(const ExporterSpec* spec, wanted(args));
  HOTLAP_TRY_ASSIGN(const Config config, config_of(args));
  const auto& given = args.positional("RUN");
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, given.empty() ? "last" : given.front()));
  return write_exported(*spec, folder, rule_settings(config), args.text("--output"), streams);
}

}  // namespace

extern constinit const CommandSpec command_report{
    .name = "report",
    .summary = "Write the answer about a run as a document: Markdown, a notebook, JSON.",
    .example = "hotlap report last -o report.md",
    .help =
        "Works on a run that is still going on as well, as of now; while it goes on, report.md, report.ipynb and "
        "report.json in its folder are kept fresh. A notebook opens without anything but Python's standard library.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
