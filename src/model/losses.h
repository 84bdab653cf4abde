#pragma once
// Named counters of what was dropped, repaired or skipped. Users see every one that is not 0.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hotlap {

enum class LossSeverity : std::uint8_t { kInfo, kNotice, kDataLoss, kError };

struct LossDesc {
  std::string_view counter;  // area.thing: "hook.records_dropped"
  LossSeverity severity;
  std::string_view help;  // what it means and what to do
};

struct Loss {
  std::string counter;
  std::uint64_t count = 0;
  std::int64_t first_offset = -1;  // byte of the input where it first happened; -1: not a file
  std::string help;
  friend bool operator==(const Loss&, const Loss&) = default;
};

// Every counter that the program knows; a meta-test holds that names are unique and each has a help text.
inline constexpr std::array kLosses{
    LossDesc{"hook.records_dropped", LossSeverity::kDataLoss,
             "the hook's ring was full: steps or spans are missing; the recorder was stopped or starved"},
    LossDesc{"hook.frames_damaged", LossSeverity::kDataLoss,
             "a block in the hook's ring failed its checksum and was skipped"},
    LossDesc{"hook.errors", LossSeverity::kDataLoss,
             "errors inside the hook: what it was just noting is missing; the attribute hook.error of the process says "
             "where"},
    LossDesc{
        "hook.names_missing", LossSeverity::kDataLoss,
        "spans without their name, and counts left out, for want of it: too many names, or the recorder was started "
        "again"},
    LossDesc{"hook.records_unknown", LossSeverity::kNotice,
             "the hook is newer than the recorder: records of unknown kind"},
    LossDesc{
        "observe.records_dropped", LossSeverity::kDataLoss,
        "a native observer in the job had no room: the recorder was stopped or starved, or more was open or in use "
        "at a time than the observer's bounds"},
    LossDesc{
        "observe.spans_left_out", LossSeverity::kInfo,
        "short spans of a native observer that are not kept one by one, since there are very many: calls and time by "
        "name are complete (range.calls, range.time.ns)"},
    LossDesc{"record.ticks_late", LossSeverity::kInfo,
             "samples taken more than half an interval late: the machine was busy"},
    LossDesc{"record.ticks_skipped", LossSeverity::kNotice,
             "samples not taken because the recorder did not get to run"},
    LossDesc{"record.series_refused", LossSeverity::kDataLoss,
             "more series than the bound: some instances are not recorded"},
    LossDesc{"record.samples_dropped", LossSeverity::kDataLoss, "the writer could not keep up: samples were dropped"},
    LossDesc{"record.spans_dropped", LossSeverity::kDataLoss, "the writer could not keep up: spans were dropped"},
    LossDesc{"record.notes_dropped", LossSeverity::kDataLoss,
             "the writer could not keep up: events or descriptions were dropped"},
    LossDesc{"record.restarts", LossSeverity::kNotice, "the recorder died and was started again: there is a gap"},
    LossDesc{"record.processes_refused", LossSeverity::kNotice, "more processes than the bound: some are not followed"},
    LossDesc{"collect.errors", LossSeverity::kNotice, "a collector failed and was backed off"},
    LossDesc{"collect.duplicates", LossSeverity::kInfo, "a source named the same instance twice; the first one counts"},
    LossDesc{"store.commits_failed", LossSeverity::kDataLoss,
             "writing to the run folder failed; see the recorder's log"},
    LossDesc{"store.samples_lost", LossSeverity::kDataLoss,
             "samples that could not be written and no longer fit in memory"},
    LossDesc{"store.spans_lost", LossSeverity::kDataLoss,
             "spans that could not be written and no longer fit in memory"},
    LossDesc{"store.events_lost", LossSeverity::kDataLoss,
             "events that could not be written and no longer fit in memory"},
    LossDesc{"store.blocks_damaged", LossSeverity::kDataLoss,
             "stored blocks that failed their checksum and were skipped"},
    LossDesc{"store.clock_unknown", LossSeverity::kNotice, "Unix time is unknown for part of the run"},
    LossDesc{"analysis.spans_refused", LossSeverity::kDataLoss,
             "spans beyond a bound of the analysis: parts of some steps are missing"},
    LossDesc{"analysis.steps_damaged", LossSeverity::kDataLoss, "steps whose end was not seen"},
    LossDesc{"ingest.values_unreadable", LossSeverity::kDataLoss,
             "values that are neither a number nor a known word for none: they are missing"},
    LossDesc{"ingest.lines_unknown", LossSeverity::kInfo,
             "lines of a log that say nothing of steps, loss or throughput in a form that is known"},
    LossDesc{"ingest.events_repaired", LossSeverity::kNotice,
             "events whose JSON is damaged (quotes, commas, brackets): what can be read of them is kept"},
    LossDesc{"ingest.texts_repaired", LossSeverity::kNotice,
             "events with control bytes, bytes that are no UTF-8 or bad escapes: mended where they are kept"},
    LossDesc{"ingest.numbers_repaired", LossSeverity::kNotice,
             "events with nan, inf or other numbers that JSON does not have: missing"},
    LossDesc{"ingest.numbers_wide", LossSeverity::kNotice,
             "events with whole numbers beyond int64: identifiers up to 64 bits keep their bits, others are missing"},
    LossDesc{"ingest.members_repeated", LossSeverity::kNotice,
             "events that have a member or an argument twice: the last one counts"},
    LossDesc{"ingest.kernels_before_launch", LossSeverity::kNotice,
             "work of a device that begins before the call that launched it: its launch takes no time"},
    LossDesc{"ingest.events_dropped", LossSeverity::kDataLoss, "events that could not be read"},
    LossDesc{"ingest.events_skipped", LossSeverity::kInfo,
             "events of kinds that are not kept: flows, object states, clock and memory marks"},
    LossDesc{"ingest.arguments_skipped", LossSeverity::kInfo, "arguments of events that are not kept"},
    LossDesc{"ingest.details_dropped", LossSeverity::kDataLoss,
             "kept arguments of events that are no JSON, beyond 32 KiB, or more different ones than the bound"},
    LossDesc{"ingest.durations_invalid", LossSeverity::kNotice,
             "events with a negative or impossible duration: their end is missing"},
    LossDesc{"ingest.times_invalid", LossSeverity::kDataLoss, "events at an impossible time, dropped"},
    LossDesc{"ingest.begins_unmatched", LossSeverity::kNotice, "begins without an end: their end is missing"},
    LossDesc{"ingest.ends_unmatched", LossSeverity::kNotice, "ends without a begin, dropped"},
    LossDesc{"ingest.names_dropped", LossSeverity::kDataLoss,
             "events whose name is missing: more different names than the bound"},
    LossDesc{"ingest.samples_out_of_order", LossSeverity::kNotice,
             "samples at the time of another one of their series or before it, dropped"},
    LossDesc{"ingest.input_truncated", LossSeverity::kDataLoss,
             "the input ends in the middle; what came before is kept"},
    LossDesc{"ingest.input_damaged", LossSeverity::kDataLoss,
             "the compressed input is damaged; what came before is kept"},
    LossDesc{"ingest.input_unreadable", LossSeverity::kDataLoss, "text between events that is none, skipped"},
    LossDesc{"ingest.expansion_stopped", LossSeverity::kDataLoss,
             "the compressed input grows beyond all measure; reading stopped there"},
    LossDesc{"ingest.cancelled", LossSeverity::kDataLoss, "the import was interrupted; what came before is kept"},
    LossDesc{"ingest.files_skipped", LossSeverity::kInfo, "files of the folder that are of no known format"},
};

}  // namespace hotlap
