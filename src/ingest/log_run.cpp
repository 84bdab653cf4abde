#include "ingest/log_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr double kStepMax = 1e15;
constexpr double kSecondsMax = 1e8;
constexpr std::int64_t kStepsOfTailMax = 100'000;
constexpr std::int64_t kLineWithoutTimeNs = kNsPerS;
constexpr double kDriftMax = 0.03;  // by which steps' own times may exceed the lines': they are rounded
constexpr std::int64_t kClockStepMinNs = 10 * kNsPerS;  // back: lines of several writers come later than that hardly
constexpr std::int64_t kSilenceMinNs = 600 * kNsPerS;
constexpr std::int64_t kSilenceMinSteps = 100;  // times what the steps between two lines usually take
constexpr double kEpochMeanMinShare = 0.05;     // of an epoch, that is not its steps: less is rounding

constexpr std::array<Figure, kLogParts> kParts{Figure::kForwardTime, Figure::kBackwardTime, Figure::kCommunicationTime,
                                               Figure::kOptimizerTime};

bool is_plain(double value, double max) { return std::isfinite(value) && value >= 0 && value <= max; }
bool is_seconds(const std::optional<Reading>& reading) { return reading && is_plain(reading->value, kSecondsMax); }
std::int64_t ns_of(double seconds) { return std::llround(seconds * 1e9); }
std::int64_t whole(const std::optional<double>& value) {
  return value && is_plain(*value, kStepMax) ? static_cast<std::int64_t>(*value) : 0;
}

}  // namespace

void LogRun::take(const LogLine& line, std::optional<std::int64_t> unix_ns, std::optional<std::int64_t> last_unix_ns) {
  if (!std::exchange(is_started_, true) && last_unix_ns) now_ns_ = *last_unix_ns;
  if (unix_ns) unix_ns = without_clock_steps(line, *unix_ns);
  ++lines_;
  if (line.is_timers) return take_timers(line);
  const std::int64_t before_ns = now_ns_;
  const bool is_report = !line.has(Figure::kStep) && line.has(Figure::kEvalLoss);
  if (line.is_evaluation || is_report || line.has(Figure::kEvalTime) || is_bar_of_evaluation(line)) {
    LogLine bar = line;
    bar.is_evaluation = true;
    move_to(bar, unix_ns, 0);
    take_evaluation(bar, before_ns, unix_ns.has_value());
    series_.give(bar, now_ns_);
  } else {
    take_training(line, unix_ns);
    series_.give(line, now_ns_);
  }
}

void LogRun::take_pause(LogPause pause, std::optional<std::int64_t> unix_ns) {
  if (last_number_ < 0) return;
  const std::int64_t at_ns = std::max(now_ns_, unix_ns.value_or(now_ns_));
  if (pause == LogPause::kSaved && evaluation_begin_ns_) {  // the evaluation has ended
    now_ns_ = at_ns;
    close_evaluation();
  }
  if (pause == LogPause::kEvaluation && !evaluation_begin_ns_) {
    now_ns_ = at_ns;
    evaluation_begin_ns_ = at_ns;
  }
  if (pause_ == LogPause::kNone) {
    pause_ = pause;
    pause_at_ns_ = at_ns;
  }
}

void LogRun::finish() {
  close_evaluation();
  close_epoch();
  steps_.finish();
}

// --- time ---

// Steps go on and the time goes back: the clock was set. The steps go on as long as they took before.
std::int64_t LogRun::without_clock_steps(const LogLine& line, std::int64_t unix_ns) {
  const auto step = line[Figure::kStep];
  const bool goes_on = step && last_index_ >= 0 && step->value > static_cast<double>(last_index_) &&
                       step->value <= static_cast<double>(last_index_ + kStepsOfTailMax);
  if (goes_on && stamp_ns_ >= 0 && unix_ns < stamp_ns_ - kClockStepMinNs) {
    const auto steps = static_cast<std::int64_t>(step->value) - last_index_;
    const std::int64_t expected_ns = stamp_ns_ + steps * mean_ns_;
    clock_step_ns_ = unix_ns - expected_ns;
    clock_off_ns_ += expected_ns - unix_ns;
  }
  if (step) stamp_ns_ = unix_ns;
  return unix_ns + clock_off_ns_;
}

