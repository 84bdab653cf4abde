// Two runs beside each other: did the change help, by how much, and as predicted?
#include <array>
#include <ostream>

#include "base/format.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/shown.h"
#include "store/run_folder.h"
#include "view/analyze.h"
#include "view/previous_run.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{FlagSpec{.name = "--json", .help = "as JSON"}};
constexpr std::array kPositionals{
    PositionalSpec{.name = "BEFORE",
                   .help = "id, start of an id, name or path; without both: the last two of one script"},
    PositionalSpec{.name = "AFTER", .help = "the same"},
};

struct Pair {
  RunFolder before;
  RunFolder after;
};

Result<Pair> last_two(const std::filesystem::path& home) {
  const std::vector<RunFolder> runs = RunFolder::list(home, nullptr);
  for (const RunFolder& after : runs) {
    for (const RunFolder& before : runs) {
      if (before.info().id < after.info().id && !after.info().script.empty() &&
          before.info().script == after.info().script) {
        return Pair{before, after};
      }
    }
  }
  return Error{
      ErrorCode::kNotFound,
      format("no script was recorded twice ({} runs); name two runs: hotlap compare BEFORE AFTER", runs.size())};
}

Result<Pair> chosen(const Args& args, const std::filesystem::path& home) {
  const auto& before = args.positional("BEFORE");
  const auto& after = args.positional("AFTER");
  if (before.empty()) return last_two(home);
  if (after.empty())
    return Error{ErrorCode::kInvalidInput, "compare takes two runs, or none for the last two of one script"};
  HOTLAP_TRY_ASSIGN(RunFolder first, RunFolder::find(home, before.front()));
  HOTLAP_TRY_ASSIGN(RunFolder second, RunFolder::find(home, after.front()));
  return Pair{std::move(first), std::move(second)};
}

std::string interval(const StepsOfRun& run) { return format("{:.1f} +/- {:.1f} ms", run.mean_ms, run.half_width_ms); }

void print_json(const PreviousRun& change, const StepsOfRun& before, const StepsOfRun& after, std::ostream& out) {
  JsonWriter w(JsonWriter::Style::kPretty);
  w.begin_object().field("schema", 1);
  for (const auto& [name, run] : {std::pair{"before", &before}, std::pair{"after", &after}}) {
    w.key(name).begin_object().field("id", std::string_view(run->id)).field("name", std::string_view(run->name));
    w.field("steps", run->count).field("step_ms", run->mean_ms).field("half_width_ms", run->half_width_ms);
    w.field("samples_per_step", run->samples_per_step).field("loader_workers", run->workers).end_object();
  }
  w.field("change_pct", change.change_pct).field("change_pct_low", change.change_pct_low);
  w.field("change_pct_high", change.change_pct_high).field("word", std::string_view(change.word));
  w.field("predicted_ms_low", change.predicted_ms_low)
      .field("predicted_ms_high", change.predicted_ms_high)
      .end_object();
  out << w.take() << '\n';
}

Result<int> run(const Args& args, Streams& streams) {
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const Pair pair, chosen(args, home));
  HOTLAP_TRY_ASSIGN(const AnalysisDocument before, analyze_run(pair.before));
  HOTLAP_TRY_ASSIGN(const AnalysisDocument after, analyze_run(pair.after));
  const StepsOfRun before_steps = steps_of(before);
  const StepsOfRun after_steps = steps_of(after);
  HOTLAP_TRY_ASSIGN(const PreviousRun change, compare_runs(before_steps, after_steps));
  if (args.has("--json")) {
    print_json(change, before_steps, after_steps, streams.out);
    return int{kExitSuccess};
  }
  streams.out << format("before  {}  {}  step {} ({} steps)\n", one_line(before.run_id), one_line(before.run_name),
                        interval(before_steps), before_steps.count)
              << format("after   {}  {}  step {} ({} steps)\n", one_line(after.run_id), one_line(after.run_name),
                        interval(after_steps), after_steps.count)
              << change_words(change, after_steps.mean_ms) << '\n';
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_compare{
    .name = "compare",
    .summary = "Compare two runs: step times with intervals, predicted against reached.",
    .example = "hotlap compare",
    .help = "Without runs: the last two of the same script. Refuses where step times do not mean the same.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
