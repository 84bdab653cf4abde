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
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;
constexpr std::size_t kRanksMax = 4096;
constexpr std::size_t kOtherNamesMax = 256;
constexpr std::int64_t kStepsOfBlockMax = 100'000;  // more between two lines are not believed
constexpr std::uint64_t kStepsMax = 20'000'000;
constexpr double kStepMax = 1e15;
constexpr double kSecondsMax = 1e8;
constexpr std::int64_t kLineWithoutTimeNs = kNsPerS;

struct FigureSeries {
  Figure figure;
  MetricDesc metric;
};
constexpr MetricDesc gauge(std::string_view name, std::string_view unit, std::string_view help) {
  return {.name = name, .unit = unit, .help = help};
}
constexpr std::array kSeries{
    FigureSeries{Figure::kLoss, gauge("train.loss", "1", "Loss as printed.")},
    FigureSeries{Figure::kEvalLoss, gauge("eval.loss", "1", "Loss of the evaluation as printed.")},
    FigureSeries{Figure::kLearningRate, gauge("train.learning_rate", "1", "Learning rate as printed.")},
    FigureSeries{Figure::kGradientNorm, gauge("train.gradient_norm", "1", "Norm of the gradients as printed.")},
    FigureSeries{Figure::kStepTime, gauge("train.step.seconds", "s", "Time of a step as printed.")},
    FigureSeries{Figure::kDataTime, gauge("train.data_wait.seconds", "s", "Wait for data of a step as printed.")},
    FigureSeries{Figure::kSampleRate, gauge("train.samples.rate", "{sample}/s", "Samples a second as printed.")},
    FigureSeries{Figure::kTokenRate, gauge("train.tokens.rate", "{token}/s", "Tokens a second as printed.")},
    FigureSeries{Figure::kStepRate, gauge("train.steps.rate", "{step}/s", "Steps a second as printed.")},
    FigureSeries{Figure::kEpoch, gauge("train.epoch", "1", "Epoch as printed.")},
};

bool is_plain(double value, double max) { return std::isfinite(value) && value >= 0 && value <= max; }

// The training of one rank, as its lines tell it.
class LogRun {
 public:
  LogRun(ImportSink& out, std::int32_t rank) : out_(out), rank_(rank) {}

  // `unix_ns`: the line's own time; `last_unix_ns`: the last one that any line had.
  void take(const LogLine& line, std::optional<std::int64_t> unix_ns, std::optional<std::int64_t> last_unix_ns) {
    if (!std::exchange(is_started_, true) && last_unix_ns) {
      now_ns_ = *last_unix_ns;
    }
    const std::int64_t before_ns = now_ns_;
    if (line.is_evaluation || line.has(Figure::kEvalTime)) {
      move_to(line, unix_ns, 0);
      take_evaluation(line, before_ns, unix_ns.has_value());
    } else {
      take_training(line, unix_ns);
    }
    give_series(line);
  }

  void finish() {
    close_evaluation();
    close_epoch();
  }
  std::int64_t now_ns() const { return now_ns_; }
  std::uint64_t steps_printed() const { return steps_printed_; }
  std::uint64_t steps_given() const { return steps_given_; }
  std::uint64_t guessed_times() const { return guessed_times_; }
  std::uint64_t steps_refused() const { return steps_refused_; }

 private:
  // --- time ---

  // Where the line stands on the time axis: its own time, else what a bar says has passed, else the steps' own time.
  void move_to(const LogLine& line, std::optional<std::int64_t> unix_ns, std::int64_t steps_ns) {
    if (unix_ns) {
      now_ns_ = std::max(now_ns_, *unix_ns);
    } else if (line.passed_s && is_plain(*line.passed_s, kSecondsMax)) {
      const std::int64_t passed_ns = std::llround(*line.passed_s * 1e9);
      const Bar bar{.total = line.total, .epoch = line.bar_epoch, .is_of_evaluation = line.is_evaluation};
      if (bar_ != bar || passed_ns < bar_passed_ns_) bar_begin_ns_ = now_ns_;  // another bar
      bar_ = bar;
      bar_passed_ns_ = passed_ns;
      now_ns_ = std::max(now_ns_, bar_begin_ns_ + passed_ns);
    } else if (steps_ns > 0) {
      now_ns_ += steps_ns;
    } else if (!has_time_ && !line.has(Figure::kStep) && line.has(Figure::kLoss)) {
      now_ns_ += kLineWithoutTimeNs;
      ++guessed_times_;
    }
    has_time_ |= unix_ns || line.passed_s || steps_ns > 0;
  }