// Between two lines with steps lies so much more than steps that they cannot have taken it, and no line says what else
// did: a machine that slept, a clock that was set, a job that hung.
void LogRun::take_silence_before(std::int64_t number, std::int64_t begin_ns) {
  if (pause_ != LogPause::kNone || last_number_ < 0 || mean_ns_ <= 0 || evaluated_to_ns_ > 0) return;
  const std::int64_t usual_ns = (number - last_number_) * mean_ns_;
  const std::int64_t over_ns = now_ns_ - begin_ns - usual_ns;
  if (usual_ns <= 0 || over_ns < kSilenceMinNs || over_ns / kSilenceMinSteps < usual_ns) return;
  pause_ = LogPause::kSilence;
  silence_ = Silence{.after_step = last_number_, .ns = over_ns};
}

// Where the line stands on the time axis: its own time, else what a bar says has passed, else the steps' own time.
void LogRun::move_to(const LogLine& line, std::optional<std::int64_t> unix_ns, std::int64_t steps_ns) {
  if (unix_ns) {
    now_ns_ = std::max(now_ns_, *unix_ns);
  } else if (line.passed_s && is_plain(*line.passed_s, kSecondsMax)) {
    move_by_bar(line);
  } else if (steps_ns > 0) {
    now_ns_ += steps_ns;
  } else if (!has_time_ && !line.has(Figure::kStep) && line.has(Figure::kLoss)) {
    now_ns_ += kLineWithoutTimeNs;
    ++guessed_times_;
  }
  has_time_ |= unix_ns || line.passed_s || steps_ns > 0;
}

// Bars are drawn again and again, that of an evaluation between two drawings of the training's.
void LogRun::move_by_bar(const LogLine& line) {
  BarTime& time = line.is_evaluation ? evaluation_bar_ : training_bar_;
  const std::int64_t passed_ns = ns_of(*line.passed_s);
  const Bar bar{.total = line.total, .epoch = line.bar_epoch};
  const bool is_other = time.bar != bar || passed_ns < time.passed_ns;
  if (is_other || (line.is_evaluation && !evaluation_begin_ns_)) time.begin_ns = now_ns_;
  time.bar = bar;
  time.passed_ns = passed_ns;
  now_ns_ = std::max(now_ns_, time.begin_ns + passed_ns);
}

// A bar without a title that is drawn before the training's is full, with another total.
bool LogRun::is_bar_of_evaluation(const LogLine& line) const {
  if (!line.is_bar || !line.total || !training_bar_.bar || !training_bar_.bar->total || line.bar_epoch >= 0)
    return false;
  const bool is_between = last_total_ > 0 && last_index_ > 0 && last_index_ < last_total_;
  return is_between && *line.total != *training_bar_.bar->total && !line.has(Figure::kLoss);
}

// Where the steps that a line ends lie, by their own times and the line's: one is rounded, or printed late, and the
// other is what was measured. Own times that do not fit between the lines are no times of steps: they are dropped.
void LogRun::settle_end(std::int64_t begin_ns, std::optional<std::int64_t> unix_ns, std::int64_t& own_ns) {
  if (!unix_ns || own_ns == 0 || last_number_ < 0) return;
  if (own_from_ns_ < 0) own_from_ns_ = begin_ns;
  own_sum_ns_ += own_ns;
  const std::int64_t resolution_ns = has_fractions_ ? 0 : kNsPerS;
  const double passed_ns = static_cast<double>(*unix_ns - own_from_ns_) * (1 + kDriftMax);
  const double slack_ns = 2.0 * static_cast<double>(resolution_ns) + static_cast<double>(own_ns);
  if (static_cast<double>(own_sum_ns_) > passed_ns + slack_ns) {
    own_ns = 0;
    return;
  }
  now_ns_ = std::max(now_ns_, begin_ns + own_ns);
}

