// A run in another form, or as a copy that can be taken elsewhere.
#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/exported.h"
#include "cli/options.h"
#include "cli/shown.h"
#include "report/registry.h"
#include "store/home.h"
#include "store/run_folder.h"
#include "view/recording_gaps.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCopy = "hotlap";

constexpr std::array kFlags{
    FlagSpec{
        .name = "-f,--format",
        .type = FlagType::kText,
        .placeholder = "FORMAT",
        .help =
            "chrome, csv, folded, ipynb, json, md, npz, openmetrics, stacks, tensorboard or hotlap; default: what the "
            "ending of the output's name says"},
    FlagSpec{
        .name = "-o,--output",
        .type = FlagType::kText,
        .placeholder = "PATH",
        .help = "where to; default: standard output. For hotlap a name that ends in .hotlap, or a folder that is made"},
    kConfigFlag,
};
constexpr std::array kPositionals{
    PositionalSpec{
        .name = "RUN", .help = "id, start of an id, name, path or last", .is_required = true, .names_runs = true},
};

// "chrome, csv …", with the copy of the run first.
std::string known_formats() {
  std::string known(kCopy);
  for (const ExporterSpec* spec : all_exporters()) known += ", " + std::string(spec->name);
  return known;
}

Error unknown_format(std::string_view typed) {
  std::vector<std::string_view> names{kCopy};
  for (const ExporterSpec* spec : all_exporters()) names.push_back(spec->name);
  const std::string_view nearest = nearest_text(typed, names);
  return {ErrorCode::kInvalidInput,
          format("no format {}; {}there are: {}", one_line(typed),
                 nearest.empty() ? std::string() : format("did you mean {}? ", nearest), known_formats())};
}

Result<std::string> wanted_format(const Args& args) {
  if (const auto named = args.text("--format")) return *named;
  const std::string output = args.text("--output").value_or("");
  if (output.ends_with(".hotlap")) return std::string(kCopy);
  if (const ExporterSpec* spec = exporter_for(output)) return std::string(spec->name);
  return Error{ErrorCode::kInvalidInput, format("say which format: --format {}", known_formats())};
}

// Self-contained copies of every recording, those of a live run as of now: one file, or a run folder of its own.
Result<void> copy_run(const RunFolder& folder, const fs::path& to, Streams& streams) {
  const std::vector<fs::path> recordings = folder.recordings();
  if (recordings.empty()) {
    return Error{ErrorCode::kNotFound,
                 format("{}: {}", folder.path().string(), why_no_recording(folder.info().status))};
  }
  std::error_code ignored;
  if (fs::exists(to, ignored)) return Error{ErrorCode::kInvalidInput, format("{}: is there already", to.string())};
  if (to.extension() == ".hotlap") {
    if (recordings.size() > 1) {
      return Error{ErrorCode::kInvalidInput,
                   format("the run has {} recordings: name a folder to copy them into", recordings.size())};
    }
    HOTLAP_TRY(copy_recording(recordings[0], to));
  } else {
    HOTLAP_TRY(make_private_folders(to));
    for (const fs::path& recording : recordings) {
      const fs::path copy = to / fs::relative(recording, folder.path(), ignored);
      HOTLAP_TRY(make_private_folders(copy.parent_path()));
      HOTLAP_TRY(copy_recording(recording, copy));
    }
    HOTLAP_TRY(write_private_file(to / "run.json", run_info_to_json(folder.info())));
  }
  streams.err << format("hotlap: copied {} recording{} to {}\n", recordings.size(), recordings.size() == 1 ? "" : "s",
                        one_line(to.string()));
  return {};
}

Result<int> run(const Args& args, Streams& streams) {
  HOTLAP_TRY_ASSIGN(const std::string name, wanted_format(args));
  const auto exporters = all_exporters();
  const auto spec =
      std::find_if(exporters.begin(), exporters.end(), [&](const ExporterSpec* s) { return s->name == name; });
  if (name != kCopy && spec == exporters.end()) return unknown_format(name);
  HOTLAP_TRY_ASSIGN(const fs::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, args.positional("RUN")[0]));
  const std::optional<std::string> output = args.text("--output");
  if (name == kCopy) {
    if (!output) return Error{ErrorCode::kInvalidInput, "say where to: -o FILE.hotlap or -o FOLDER"};
    HOTLAP_TRY(copy_run(folder, *output, streams));
    return int{kExitSuccess};
  }

  HOTLAP_TRY_ASSIGN(const Config config, config_of(args));
  return write_exported(**spec, folder, rule_settings(config), output, streams);
}

}  // namespace

extern constinit const CommandSpec command_export{
    .name = "export",
    .summary = "Write a run in another form, or a copy of it that can be taken elsewhere.",
    .example = "hotlap export last -o run.csv",
    .help =
        "csv, npz, openmetrics and tensorboard have every sample, chrome spans and series for Perfetto, folded and "
        "stacks are for flame graphs, "
        "json, md and ipynb are the answer, hotlap is a copy: of a run that is still going on, too, as of now. A copy "
        "is "
        "read by its path: hotlap show ./copy.hotlap. What is in each: docs/reference/export.md.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
