// What training scripts print: lines with an epoch, a step, a loss, times and rates, of tqdm, Lightning, Keras, the
// Trainer of Transformers, Megatron, DeepSpeed, torchvision, timm, mmcv, detectron2, and of one's own in such a form.
// Steps between two lines have the mean of what lies between; what is not understood is counted.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/civil_time.h"
#include "ingest/importer.h"
#include "ingest/lines.h"
#include "ingest/log_items.h"
#include "ingest/log_line.h"
#include "ingest/log_messages.h"
#include "ingest/log_prefix.h"
#include "ingest/log_run.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;
constexpr std::size_t kRanksMax = 4096;

class TrainingLogImporter final : public StreamImporter {
 public:
  explicit TrainingLogImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }

  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    if (understood_ == 0) {
      return Error{
          ErrorCode::kInvalidInput,
          format("a text of {} lines, none of which says a step, an epoch, a loss, a rate or what went wrong in "
                 "a form that is known; see docs/reference/ingest.md for the forms",
                 read_)};
    }
    if (auto failure = messages_.failure()) give_events({std::move(*failure)});
    std::uint64_t printed = 0;
    std::uint64_t given = 0;
    std::uint64_t refused = 0;
    std::uint64_t guessed = 0;
    for (auto& [rank, run] : runs_) {
      run.finish();
      printed += run.steps_printed();
      given += run.steps_given();
      refused += run.steps_refused();
      guessed += run.guessed_times();
    }
    if (given > printed) {
      out_.attribute("import.steps",
                     format("{} of {} steps were printed; the others have the mean of what lies between "
                            "two lines",
                            printed, given));
    }
    if (refused > 0) out_.count_loss("ingest.events_dropped", refused, 0);
    if (const auto size = messages_.world_size()) out_.attribute("job.world_size", format("{}", *size));
    if (has_times_ && !has_year_) {
      out_.attribute("import.time", "the log says no year: its times tell only what lies between its lines");
    } else if (!is_absolute_) {
      out_.attribute("import.time", guessed > 0 ? "the log says no times: one second a line is assumed"
                                                : "the log says no time of day: times count from its first line");
    } else if (!has_zone_) {
      out_.attribute("import.time", "the log says no time zone: its times are taken for UTC");
    }
    return ImportStats{.bytes = lines_.bytes(), .events = understood_};
  }

 private:
  void take(const TextLine& line) {
    const std::string text = without_escapes(line.text);
    if (trim(text).empty()) return;
    ++read_;
    const LogPrefix prefix = read_log_prefix(text);
    const std::string_view rest = std::string_view(text).substr(prefix.length);
    std::optional<std::int64_t> unix_ns = prefix.unix_ns;
    if (unix_ns && !prefix.has_year) unix_ns = with_year(*unix_ns);
    bool has_zone = prefix.has_zone;
    if (!unix_ns) {
      if (const auto time = time_within(rest)) {
        unix_ns = time->unix_ns;
        has_zone = time->has_zone;
      }
    }
    auto read = line.is_too_long ? std::nullopt : read_log_line(rest);
    if (read && !unix_ns) {
      const auto told = (*read)[Figure::kUnixTime];
      if (told && told->value > 1e9 && told->value < 9e9) {
        unix_ns = std::llround(told->value * 1e9);
        has_zone = true;
      }
    }
    if (unix_ns) last_unix_ns_ = unix_ns;
    if (unix_ns && !is_clock_told_) has_zone_ = has_zone;
    is_resumed_ |= says_resumed(rest);
    if (take_message(text, rest, prefix.rank, unix_ns)) return;
    if (!read) return out_.count_loss("ingest.lines_unknown", 1, line.offset);
    tell_clock();
    ++understood_;
    const auto found = runs_.find(prefix.rank);
    if (found == runs_.end() && runs_.size() == kRanksMax) {
      return out_.count_loss("ingest.events_dropped", 1, line.offset);
    }
    LogRun& run =
        found != runs_.end() ? found->second : runs_.emplace(prefix.rank, LogRun(out_, prefix.rank)).first->second;
    // Steps behind an error: it was caught, or the job was started again.
    if (read->has(Figure::kStep) && (messages_.failure() || std::exchange(is_resumed_, false))) {
      for (auto& [of_rank, each] : runs_) each.take_failure();
    }
    run.take(*read, has_times_ ? unix_ns : std::nullopt, has_times_ ? last_unix_ns_ : std::nullopt);
    if (const auto step_ns = run.take_clock_step()) {
      give_events({Event{.t_ns = 0, .kind = EventKind::kClockStep, .value = *step_ns, .text = {}}});
    }
    if (const auto silence = run.take_silence()) {
      give_events(
          {Event{.t_ns = 0,
                 .kind = EventKind::kNote,
                 .value = prefix.rank,
                 .text = format("{} step={} ms={}", kSilenceNote, silence->after_step, silence->ns / kNsPerMs)}});
    }
    if (const auto restart = run.take_restart()) {
      give_events(
          {Event{.t_ns = 0,
                 .kind = EventKind::kNote,
                 .value = prefix.rank,
                 .text = format("{} steps={} lost_ms={}", kRestartNote, restart->steps, restart->lost_ns / kNsPerMs)}});
    }
  }

  // "resuming from checkpoint at step 500", "Resumed training from ./checkpoint-500"
  static bool says_resumed(std::string_view text) {
    const std::size_t at = text.find("esum");
    return at != std::string_view::npos && at > 0 && (text[at - 1] == 'r' || text[at - 1] == 'R') &&
           text.find("from", at) != std::string_view::npos;
  }

  // Of the first line that is understood: whether the times of this log are Unix time.
  void tell_clock() {
    if (std::exchange(is_clock_told_, true)) return;
    has_times_ = last_unix_ns_.has_value();
    is_absolute_ = has_times_ && has_year_;
    const std::int64_t uncertainty_ns = !is_absolute_ ? -1 : has_zone_ ? kNsPerS : kZoneUncertaintyNs;
    out_.clock({.offset_ns = 0, .uncertainty_ns = uncertainty_ns, .is_absolute = is_absolute_});
  }

  // True: the line says what happened to the job, and nothing of steps. It happened when the last step had ended.
  // `rest` is `text` without what says when and by whom it was printed, which a list of ranks looks like.
  bool take_message(std::string_view text, std::string_view rest, std::int32_t rank,
                    std::optional<std::int64_t> unix_ns) {
    if (!messages_.take(text, rank)) return false;
    const std::vector<Event> events = messages_.events();
    const bool is_pause = std::ranges::any_of(events, [](const Event& event) { return pause_of(event).has_value(); });
    const bool is_figures = is_pause && read_log_line(rest);
    tell_clock();
    // A bar of the evaluation is a line of its own.
    for (const Event& event : events) {
      const auto pause = pause_of(event);
      if (!pause || (is_figures && *pause == LogPause::kEvaluation)) continue;
      for (auto& [of_rank, run] : runs_) {
        if (rank < 0 || of_rank < 0 || of_rank == rank) run.take_pause(*pause, has_times_ ? unix_ns : std::nullopt);
      }
    }
    if (!is_figures) ++understood_;
    give_events(events);
    return !is_figures;
  }
  static std::optional<LogPause> pause_of(const Event& event) {
    if (is_note_of(event, kSavedNote)) return LogPause::kSaved;
    if (is_note_of(event, kEvaluationNote)) return LogPause::kEvaluation;
    return std::nullopt;
  }

  // Times without a year go on over the turn of the year.
  std::int64_t with_year(std::int64_t unix_ns) {
    constexpr std::int64_t kYearNs = 365LL * 86'400 * kNsPerS;
    has_year_ = false;
    if (last_unix_ns_ && unix_ns + year_ns_ < *last_unix_ns_ - kYearNs / 2) year_ns_ += kYearNs;
    return unix_ns + year_ns_;
  }

  void give_events(const std::vector<Event>& events) {
    std::int64_t now_ns = has_times_ ? last_unix_ns_.value_or(0) : 0;
    for (const auto& [rank, run] : runs_) now_ns = std::max(now_ns, run.now_ns());
    for (Event event : events) {
      event.t_ns = now_ns;
      out_.event(event);
    }
  }

  // {"time": "2024-04-05T06:17:19Z", …}, "INFO 2024-04-05 06:17:19 …"
  static std::optional<CivilTime> time_within(std::string_view text) {
    text = text.substr(0, 256);
    for (std::size_t at = text.find("20"); at != std::string_view::npos; at = text.find("20", at + 1)) {
      const bool is_inside_word = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';
      if (is_inside_word) continue;
      if (const auto time = read_civil_time(text.substr(at))) return time;
    }
    return std::nullopt;
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax, LineEnds::kNewlineOrCarriageReturn};
  std::map<std::int32_t, LogRun> runs_;  // by rank; -1: no line says one
  LogMessages messages_;
  std::optional<std::int64_t> last_unix_ns_;
  std::uint64_t read_ = 0;
  std::uint64_t understood_ = 0;
  bool is_clock_told_ = false;
  bool is_resumed_ = false;  // a line said so, and no step has come since
  bool has_times_ = false;
  bool has_year_ = true;
  std::int64_t year_ns_ = 0;  // beyond the first of a log without years
  bool is_absolute_ = false;
  bool has_zone_ = false;
};