  // --- training ---

  void take_training(const LogLine& line, std::optional<std::int64_t> unix_ns) {
    close_evaluation();
    const auto epoch = line[Figure::kEpoch];
    const bool counts_epochs = line.epoch_of || line.step_restarts;
    const bool is_new_epoch =
        epoch && counts_epochs && epoch->value == std::floor(epoch->value) && epoch_ != epoch->value;
    if (is_new_epoch) {
      close_epoch();
      epoch_ = epoch->value;
      is_epoch_new_ = true;
    }
    const auto step = line[Figure::kStep];
    if (!step || !is_plain(step->value, kStepMax)) {
      move_to(line, unix_ns, 0);
      if (is_new_epoch) epoch_begin_ns_ = now_ns_;
      return;
    }
    const auto index = static_cast<std::int64_t>(step->value);
    const bool restarts =
        line.step_restarts && last_index_ >= 0 && (index < last_index_ || (is_epoch_new_ && was_restarting_));
    is_epoch_new_ = false;
    is_zero_based_ |= index == 0 && !line.is_bar;
    if (restarts) {
      base_ += last_total_ > 0 ? last_total_ : last_index_;
      if (!unix_ns && !line.passed_s) give_unseen_steps();
    }
    was_restarting_ = line.step_restarts;
    last_total_ = line.total && is_plain(*line.total, kStepMax) ? static_cast<std::int64_t>(*line.total) : 0;
    const std::int64_t number = base_ + index;
    const std::int64_t count = steps_since_last(line, number, index);
    last_index_ = index;
    const std::int64_t begin_ns = now_ns_;
    const bool had_time = has_time_;
    const std::int64_t own_ns = count > 0 ? own_time(line, count, restarts) : 0;
    move_to(line, unix_ns, own_ns);
    if (is_new_epoch) epoch_begin_ns_ = begin_ns;
    std::int64_t block_ns = own_ns;
    const std::int64_t between_ns = now_ns_ - begin_ns;
    const bool is_between_known = (had_time && last_number_ >= 0) || line.passed_s;
    if (is_between_known && (block_ns == 0 || block_ns > between_ns)) block_ns = between_ns;
    if (count > 0 && block_ns > 0) {
      ++steps_printed_;
      const auto time = line[Figure::kStepTime];
      const auto data = line[Figure::kDataTime];
      const bool has_last = count > 1 && time && time->average && is_plain(time->value, kSecondsMax);
      give_steps(
          {.number = number,
           .count = count,
           .ns = block_ns,
           .last_ns = has_last ? std::min<std::int64_t>(std::llround(time->value * 1e9), block_ns) : block_ns / count,
           .wait_s = wait_of_others(line, count, restarts),
           .last_wait_s = data ? data->value : -1,
           .samples = samples(line)});
    } else if (last_number_ >= 0 && count > 0) {
      return;  // time stands still at the resolution of the log: they end with the next line
    }
    // A first line without any time says from where the next ones count.
    if (block_ns > 0 || unix_ns || line.is_bar || count <= 0) last_number_ = number;
    remember(line, index);
  }

  // How many steps the line ends. The first line that is seen of a count that began before it ends one.
  std::int64_t steps_since_last(const LogLine& line, std::int64_t number, std::int64_t index) const {
    if (last_number_ >= 0) return number - last_number_;
    if (line.is_bar) return index;  // it says how many are done
    return line.step_restarts ? std::max<std::int64_t>(index, 1) : 1;
  }

