#pragma once
// The training of one rank as the lines of its log tell it: which step and epoch each line ends, and when. The times
// are those of the lines, of progress bars, or the steps' own.
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "ingest/importer.h"
#include "ingest/log_line.h"
#include "ingest/log_series.h"
#include "ingest/log_steps.h"

namespace hotlap {

// State is bounded. Confined to one thread.
class LogRun {
 public:
  LogRun(ImportSink& out, std::int32_t rank) : out_(out), steps_(out), series_(out, rank), rank_(rank) {}

  // `unix_ns`: the line's own time; `last_unix_ns`: the last one that any line had.
  void take(const LogLine& line, std::optional<std::int64_t> unix_ns, std::optional<std::int64_t> last_unix_ns);
  // A line says that the training stops for something.
  void take_pause(LogPause pause, std::optional<std::int64_t> unix_ns);
  // A line says that the job failed.
  void take_failure() { has_failed_ = true; }

  // The job was started again and did steps anew: how many, and the time from the last step before to where it was.
  struct Restart {
    std::int64_t steps = 0;
    std::int64_t lost_ns = 0;
  };
  std::optional<Restart> take_restart() { return std::exchange(restart_, std::nullopt); }

  // The clock by which the lines are stamped was set: forward positive. Only where it was set back is that sure.
  std::optional<std::int64_t> take_clock_step() { return std::exchange(clock_step_ns_, std::nullopt); }
  struct Silence {
    std::int64_t after_step = 0;
    std::int64_t ns = 0;
  };
  std::optional<Silence> take_silence() { return std::exchange(silence_, std::nullopt); }

  void finish();
  std::int64_t now_ns() const { return now_ns_; }
  std::uint64_t lines() const { return lines_; }  // of training
  std::uint64_t steps_printed() const { return steps_printed_; }
  std::uint64_t steps_given() const { return steps_.given(); }
  std::uint64_t guessed_times() const { return guessed_times_; }
  std::uint64_t steps_refused() const { return steps_.refused(); }

 private:
  // What tells one progress bar from the next.
  struct Bar {
    std::optional<double> total;
    double epoch = -1;
    friend bool operator==(const Bar&, const Bar&) = default;
  };
  struct BarTime {
    std::optional<Bar> bar;
    std::int64_t begin_ns = 0;
    std::int64_t passed_ns = 0;
  };

  void move_to(const LogLine& line, std::optional<std::int64_t> unix_ns, std::int64_t steps_ns);
  void move_by_bar(const LogLine& line);
  bool is_bar_of_evaluation(const LogLine& line) const;

  std::int64_t without_clock_steps(const LogLine& line, std::int64_t unix_ns);
  void take_silence_before(std::int64_t number, std::int64_t begin_ns);
  void take_timers(const LogLine& line);
  void take_training(const LogLine& line, std::optional<std::int64_t> unix_ns);
  void take_step(const LogLine& line, std::int64_t index, std::optional<std::int64_t> unix_ns, bool is_new_epoch);
  void take_epoch(const LogLine& line, bool goes_back);
  bool begins_anew(const LogLine& line, std::int64_t index) const;
  void take_job_restart(std::int64_t number);
  std::int64_t take_tail(std::int64_t number);
  std::int64_t steps_since_last(const LogLine& line, std::int64_t number, std::int64_t index) const;
  std::int64_t own_time(const LogLine& line, std::int64_t count, bool restarts);
  void settle_end(std::int64_t begin_ns, std::optional<std::int64_t> unix_ns, std::int64_t& own_ns);
  bool take_epoch_mean(const LogLine& line, std::int64_t count);
  void remember(const LogLine& line, std::int64_t index);
  double wait_of_others(const LogLine& line, std::int64_t count, bool restarts) const;
  void give_block(const LogLine& line, LogBlock block, bool restarts);
  void give_unseen_steps();

  void close_epoch();
  void take_evaluation(const LogLine& line, std::int64_t before_ns, bool is_timed);
  void close_evaluation();
  void give_evaluation(std::int64_t start_ns, std::int64_t duration_ns);

  std::uint32_t slot();

  ImportSink& out_;
  LogSteps steps_;
  LogSeries series_;
  std::int32_t rank_;
  std::uint32_t slot_ = 0;
  std::int64_t now_ns_ = 0;
  bool is_started_ = false;
  bool has_time_ = false;
  bool has_fractions_ = false;  // of seconds, in the lines' times
  BarTime training_bar_;
  BarTime evaluation_bar_;
  std::optional<double> epoch_;
  double last_epoch_ = -1;  // that a line with a step said
  std::optional<std::int64_t> epoch_begin_ns_;
  std::int64_t epoch_steps_ns_ = 0;  // of its steps so far
  std::optional<std::int64_t> evaluation_begin_ns_;
  std::int64_t line_ns_ = 0;      // of the last line with a step
  std::int64_t base_ = 0;         // steps of the epochs or bars before
  std::int64_t last_index_ = -1;  // as printed
  std::int64_t last_total_ = 0;
  std::int64_t last_number_ = -1;
  std::int64_t last_count_ = 0;
  bool was_restarting_ = false;
  bool is_zero_based_ = false;    // the first step of an epoch is 0
  bool is_epoch_new_ = false;     // since the last step
  bool has_epoch_begun_ = false;  // the same, of whichever line
  bool has_failed_ = false;
  std::optional<Restart> restart_;
  std::int64_t stamp_ns_ = -1;     // of the last line, as printed
  std::int64_t clock_off_ns_ = 0;  // what the clock was set back, all together
  std::optional<std::int64_t> clock_step_ns_;
  std::optional<Silence> silence_;
  // Since the last line with a step.
  LogPause pause_ = LogPause::kNone;
  std::optional<std::int64_t> pause_at_ns_;
  bool is_pause_behind_ = false;  // it lies before the line that says it
  std::int64_t evaluated_from_ns_ = 0;
  std::int64_t evaluated_to_ns_ = 0;

  std::int64_t mean_ns_ = 0;  // of the steps of the last block without a pause
  double mean_wait_s_ = -1;
  // What lines of timers said since the last line with a step, summed; they are of one step each, or the mean of
  // several.
  struct Timer {
    double sum_s = 0;
    std::int64_t lines = 0;
  };
  std::array<Timer, kLogParts> timers_{};
  std::int64_t own_from_ns_ = -1;  // from where on lines had both a time and steps' own times
  std::int64_t own_sum_ns_ = 0;    // of those
  std::int64_t sums_index_ = -1;
  double time_sum_s_ = 0;
  double data_sum_s_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t steps_printed_ = 0;
  std::uint64_t guessed_times_ = 0;
};

}  // namespace hotlap
