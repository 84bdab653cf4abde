// Foreign traces and logs as a run that stays.
#include <array>
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/imported_run.h"
#include "cli/shown.h"
#include "ingest/registry.h"
#include "store/home.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--name",
             .type = FlagType::kText,
             .placeholder = "NAME",
             .help = "of the run; default: the first file's"},
    FlagSpec{.name = "--format",
             .type = FlagType::kText,
             .placeholder = "FORMAT",
             .help = "read the files as this, whatever they look like; see hotlap import --formats"},
    FlagSpec{.name = "--formats", .help = "list the formats"},
    FlagSpec{.name = "--strict", .help = "refuse a file at its first repair or drop"},
    FlagSpec{.name = "--keep-args",
             .type = FlagType::kText,
             .placeholder = "NAMES",
             .help = "of traces: arguments of events to keep as well, with commas between them; all; none"},
    FlagSpec{.name = "--max-expansion",
             .type = FlagType::kInteger,
             .placeholder = "N",
             .help = "stop reading a compressed file that grows N-fold; default 250, beyond 256 MiB",
             .min = 1,
             .max = 1'000'000},
    FlagSpec{.name = "--quiet", .help = "say nothing but errors"},
};
constexpr std::array kPositionals{
    PositionalSpec{.name = "FILE", .help = "traces, logs, folders of them; .gz and .zst too", .is_repeated = true}};

void print_formats(std::ostream& out) {
  for (const ImporterSpec* spec : all_importers()) {
    out << format("{:<18} {}  {}\n", spec->name, spec->summary, spec->extensions);
  }
}

Result<int> run(const Args& args, Streams& streams) {
  if (args.has("--formats")) {
    print_formats(streams.out);
    return int{kExitSuccess};
  }
  const std::vector<std::string>& given = args.positional("FILE");
  if (given.empty()) return Error{ErrorCode::kInvalidInput, "name the files or folders to import"};
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  ImportRequest request{.paths = {given.begin(), given.end()},
                        .name = args.text("--name").value_or(""),
                        .format = args.text("--format").value_or(""),
                        .keep_arguments = args.text("--keep-args").value_or(""),
                        .is_strict = args.has("--strict"),
                        .is_quiet = args.has("--quiet"),
                        .expansion_max = static_cast<std::uint64_t>(args.integer("--max-expansion").value_or(0))};
  HOTLAP_TRY_ASSIGN(const ImportedRun imported, ImportedRun::keep(home, request, streams));
  if (!request.is_quiet) {
    for (const ImportedFile& file : imported.files()) {
      streams.err << format("hotlap: {}: {}, {} events, {}\n", one_line(file.path.filename().string()), file.format,
                            shown_count(file.events), format_bytes(static_cast<double>(file.bytes)));
    }
  }
  streams.out << imported.folder().info().id << '\n';
  return int{imported.is_cancelled() ? kExitFailed : kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_import{
    .name = "import",
    .summary = "Keep foreign traces and logs as a run.",
    .example = "hotlap import trace.json.gz",
    .help =
        "Several files are one run. What is damaged costs what is damaged, and is counted (hotlap show). Prints the "
        "run's id; hotlap analyze takes the files as well, and leaves nothing behind.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