// --- training ---

void LogRun::take_timers(const LogLine& line) {
  for (std::size_t i = 0; i < kLogParts; ++i) {
    if (!is_seconds(line[kParts[i]])) continue;
    timers_[i].sum_s += line[kParts[i]]->value;
    ++timers_[i].lines;
  }
}

void LogRun::take_training(const LogLine& line, std::optional<std::int64_t> unix_ns) {
  close_evaluation();
  if (unix_ns) has_fractions_ |= *unix_ns % kNsPerS != 0;
  const auto step = line[Figure::kStep];
  const bool is_step = step && is_plain(step->value, kStepMax);
  const std::int64_t index = is_step ? static_cast<std::int64_t>(step->value) : -1;
  const auto epoch_before = epoch_;
  take_epoch(line, is_step && last_index_ >= 0 && index < last_index_);
  const bool is_new_epoch = epoch_ != epoch_before;
  if (is_step) return take_step(line, index, unix_ns, is_new_epoch);
  move_to(line, unix_ns, 0);
  if (is_new_epoch) epoch_begin_ns_ = now_ns_;
}

void LogRun::take_epoch(const LogLine& line, bool goes_back) {
  const auto epoch = line[Figure::kEpoch];
  if (!epoch || epoch->value != std::floor(epoch->value)) return;
  const bool counts_epochs = line.epoch_of || line.step_restarts || (goes_back && epoch->value > last_epoch_);
  if (!counts_epochs || epoch_ == epoch->value) return;
  close_epoch();
  epoch_ = epoch->value;
  is_epoch_new_ = true;
  epoch_steps_ns_ = 0;
}

// The count of steps begins again: another epoch, another bar.
bool LogRun::begins_anew(const LogLine& line, std::int64_t index) const {
  if (last_index_ < 0) return false;
  const bool goes_back = index < last_index_;
  if (line.step_restarts) return goes_back || (is_epoch_new_ && was_restarting_);
  const auto epoch = line[Figure::kEpoch];
  return epoch && goes_back && epoch->value > last_epoch_;
}

// The number goes back and no epoch has begun: after an error, the job was started again from a checkpoint.
void LogRun::take_job_restart(std::int64_t number) {
  if (!has_failed_ || number >= last_number_) return;
  const std::int64_t again = last_number_ - number;
  restart_ = Restart{.steps = again, .lost_ns = again * mean_ns_ + (now_ns_ - line_ns_)};
}

// Steps at an epoch's end that no line has shown. Where a line says how many there are they are known; else the time
// that is left over between two lines is taken for theirs, if they are fewer than lie between two lines.
std::int64_t LogRun::take_tail(std::int64_t number) {
  const std::int64_t known = base_ - (is_zero_based_ ? 1 : 0) - last_number_;
  if (last_total_ > 0) return std::max<std::int64_t>(known, 0);
  const std::int64_t count = number - last_number_;
  const std::int64_t over_ns = now_ns_ - line_ns_ - count * mean_ns_;
  if (mean_ns_ <= 0 || evaluated_to_ns_ > 0 || 2 * over_ns < mean_ns_) return 0;
  const std::int64_t tail = (over_ns + mean_ns_ / 2) / mean_ns_;
  return tail < last_count_ ? tail : 0;
}