  // The time of the steps that end here, by what is printed of them; 0: nothing is.
  std::int64_t own_time(const LogLine& line, std::int64_t count, bool restarts) const {
    if (line.is_bar && line.passed_s) return 0;  // a bar's rate is a moving mean
    const auto time = line[Figure::kStepTime];
    if (time && is_plain(time->value, kSecondsMax)) {
      if (!time->average) return std::llround(time->value * static_cast<double>(count) * 1e9);
      // A mean over the epoch so far: its sum has grown by what these steps took.
      const double sum_s = *time->average * (static_cast<double>(line[Figure::kStep]->value) + 1);
      const double grown_s =
          restarts || sums_index_ < 0 ? time->value * static_cast<double>(count) : sum_s - time_sum_s_;
      if (is_plain(grown_s, kSecondsMax)) return std::llround(std::max(grown_s, time->value) * 1e9);
      return std::llround(time->value * static_cast<double>(count) * 1e9);
    }
    const auto rate = line[Figure::kStepRate];
    if (rate && !line.passed_s && rate->value > 1e-6 && is_plain(rate->value, 1e9)) {
      return std::llround(static_cast<double>(count) / rate->value * 1e9);
    }
    return 0;
  }

  void remember(const LogLine& line, std::int64_t index) {
    const auto time = line[Figure::kStepTime];
    const auto data = line[Figure::kDataTime];
    sums_index_ = time && time->average ? index : -1;
    time_sum_s_ = time && time->average ? *time->average * (static_cast<double>(index) + 1) : 0;
    data_sum_s_ = data && data->average ? *data->average * (static_cast<double>(index) + 1) : 0;
  }

  // Of the steps before the last one: where data waits are printed beside their mean, what the mean's sum has grown by.
  double wait_of_others(const LogLine& line, std::int64_t count, bool restarts) const {
    const auto data = line[Figure::kDataTime];
    if (!data) return -1;
    if (!data->average) return data->value;
    if (restarts || sums_index_ < 0 || count < 2) return *data->average;
    const double sum_s = *data->average * (static_cast<double>(line[Figure::kStep]->value) + 1);
    return std::max(0.0, (sum_s - data_sum_s_ - data->value) / static_cast<double>(count - 1));
  }

  // Steps that end now, the last one perhaps with a time of its own.
  struct Block {
    std::int64_t number = 0;  // of the last
    std::int64_t count = 0;
    std::int64_t ns = 0;  // of all
    std::int64_t last_ns = 0;
    double wait_s = -1;  // of each but the last; negative: not told
    double last_wait_s = -1;
    std::int64_t samples = -1;
  };
  void give_steps(const Block& block) {
    if (block.count > kStepsOfBlockMax || steps_given_ + static_cast<std::uint64_t>(block.count) > kStepsMax) {
      steps_refused_ += static_cast<std::uint64_t>(block.count);
      return;
    }
    const std::int64_t rest_ns = block.count > 1 ? (block.ns - block.last_ns) / (block.count - 1) : 0;
    std::int64_t start_ns = now_ns_ - block.ns;
    for (std::int64_t k = 1; k <= block.count; ++k) {
      const bool is_last = k == block.count;
      const std::int64_t step = block.number - block.count + k;
      const std::int64_t duration_ns = is_last ? now_ns_ - start_ns : rest_ns;
      give_wait(is_last ? block.last_wait_s : block.wait_s, step, start_ns, duration_ns);
      out_.span({.start_ns = start_ns,
                 .duration_ns = duration_ns,
                 .kind = SpanKind::kStep,
                 .process = slot(),
                 .step = step,
                 .value_a = block.samples});
      start_ns += duration_ns;
    }
    steps_given_ += static_cast<std::uint64_t>(block.count);
    mean_ns_ = block.ns / block.count;
    mean_wait_s_ = block.count > 1 ? block.wait_s : block.last_wait_s;
  }

