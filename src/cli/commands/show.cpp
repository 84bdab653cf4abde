// What a run recorded.
#include <array>
#include <optional>
#include <ostream>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/shown.h"
#include "store/run_folder.h"
#include "view/run_details.h"

namespace hotlap {
namespace {

using Align = TextTable::Align;

constexpr std::array kFlags{
    FlagSpec{.name = "--json", .help = "as JSON, with every event"},
};
constexpr std::array kPositionals{
    PositionalSpec{.name = "RUN", .help = "id, start of an id, name, path or last (the default)", .names_runs = true},
};

constexpr std::size_t kEventsShownMax = 20;

std::string joined(const std::map<std::string, std::string>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs) out += (out.empty() ? "" : " ") + one_line(name) + "=" + one_line(value);
  return out;
}

class Page {
 public:
  Page(const RunDetails& details, Streams& streams)
      : details_(details), out_(streams.out), width_(terminal_columns(streams)), ink_(streams.out_is_terminal) {}

  void print() {
    print_run();
    const bool are_many = details_.recordings.size() > 1;
    for (const RecordingDetails& recording : details_.recordings) {
      if (are_many) heading(format("Recording {} on {}", one_line(recording.info.id), one_line(recording.info.node)));
      print_recording(recording);
    }
    if (details_.recordings.empty() && details_.problems.empty()) out_ << "\nNothing is recorded yet.\n";
    if (!details_.problems.empty()) heading("Not readable");
    for (const std::string& problem : details_.problems) out_ << "  " << one_line(problem) << '\n';
  }

 private:
  void heading(std::string_view text) { out_ << '\n' << ink_.bold(text) << '\n'; }
  void line(std::string_view name, const std::string& text) {
    if (!text.empty()) out_ << cut_to(format("  {:<12}{}", name, text), width_) << '\n';
  }

  void print_run() {
    const RunSummary& run = details_.summary;
    const RunInfo& info = run.info;
    out_ << ink_.bold(one_line(info.name)) << "  " << one_line(info.id) << '\n';
    line("status", shown_status(run.status, info) + (info.attempt > 1 ? format(", attempt {}", info.attempt) : ""));
    line("started", shown_wall_time(info.start_wall_ns) +
                        (run.duration_ns ? ", took " + format_duration(*run.duration_ns) : std::string()));
    line("command", shown_command(info.command));
    line("in", one_line(info.working_directory));
    line("node", one_line(info.node));
    line("recorded by", info.hotlap_version.empty() ? "" : "hotlap " + one_line(info.hotlap_version));
    if (info.interval_ns > 0) line("sampled", "every " + format_duration(info.interval_ns));
    if (const std::optional<Price>& price = info.price; price) {
      line("price", format("{:.4g} {}/h ({})", price->per_hour, one_line(price->currency), one_line(price->source)));
    }
    line("environment", joined(info.environment));
    line("joined by", joined(info.join_keys));
    line("folder", format("{} ({})", one_line(run.folder.string()), format_bytes(static_cast<double>(run.bytes))));
    if (run.verdict_line) line("verdict", one_line(*run.verdict_line));
  }

  void print_recording(const RecordingDetails& recording) {
    print_processes(recording);
    print_phases(recording);
    print_series(recording);
    print_spans(recording);
    print_events(recording);
    print_losses(recording);
  }

  void print_processes(const RecordingDetails& recording) {
    if (recording.processes.empty()) return;
    heading("Processes");
    TextTable table({{.title = "SLOT"},
                     {.title = "PID", .align = Align::kRight},
                     {.title = "HOOK"},
                     {.title = "LIVED", .align = Align::kRight},
                     {.title = "COMMAND"}});
    for (const ProcessInfo& process : recording.processes) {
      const std::string reason = one_line(process.hook_absent_reason);
      const bool has_both = process.start_ns >= 0 && process.end_ns >= process.start_ns;
      table.add({one_line(slot_label(process)), format("{}", process.pid),
                 process.has_hook ? "yes"
                 : reason.empty() ? "no"
                                  : "no: " + reason,
                 has_both ? format_duration(process.end_ns - process.start_ns) : "?", one_line(process.command)});
    }
    out_ << table.text("  ", width_, ink_);
  }

  void print_phases(const RecordingDetails& recording) {
    if (recording.phases.empty()) return;
    heading("Phases");
    TextTable table({{}, {.align = Align::kRight}});
    for (const PhaseStretch& phase : recording.phases) {
      table.add({one_line(phase.name), format_duration(phase.to_ns - phase.from_ns)});
    }
    out_ << table.text("  ", width_, ink_);
  }