void LogRun::take_step(const LogLine& line, std::int64_t index, std::optional<std::int64_t> unix_ns,
                       bool is_new_epoch) {
  const bool restarts = begins_anew(line, index);
  const bool is_first_of_epoch = std::exchange(is_epoch_new_, false) || restarts;
  is_zero_based_ |= index == 0 && !line.is_bar;
  if (restarts) {
    base_ += last_total_ > 0 ? last_total_ : last_index_ + (is_zero_based_ ? 1 : 0);
    epoch_steps_ns_ = 0;
    if (!unix_ns && !line.passed_s) give_unseen_steps();
  }
  was_restarting_ = line.step_restarts;
  const std::int64_t begin_before_ns = now_ns_;
  const bool had_time = has_time_;
  if (unix_ns || line.passed_s) move_to(line, unix_ns, 0);
  std::int64_t tail = restarts ? take_tail(base_ + index) : 0;
  if (restarts && last_total_ == 0) base_ += tail;
  const std::int64_t number = base_ + index;
  if (!restarts) take_job_restart(number);
  has_failed_ = false;
  last_total_ = whole(line.total);
  const std::int64_t count = steps_since_last(line, number, index);
  last_index_ = index;
  if (const auto epoch = line[Figure::kEpoch]) last_epoch_ = epoch->value;
  if (take_epoch_mean(line, count)) return;

  if (last_number_ < 0) evaluated_from_ns_ = evaluated_to_ns_ = 0;
  const bool is_split = last_number_ >= 0 && ((tail > 0 && unix_ns) || evaluated_to_ns_ > evaluated_from_ns_);
  const std::int64_t begin_ns = is_split ? line_ns_ : begin_before_ns;
  std::int64_t own_ns = count > 0 ? own_time(line, count, restarts) : 0;
  if (unix_ns || line.passed_s) {
    settle_end(begin_ns, unix_ns, own_ns);
  } else {
    move_to(line, unix_ns, own_ns);
  }
  if (is_new_epoch || (restarts && epoch_))
    epoch_begin_ns_ = std::max(begin_ns + tail * mean_ns_, is_split ? evaluated_to_ns_ : begin_ns);
  const bool is_between_known = (had_time && last_number_ >= 0) || line.passed_s;
  const std::int64_t room_ns = is_between_known ? now_ns_ - begin_ns - (evaluated_to_ns_ - evaluated_from_ns_) : 0;
  if (!is_first_of_epoch && is_between_known && own_ns == 0) take_silence_before(number, begin_ns);
  // The first steps of a log whose times are its lines' begin before it.
  const bool is_head = last_number_ < 0 && !line.is_bar && count > 1 && unix_ns;
  if (count > 0 && (own_ns > 0 || room_ns > 0 || is_head)) {
    LogBlock block{.number = number, .count = count, .begin_ns = begin_ns, .end_ns = now_ns_, .own_ns = own_ns};
    if (room_ns <= 0) block.begin_ns = now_ns_ - own_ns;
    block.is_head = is_head;
    if (is_first_of_epoch && pause_ == LogPause::kNone) pause_ = LogPause::kEpoch;
    if (line.has(Figure::kEvalLoss) || pause_ == LogPause::kEvaluation) {
      pause_ = LogPause::kEvaluation;
      is_pause_behind_ |= line.has(Figure::kEvalLoss);
    }
    block.before = is_pause_behind_ ? count : tail;
    give_block(line, block, restarts);
  } else if (count > 0 && (last_number_ >= 0 || line.has(Figure::kEvalLoss))) {
    // Time stands still at the resolution of the log: they end with the next line.
    if (line.has(Figure::kEvalLoss)) pause_ = LogPause::kEvaluation;
    return;
  }
  // A first line without any time says from where the next ones count.
  if (own_ns > 0 || room_ns > 0 || unix_ns || line.is_bar || count <= 0) last_number_ = number;
  line_ns_ = now_ns_;
  pause_ = LogPause::kNone;
  pause_at_ns_.reset();
  is_pause_behind_ = false;
  evaluated_from_ns_ = evaluated_to_ns_ = 0;
  remember(line, index);
}

// How many steps the line ends. The first line that is seen of a count that began before it ends one.
std::int64_t LogRun::steps_since_last(const LogLine& line, std::int64_t number, std::int64_t index) const {
  if (last_number_ >= 0) return number - last_number_;
  if (line.is_bar) return index;  // it says how many are done
  const bool is_of_epoch = line.step_restarts || (line.total && line.has(Figure::kEpoch));
  return is_of_epoch ? std::max<std::int64_t>(index, 1) : 1;
}