  // The last steps of an epoch whose end was not printed: as long as those before them.
  void give_unseen_steps() {
    const std::int64_t end = base_ - (is_zero_based_ ? 1 : 0);
    const std::int64_t count = end - last_number_;
    if (last_number_ < 0 || count <= 0 || count > kStepsOfBlockMax || mean_ns_ <= 0) return;
    now_ns_ += count * mean_ns_;
    give_steps({.number = end,
                .count = count,
                .ns = count * mean_ns_,
                .last_ns = mean_ns_,
                .wait_s = mean_wait_s_,
                .last_wait_s = mean_wait_s_});
    last_number_ = end;
  }

  void give_wait(double wait_s, std::int64_t step, std::int64_t start_ns, std::int64_t duration_ns) {
    if (!is_plain(wait_s, kSecondsMax)) return;
    out_.span({.start_ns = start_ns,
               .duration_ns = std::min<std::int64_t>(std::llround(wait_s * 1e9), duration_ns),
               .kind = SpanKind::kDataWait,
               .process = slot(),
               .step = step});
  }
  static std::int64_t samples(const LogLine& line) {
    const auto count = line[Figure::kSamples];
    return count && is_plain(count->value, 1e12) ? std::llround(count->value) : -1;
  }

  // --- epochs and evaluation ---

  void close_epoch() {
    if (epoch_ && epoch_begin_ns_ && now_ns_ > *epoch_begin_ns_) {
      out_.span({.start_ns = *epoch_begin_ns_,
                 .duration_ns = now_ns_ - *epoch_begin_ns_,
                 .kind = SpanKind::kEpoch,
                 .process = slot(),
                 .value_a = is_plain(*epoch_, kStepMax) ? std::llround(*epoch_) : -1});
    }
    epoch_begin_ns_.reset();
  }
  void take_evaluation(const LogLine& line, std::int64_t before_ns, bool is_timed) {
    const auto time = line[Figure::kEvalTime];
    if (time && is_plain(time->value, kSecondsMax)) {
      const std::int64_t duration_ns = std::llround(time->value * 1e9);
      if (!is_timed) now_ns_ += duration_ns;
      give_evaluation(now_ns_ - duration_ns, duration_ns);
      return;
    }
    if (!evaluation_begin_ns_) evaluation_begin_ns_ = before_ns;
  }
  void close_evaluation() {
    if (evaluation_begin_ns_ && now_ns_ > *evaluation_begin_ns_) {
      give_evaluation(*evaluation_begin_ns_, now_ns_ - *evaluation_begin_ns_);
    }
    evaluation_begin_ns_.reset();
  }
  void give_evaluation(std::int64_t start_ns, std::int64_t duration_ns) {
    out_.span({.start_ns = start_ns, .duration_ns = duration_ns, .kind = SpanKind::kEvaluation, .process = slot()});
  }

  // --- series ---

  void give_series(const LogLine& line) {
    // Samples of one series need times that differ; logs have seconds.
    sample_ns_ = std::max(now_ns_, sample_ns_ + kNsPerUs);
    for (const FigureSeries& known : kSeries) {
      const auto reading = line[known.figure];
      if (!reading) continue;
      const bool is_of_evaluation = line.is_evaluation && known.figure == Figure::kLoss;
      give(is_of_evaluation ? kSeries[1].metric : known.metric, reading->value);
    }
    for (const auto& [key, value] : line.others) {
      const bool is_name = key.size() <= 40 && !key.ends_with(".py") && std::ranges::all_of(key, [](char c) {
                             return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/' ||
                                    c == '-' || c == '.' || c == ' ' || c == '@';
                           });
      if (!is_name) continue;
      if (!other_names_.contains(key)) {
        if (other_names_.size() == kOtherNamesMax) continue;
        other_names_.insert(key);
      }
      std::string name = (line.is_evaluation ? "eval.log." : "train.log.") + key;
      std::ranges::replace(name, ' ', '_');
      give(gauge(name, "1", "As the log printed it."), value);
    }
  }
  void give(const MetricDesc& metric, double value) {
    const std::string instance = rank_ >= 0 ? format("rank {}", rank_) : std::string{};
    out_.sample(out_.series(metric, instance), sample_ns_,
                std::isfinite(value) ? Value::of(value) : Value::missing(MissingReason::kReadFailed));
  }