  void print_series(const RecordingDetails& recording) {
    if (recording.groups.empty()) return;
    heading("Series");
    TextTable table({{.title = "COLLECTOR"},
                     {.title = "SERIES", .align = Align::kRight},
                     {.title = "PER SECOND", .align = Align::kRight},
                     {.title = "VALUES", .align = Align::kRight},
                     {.title = "MISSING", .align = Align::kRight},
                     {.title = "WHY MISSING"}});
    for (const SeriesGroup& group : recording.groups) {
      std::string why;
      for (const auto& [reason, count] : group.missing_by_reason) {
        why += format("{}{} {}", why.empty() ? "" : ", ", reason, shown_count(count));
      }
      table.add({one_line(group.collector), shown_count(group.series),
                 group.samples_per_s ? format("{:.3g}", *group.samples_per_s) : "?", shown_count(group.values),
                 shown_count(group.missing), why});
    }
    out_ << table.text("  ", width_, ink_);
    if (!recording.is_every_sample_read) out_ << "  (reasons of the last minutes only: the recording is long)\n";
  }

  void print_spans(const RecordingDetails& recording) {
    if (recording.spans.empty()) return;
    heading("Spans");
    TextTable table({{}, {.align = Align::kRight}});
    for (const SpanCount& count : recording.spans) {
      table.add({std::string(to_string(count.kind)), shown_count(count.count)});
    }
    out_ << table.text("  ", width_, ink_);
  }

  void print_events(const RecordingDetails& recording) {
    TextTable table({{.align = Align::kRight}, {}, {}});
    std::size_t count = 0;
    for (const Event& event : recording.events) {
      const bool is_shown_above = event.kind == EventKind::kPhase || event.kind == EventKind::kProcessStart ||
                                  event.kind == EventKind::kProcessEnd;
      if (is_shown_above || ++count > kEventsShownMax) continue;
      const std::int64_t from_ns = recording.extent ? recording.extent->from_ns : event.t_ns;
      table.add({"+" + format_duration(event.t_ns - from_ns), std::string(to_string(event.kind)), shown_event(event)});
    }
    if (count == 0) return;
    heading("Events");
    out_ << table.text("  ", width_, ink_);
    if (count > kEventsShownMax) out_ << format("  … and {} more: --json has all\n", count - kEventsShownMax);
  }

  static std::string shown_event(const Event& event) {
    switch (event.kind) {
      case EventKind::kClockStep:
      case EventKind::kSuspend:
      case EventKind::kRecorderGap:
      case EventKind::kIntervalChanged: return format_duration(event.value);
      case EventKind::kTransfer:  // its text has the amount, when it is known
      case EventKind::kNote:
      case EventKind::kGpuFound:
      case EventKind::kGpuLost:
      case EventKind::kGpuBack:
      case EventKind::kMountStuck: return one_line(event.text);
      default: return format("{}{}{}", event.value, event.text.empty() ? "" : " ", one_line(event.text));
    }
  }

  void print_losses(const RecordingDetails& recording) {
    if (recording.losses.empty()) return;
    heading("Lost");
    TextTable table({{}, {.align = Align::kRight}, {}});
    for (const Loss& loss : recording.losses) {
      table.add({one_line(loss.counter), shown_count(loss.count), one_line(loss.help)});
    }
    out_ << table.text("  ", width_, ink_);
  }

  const RunDetails& details_;
  std::ostream& out_;
  std::size_t width_;
  Ink ink_;
};

Result<int> run(const Args& args, Streams& streams) {
  const std::vector<std::string>& named = args.positional("RUN");
  HOTLAP_TRY_ASSIGN(const std::filesystem::path home, hotlap_home());
  HOTLAP_TRY_ASSIGN(const RunFolder folder, RunFolder::find(home, named.empty() ? "last" : named[0]));
  const RunDetails details = read_run_details(folder, system_clock().read().wall_ns);
  if (args.has("--json")) {
    streams.out << run_details_json(details) << '\n';
  } else {
    Page(details, streams).print();
  }
  // Something is readable: that is shown, and the code says that it is not all.
  return int{details.problems.empty() ? kExitSuccess : kExitFailed};
}

}  // namespace

extern constinit const CommandSpec command_show{
    .name = "show",
    .summary = "Show what a run recorded: processes, phases, series, events, and what was lost.",
    .example = "hotlap show last",
    .help =
        "The verdict is hotlap why's. Exit code 1 when part of the run cannot be read; the rest is shown all the same.",
    .flags = kFlags,
    .positionals = kPositionals,
    .run = run};

}  // namespace hotlap