// The time of the steps that end here, by what is printed of them; 0: nothing is.
std::int64_t LogRun::own_time(const LogLine& line, std::int64_t count, bool restarts) {
  if (line.is_bar && line.passed_s) return 0;  // a bar's rate is a moving mean
  const auto time = line[Figure::kStepTime];
  if (is_seconds(time)) {
    if (!time->average) return ns_of(time->value * static_cast<double>(count));
    // A mean over the epoch so far: its sum has grown by what these steps took.
    const double sum_s = *time->average * (static_cast<double>(line[Figure::kStep]->value) + 1);
    const double grown_s = restarts || sums_index_ < 0 ? time->value * static_cast<double>(count) : sum_s - time_sum_s_;
    if (is_plain(grown_s, kSecondsMax)) return ns_of(std::max(grown_s, time->value));
    return ns_of(time->value * static_cast<double>(count));
  }
  const auto rate = line[Figure::kStepRate];
  if (rate && !line.passed_s && rate->value > 1e-6 && is_plain(rate->value, 1e9)) {
    return ns_of(static_cast<double>(count) / rate->value);
  }
  return 0;
}

// Keras draws an epoch's last bar anew when it has validated: with the mean of a step over all that has passed.
bool LogRun::take_epoch_mean(const LogLine& line, std::int64_t count) {
  const auto time = line[Figure::kStepTime];
  if (count != 0 || !line.is_drawn || !line.has(Figure::kEvalLoss) || !is_seconds(time) || time->average) return false;
  const std::int64_t all_ns = ns_of(time->value * static_cast<double>(last_index_));
  const std::int64_t rest_ns = all_ns - epoch_steps_ns_;
  if (static_cast<double>(rest_ns) < kEpochMeanMinShare * static_cast<double>(all_ns)) return false;
  give_evaluation(now_ns_, rest_ns);
  now_ns_ += rest_ns;
  line_ns_ = now_ns_;
  return true;
}

void LogRun::remember(const LogLine& line, std::int64_t index) {
  const auto time = line[Figure::kStepTime];
  const auto data = line[Figure::kDataTime];
  sums_index_ = time && time->average ? index : -1;
  time_sum_s_ = time && time->average ? *time->average * (static_cast<double>(index) + 1) : 0;
  data_sum_s_ = data && data->average ? *data->average * (static_cast<double>(index) + 1) : 0;
}

// Of the steps before the last one: where data waits are printed beside their mean, what the mean's sum has grown by.
double LogRun::wait_of_others(const LogLine& line, std::int64_t count, bool restarts) const {
  const auto data = line[Figure::kDataTime];
  if (!data) return -1;
  if (!data->average) return data->value;
  if (restarts || sums_index_ < 0 || count < 2) return *data->average;
  const double sum_s = *data->average * (static_cast<double>(line[Figure::kStep]->value) + 1);
  return std::max(0.0, (sum_s - data_sum_s_ - data->value) / static_cast<double>(count - 1));
}

void LogRun::give_block(const LogLine& line, LogBlock block, bool restarts) {
  ++steps_printed_;
  const auto time = line[Figure::kStepTime];
  const auto data = line[Figure::kDataTime];
  if (block.count > 1 && time && time->average && is_seconds(time)) block.last_ns = ns_of(time->value);
  block.pause = pause_;
  if (block.before == 0 && !is_pause_behind_) block.pause_at_ns = pause_at_ns_;
  block.evaluated_from_ns = evaluated_from_ns_;
  block.evaluated_to_ns = evaluated_to_ns_;
  block.wait_s = wait_of_others(line, block.count, restarts);
  block.last_wait_s = data ? data->value : -1;
  for (std::size_t i = 0; i < kLogParts; ++i) {
    if (is_seconds(line[kParts[i]])) {
      block.parts_s[i] = line[kParts[i]]->value;
    } else if (timers_[i].lines > 0) {
      // With accumulated gradients a step has a line for each micro-batch.
      block.parts_s[i] = timers_[i].sum_s / static_cast<double>(std::min(timers_[i].lines, block.count));
    }
  }
  timers_ = {};
  const auto samples = line[Figure::kSamples];
  if (samples && is_plain(samples->value, 1e12)) block.samples = std::llround(samples->value);
  steps_.give(slot(), block);
  const std::int64_t all_ns = block.own_ns > 0
                                  ? block.own_ns
                                  : block.end_ns - block.begin_ns - (block.evaluated_to_ns - block.evaluated_from_ns);
  epoch_steps_ns_ += all_ns;
  last_count_ = block.count;
  if (block.pause == LogPause::kNone || mean_ns_ == 0) mean_ns_ = all_ns / block.count;
  mean_wait_s_ = block.count > 1 ? block.wait_s : block.last_wait_s;
}