  std::uint32_t slot() {
    if (slot_ == 0) {
      slot_ = rank_ >= 0 ? out_.process({.role = ProcessRole::kRank, .index = rank_})
                         : out_.process({.role = ProcessRole::kMain});
    }
    return slot_;
  }

  // What tells one progress bar from the next.
  struct Bar {
    std::optional<double> total;
    double epoch = -1;
    bool is_of_evaluation = false;
    friend bool operator==(const Bar&, const Bar&) = default;
  };

  ImportSink& out_;
  std::int32_t rank_;
  std::uint32_t slot_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t sample_ns_ = INT64_MIN / 2;
  std::int64_t bar_begin_ns_ = 0;
  std::int64_t bar_passed_ns_ = 0;
  bool is_started_ = false;
  bool has_time_ = false;
  std::optional<Bar> bar_;
  std::optional<double> epoch_;
  std::optional<std::int64_t> epoch_begin_ns_;
  std::optional<std::int64_t> evaluation_begin_ns_;
  std::int64_t base_ = 0;         // steps of the epochs or bars before
  std::int64_t last_index_ = -1;  // as printed
  std::int64_t last_total_ = 0;
  std::int64_t last_number_ = -1;
  bool was_restarting_ = false;
  bool is_zero_based_ = false;  // the first step of an epoch is 0
  bool is_epoch_new_ = false;   // since the last step
  std::int64_t mean_ns_ = 0;    // of the steps of the last block
  double mean_wait_s_ = -1;
  std::int64_t sums_index_ = -1;
  double time_sum_s_ = 0;
  double data_sum_s_ = 0;
  std::set<std::string> other_names_;
  std::uint64_t steps_printed_ = 0;
  std::uint64_t steps_given_ = 0;
  std::uint64_t steps_refused_ = 0;
  std::uint64_t guessed_times_ = 0;
};

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
    if (!is_absolute_) {
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
    if (take_message(text, rest, prefix.rank)) return;
    if (!read) return out_.count_loss("ingest.lines_unknown", 1, line.offset);
    tell_clock();
    ++understood_;
    const auto found = runs_.find(prefix.rank);
    if (found == runs_.end() && runs_.size() == kRanksMax) {
      return out_.count_loss("ingest.events_dropped", 1, line.offset);
    }
    LogRun& run =
        found != runs_.end() ? found->second : runs_.emplace(prefix.rank, LogRun(out_, prefix.rank)).first->second;
    run.take(*read, is_absolute_ ? unix_ns : std::nullopt, is_absolute_ ? last_unix_ns_ : std::nullopt);
  }

  // Of the first line that is understood: whether the times of this log are Unix time.
  void tell_clock() {
    if (std::exchange(is_clock_told_, true)) return;
    is_absolute_ = last_unix_ns_.has_value();
    const std::int64_t uncertainty_ns = !is_absolute_ ? -1 : has_zone_ ? kNsPerS : kZoneUncertaintyNs;
    out_.clock({.offset_ns = 0, .uncertainty_ns = uncertainty_ns, .is_absolute = is_absolute_});
  }

  // True: the line says what happened to the job, and nothing of steps. It happened when the last step had ended.
  // `rest` is `text` without what says when and by whom it was printed, which a list of ranks looks like.
  bool take_message(std::string_view text, std::string_view rest, std::int32_t rank) {
    if (!messages_.take(text, rank)) return false;
    const std::vector<Event> events = messages_.events();
    const bool is_note = std::ranges::any_of(events, [](const Event& event) { return is_note_of(event, kSavedNote); });
    if (is_note && read_log_line(rest)) return give_events(events), false;
    tell_clock();
    ++understood_;
    give_events(events);
    return true;
  }

  void give_events(const std::vector<Event>& events) {
    std::int64_t now_ns = is_absolute_ ? last_unix_ns_.value_or(0) : 0;
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
