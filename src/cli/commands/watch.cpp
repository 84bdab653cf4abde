// The watcher as a process of its own, started by `hotlap run`: follows the recording, says the verdict when it is due
// and when it changes, and keeps verdict.txt and verdict.json fresh. What the hooks saw of some steps it
// imports; else it reads only, and may be killed at any time.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <sstream>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/profile_import.h"
#include "cli/rule_flags.h"
#include "cli/shown.h"
#include "collect/cost_gate.h"
#include "report/registry.h"
#include "store/run_folder.h"
#include "store/run_reader.h"
#include "view/analyze.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--folder", .type = FlagType::kText, .placeholder = "FOLDER", .help = "the run's folder"},
    FlagSpec{.name = "--live", .help = "while the job runs"},
    FlagSpec{.name = "--final", .help = "after the job's end"},
    kConfigFlag,
    kRuleFlag,
    kRuleConfigFlag,
};

constexpr std::int64_t kLookEveryNs = 2 * kNsPerS;
constexpr std::int64_t kLookRest = 200;  // times what a look takes of CPU: 0.5 % of a core at most
constexpr std::int64_t kFirstVerdictSteps = 60;
constexpr std::int64_t kFirstVerdictNs = 120 * kNsPerS;
constexpr std::int64_t kVerdictPauseNs = 60 * kNsPerS;  // between two that differ
constexpr std::int64_t kWriteEveryNs = 10 * kNsPerS;
constexpr std::int64_t kPageRest = 500;  // times what writing a page took: 0.2 % of a core at most

// Every line marked as ours, in one piece: lines of several processes do not mix.
void say(std::string_view text, Streams& streams) {
  std::string marked;
  std::string_view line;
  while (next_line(text, line)) marked += "hotlap: " + one_line(line) + "\n";
  streams.err << marked << std::flush;
}

// Every format of `hotlap report` as a page beside verdict.txt and verdict.json. What cannot be written costs the page,
// not the verdict; what takes long, as a notebook of a long run does, is made anew the more rarely.
class Pages {
 public:
  explicit Pages(RunFolder folder) : folder_(std::move(folder)) {}

  void write(const AnalysisDocument& document) {
    Result<RunReader> reader = RunReader::open(folder_);
    if (!reader.ok()) return;
    for (const ExporterSpec* spec : all_exporters()) {
      if (!spec->is_report) continue;
      const std::int64_t begin_ns = system_clock().mono_ns();
      std::int64_t& due_ns = due_ns_[spec->name];
      if (begin_ns < due_ns) continue;
      std::ostringstream page;
      if (spec->write({.run = *reader, .analysis = document}, page).ok())
        (void)folder_.write_text(format("report{}", spec->extension), page.str()).ok();
      const std::int64_t end_ns = system_clock().mono_ns();
      due_ns = end_ns + kPageRest * (end_ns - begin_ns);
    }
  }

 private:
  RunFolder folder_;
  std::map<std::string_view, std::int64_t> due_ns_;
};

class LiveWatch {
 public:
  LiveWatch(LiveAnalysis analysis, RunFolder folder, Streams& streams)
      : analysis_(std::move(analysis)),
        folder_(std::move(folder)),
        windows_(folder_, false),
        pages_(folder_),
        streams_(streams) {}

  // Until the one who started us is gone; it kills us at the job's end.
  void follow() {
    const pid_t parent = ::getppid();
    const std::int64_t start_ns = system_clock().mono_ns();
    CostGate gate(kLookEveryNs, kLookRest);  // a look that costs much, on a large machine, comes the more rarely
    for (std::int64_t look_ns = start_ns; ::getppid() == parent;) {
      look_ns += kLookEveryNs;
      system_clock().sleep_until(look_ns, -1);
      look_ns = std::max(look_ns, system_clock().mono_ns() - kLookEveryNs);  // a slept machine does not catch up
      windows_.take_new();
      gate.run(look_ns, [&] {
        if (analysis_.refresh().ok()) look(system_clock().mono_ns() - start_ns);
      });
    }
  }

 private:
  void look(std::int64_t since_start_ns) {
    const std::int64_t steps = analysis_.steps_seen();
    const bool is_due = steps >= kFirstVerdictSteps || since_start_ns >= kFirstVerdictNs;
    const bool must_write = since_start_ns >= write_at_ns_;
    if (!is_due && !must_write) return;
    const AnalysisDocument document = analysis_.document();
    if (must_write) {
      // A full disk or a deleted folder costs the files, not the verdict.
      (void)write_verdict(folder_, document).ok();
      pages_.write(document);
      write_at_ns_ = since_start_ns + kWriteEveryNs;
    }
    const std::string identity = verdict_identity(document);
    if (!is_due || identity == said_ || document.verdict == VerdictKind::kTooShort) return;
    if (!said_.empty() && (since_start_ns < say_at_ns_ || identity != seen_)) {
      seen_ = identity;  // a change must hold for two looks
      return;
    }
    say(format("after {} steps{}:\n{}", shown_count(static_cast<std::uint64_t>(steps)),
               said_.empty() ? "" : ", the verdict has changed", document.verdict_text),
        streams_);
    said_ = identity;
    say_at_ns_ = since_start_ns + kVerdictPauseNs;
  }

  LiveAnalysis analysis_;
  RunFolder folder_;
  ProfileImport windows_;
  Pages pages_;
  Streams& streams_;
  std::string said_;  // identity of the verdict that was said last; empty: none yet
  std::string seen_;
  std::int64_t say_at_ns_ = 0;
  std::int64_t write_at_ns_ = kWriteEveryNs;
};

Result<int> say_final(const RunFolder& folder, const RuleSettings& settings, Streams& streams) {
  const Result<AnalysisDocument> document = analyze_run(folder, settings);
  if (!document.ok()) {
    say(format("recorded as {}, but without a verdict: {}", folder.info().id, document.error().message), streams);
    return int{kExitFailed};
  }
  const Result<void> written = write_verdict(folder, *document);
  Pages(folder).write(*document);
  say(full_text(*document), streams);
  if (!written.ok()) say(format("the verdict is not kept: {}", written.error().message), streams);
  say(format("recorded as {}; again: hotlap why", folder.info().id), streams);
  return int{kExitSuccess};
}

Result<int> run(const Args& args, Streams& streams) {
  Result<RunFolder> opened = RunFolder::open(args.text("--folder").value_or(""));
  if (!opened.ok()) {
    if (args.has("--final")) say("no verdict: " + opened.error().message, streams);
    return int{kExitFailed};
  }
  RunFolder folder = std::move(opened).value();
  // It was right when the run began; what has become of it since does not take the verdict away.
  const Result<Config> config = config_with_rules(args);
  const RuleSettings settings = config.ok() ? rule_settings(*config) : RuleSettings();
  if (args.has("--final")) {
    ProfileImport(folder, true).take_new();
    return say_final(folder, settings, streams);
  }
  // A recording that is just being made cannot be opened yet; the verdict at the end says why when it never can.
  for (const pid_t parent = ::getppid(); ::getppid() == parent;) {
    Result<LiveAnalysis> analysis = LiveAnalysis::open(folder, settings);
    if (analysis.ok()) {
      LiveWatch(std::move(analysis).value(), std::move(folder), streams).follow();
      break;
    }
    system_clock().sleep_until(system_clock().mono_ns() + kLookEveryNs, -1);
  }
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_watch{.name = "_watch",
                                                 .summary = "The watcher of a run.",
                                                 .example = "hotlap _watch --folder F --final",
                                                 .flags = kFlags,
                                                 .is_hidden = true,
                                                 .run = run};

}  // namespace hotlap