// The last steps of an epoch whose end was not printed: as long as those before them.
void LogRun::give_unseen_steps() {
  const std::int64_t end = base_ - (is_zero_based_ ? 1 : 0);
  const std::int64_t count = end - last_number_;
  if (last_number_ < 0 || count <= 0 || count > kStepsOfTailMax || mean_ns_ <= 0) return;
  const std::int64_t begin_ns = now_ns_;
  now_ns_ += count * mean_ns_;
  steps_.give(slot(), {.number = end,
                       .count = count,
                       .begin_ns = begin_ns,
                       .end_ns = now_ns_,
                       .own_ns = count * mean_ns_,
                       .wait_s = mean_wait_s_,
                       .last_wait_s = mean_wait_s_});
  last_number_ = end;
}

// --- epochs and evaluation ---

void LogRun::close_epoch() {
  if (epoch_ && epoch_begin_ns_ && now_ns_ > *epoch_begin_ns_) {
    out_.span({.start_ns = *epoch_begin_ns_,
               .duration_ns = now_ns_ - *epoch_begin_ns_,
               .kind = SpanKind::kEpoch,
               .process = slot(),
               .value_a = is_plain(*epoch_, kStepMax) ? std::llround(*epoch_) : -1});
  }
  epoch_begin_ns_.reset();
}

void LogRun::take_evaluation(const LogLine& line, std::int64_t before_ns, bool is_timed) {
  const auto time = line[Figure::kEvalTime];
  if (is_seconds(time)) {
    const std::int64_t duration_ns = ns_of(time->value);
    if (!is_timed) now_ns_ = std::max(now_ns_, evaluation_begin_ns_.value_or(now_ns_) + duration_ns);
    evaluation_begin_ns_.reset();
    give_evaluation(now_ns_ - duration_ns, duration_ns);
    return;
  }
  if (!evaluation_begin_ns_) evaluation_begin_ns_ = before_ns;
}

void LogRun::close_evaluation() {
  if (evaluation_begin_ns_ && now_ns_ > *evaluation_begin_ns_) {
    give_evaluation(*evaluation_begin_ns_, now_ns_ - *evaluation_begin_ns_);
  } else if (evaluation_begin_ns_ && last_number_ >= 0 && pause_ == LogPause::kNone) {
    pause_ = LogPause::kEvaluation;  // how long it takes the next step's line tells
    pause_at_ns_ = now_ns_;
  }
  evaluation_begin_ns_.reset();
}

void LogRun::give_evaluation(std::int64_t start_ns, std::int64_t duration_ns) {
  if (evaluated_to_ns_ == evaluated_from_ns_) evaluated_from_ns_ = evaluated_to_ns_ = start_ns;
  evaluated_to_ns_ = std::max(evaluated_to_ns_, start_ns + duration_ns);
  if (pause_ == LogPause::kEvaluation) pause_ = LogPause::kNone;
  out_.span({.start_ns = start_ns, .duration_ns = duration_ns, .kind = SpanKind::kEvaluation, .process = slot()});
}

std::uint32_t LogRun::slot() {
  if (slot_ == 0) {
    slot_ = rank_ >= 0 ? out_.process({.role = ProcessRole::kRank, .index = rank_})
                       : out_.process({.role = ProcessRole::kMain});
  }
  return slot_;
}

}  // namespace hotlap