// A line that is understood, or the name of a log; never what begins like a document.
bool sniff(ByteView head_untrusted, std::string_view file_name) {
  const std::string text = sniffed_text(head_untrusted);
  const std::string_view begin = trim(text);
  if (begin.empty() || begin.starts_with('<')) return false;
  const bool is_list = begin.starts_with('[') && trim(begin.substr(1)).starts_with('{');
  const bool is_object =
      begin.starts_with('{') && begin.substr(0, begin.find('\n')).find('}') == std::string_view::npos;
  if (is_list || is_object || begin.find("\"traceEvents\"") != std::string_view::npos) return false;
  LineCutter lines(text.size(), LineEnds::kNewlineOrCarriageReturn);
  bool is_understood = false;
  LogMessages messages;
  lines.push(as_bytes(text), [&](const TextLine& line) {
    if (is_understood) return;
    const std::string plain = without_escapes(line.text);
    const std::string_view rest = std::string_view(plain).substr(read_log_prefix(plain).length);
    is_understood = read_log_line(rest).has_value() || (!begin.starts_with('{') && messages.take(plain, -1));
    // Any program's errors look like those, but not a loader's or a GPU's.
    const auto failure = messages.failure();
    if (failure && message_word(failure->text, "kind") == "other") is_understood = false;
  });
  if (is_understood) return true;
  const bool is_named_log = file_name.ends_with(".log") || file_name.ends_with(".out") || file_name.ends_with(".err");
  const bool is_text = std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\b' && c != '\x1b';
  });
  return is_named_log && is_text && !begin.starts_with('{');
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<TrainingLogImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_training_log{
    .name = "training_log",
    .summary = "Logs of training scripts: epochs, steps, losses, times and rates as the frameworks print them.",
    .extensions = ".log .txt .out .err .jsonl",
    .priority = 20,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
