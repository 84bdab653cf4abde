// The runs of the home, newest first.
#include <algorithm>
#include <array>
#include <ostream>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/shown.h"
#include "store/run_folder.h"
#include "view/run_document.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--json", .help = "as JSON"},
    FlagSpec{.name = "-n,--limit",
             .type = FlagType::kInteger,
             .placeholder = "N",
             .help = "only the newest N",
             .min = 1,
             .max = 1e9},
};
constexpr std::array kPositionals{
    PositionalSpec{.name = "NAME", .help = "only runs whose name contains this text"},
};

constexpr std::size_t kNameColumnsMax = 40;

// As few characters of the ids as tell all runs of the home apart, so that what is shown can be typed.
std::size_t id_columns(const std::vector<RunFolder>& runs) {
  constexpr std::size_t kColumnsMin = 8;
  std::vector<std::string_view> ids;
  for (const RunFolder& run : runs) ids.emplace_back(run.info().id);
  std::sort(ids.begin(), ids.end());
  std::size_t columns = kColumnsMin;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    const auto differ = std::mismatch(ids[i - 1].begin(), ids[i - 1].end(), ids[i].begin(), ids[i].end());
    columns = std::max(columns, static_cast<std::size_t>(differ.first - ids[i - 1].begin()) + 1);
  }
  return columns;
}

std::string table_of(const std::vector<RunSummary>& runs, std::size_t id_length, const Streams& streams) {
  using Align = TextTable::Align;
  TextTable table({{.title = "RUN"},
                   {.title = "NAME"},
                   {.title = "STATUS"},
                   {.title = "STARTED"},
                   {.title = "TOOK", .align = Align::kRight},
                   {.title = "STEPS", .align = Align::kRight},
                   {.title = "VERDICT"}});
  for (const RunSummary& run : runs) {
    const bool has_steps = run.steps && *run.steps >= 0;
    table.add({one_line(run.info.id.substr(0, id_length)), cut_to(one_line(run.info.name), kNameColumnsMax),
               shown_status(run.status, run.info), shown_wall_time(run.info.start_wall_ns),
               run.duration_ns ? format_duration(*run.duration_ns) : "?",
               has_steps ? shown_count(static_cast<std::uint64_t>(*run.steps)) : "-",
               run.verdict_line ? one_line(*run.verdict_line) : "-"});
  }
  return table.text("", terminal_columns(streams), Ink(streams.out_is_terminal));
}

Result<int> run(const Args& args, Streams& streams) {
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY(check_home(home));
  std::size_t unreadable = 0;
  const std::vector<RunFolder> runs = RunFolder::list(home, &unreadable);
  const std::vector<std::string>& name = args.positional("NAME");
  const auto limit = static_cast<std::size_t>(args.integer("--limit").value_or(INT64_MAX));
  const std::int64_t now_ns = system_clock().read().wall_ns;
  std::vector<RunSummary> shown;
  for (const RunFolder& folder : runs) {
    if (shown.size() == limit) break;
    if (!name.empty() && folder.info().name.find(name[0]) == std::string::npos) continue;
    shown.push_back(summarize_run(folder, now_ns));
  }
  if (args.has("--json")) {
    streams.out << run_list_json(shown, unreadable) << '\n';
    return int{kExitSuccess};
  }
  if (!shown.empty()) streams.out << table_of(shown, id_columns(runs), streams);
  if (runs.empty()) {
    streams.err << format("hotlap: no runs in {} yet; record one: hotlap run -- python train.py\n", home.string());
  } else if (shown.empty()) {
    streams.err << format("hotlap: none of {} runs has a name with \"{}\" in it\n", runs.size(), one_line(name[0]));
  }
  if (unreadable > 0) {
    streams.err << format("hotlap: {} folder{} of {} left out: run.json is missing, damaged or may not be read\n",
                          unreadable, unreadable == 1 ? "" : "s", (home / "runs").string());
  }
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_ls{
    .name = "ls",
    .summary = "List the runs, newest first, with the first line of their verdicts.",
    .example = "hotlap ls --limit 10",
    .help =
        "A run that says \"end not seen\" was killed together with its recorder; what it recorded is there. "
        "Of a process that `hotlap run` did not start the exit code is not known.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
