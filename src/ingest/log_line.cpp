#include "ingest/log_line.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/ascii.h"
#include "ingest/log_items.h"
#include "ingest/log_memory.h"

namespace hotlap {
namespace {

struct Name {
  std::string_view key;
  Figure figure;
};
constexpr std::array kNames{
    Name{"step", Figure::kStep},
    Name{"steps", Figure::kStep},
    Name{"iter", Figure::kStep},
    Name{"iteration", Figure::kStep},
    Name{"it", Figure::kStep},
    Name{"global_step", Figure::kStep},
    Name{"global step", Figure::kStep},
    Name{"train_step", Figure::kStep},
    Name{"training step", Figure::kStep},
    Name{"train step", Figure::kStep},
    Name{"num_updates", Figure::kStep},
    Name{"batch", Figure::kStep},
    Name{"epoch", Figure::kEpoch},
    Name{"epoch(train)", Figure::kEpoch},
    Name{"loss", Figure::kLoss},
    Name{"train_loss", Figure::kLoss},
    Name{"train loss", Figure::kLoss},
    Name{"training loss", Figure::kLoss},
    Name{"training_loss", Figure::kLoss},
    Name{"train/loss", Figure::kLoss},
    Name{"train_loss_step", Figure::kLoss},
    Name{"loss_step", Figure::kLoss},
    Name{"total_loss", Figure::kLoss},
    Name{"total loss", Figure::kLoss},
    Name{"lm loss", Figure::kLoss},
    Name{"val_loss", Figure::kEvalLoss},
    Name{"val loss", Figure::kEvalLoss},
    Name{"valid loss", Figure::kEvalLoss},
    Name{"valid_loss", Figure::kEvalLoss},
    Name{"validation loss", Figure::kEvalLoss},
    Name{"eval_loss", Figure::kEvalLoss},
    Name{"eval loss", Figure::kEvalLoss},
    Name{"test loss", Figure::kEvalLoss},
    Name{"lr", Figure::kLearningRate},
    Name{"learning_rate", Figure::kLearningRate},
    Name{"learning rate", Figure::kLearningRate},
    Name{"grad_norm", Figure::kGradientNorm},
    Name{"grad norm", Figure::kGradientNorm},
    Name{"gnorm", Figure::kGradientNorm},
    Name{"time", Figure::kStepTime},
    Name{"batch time", Figure::kStepTime},
    Name{"batch_time", Figure::kStepTime},
    Name{"iter time", Figure::kStepTime},
    Name{"iter_time", Figure::kStepTime},
    Name{"step time", Figure::kStepTime},
    Name{"step_time", Figure::kStepTime},
    Name{"time per step", Figure::kStepTime},
    Name{"time/batch", Figure::kStepTime},
    Name{"elapsed time per iteration", Figure::kStepTime},
    Name{"step_avg", Figure::kStepTime},
    Name{"dt", Figure::kStepTime},
    Name{"data", Figure::kDataTime},
    Name{"data time", Figure::kDataTime},
    Name{"data_time", Figure::kDataTime},
    Name{"forward", Figure::kForwardTime},
    Name{"forward time", Figure::kForwardTime},
    Name{"forward_time", Figure::kForwardTime},
    Name{"fwd", Figure::kForwardTime},
    Name{"fwd_time", Figure::kForwardTime},
    Name{"fwd_bwd", Figure::kForwardTime},
    Name{"fwd+bwd", Figure::kForwardTime},
    Name{"forward-backward", Figure::kForwardTime},
    Name{"forward_backward", Figure::kForwardTime},
    Name{"fwd-bwd", Figure::kForwardTime},
    Name{"compute", Figure::kForwardTime},
    Name{"compute_time", Figure::kForwardTime},
    Name{"backward", Figure::kBackwardTime},
    Name{"backward time", Figure::kBackwardTime},
    Name{"backward_time", Figure::kBackwardTime},
    Name{"bwd", Figure::kBackwardTime},
    Name{"bwd_time", Figure::kBackwardTime},
    Name{"comm", Figure::kCommunicationTime},
    Name{"comm time", Figure::kCommunicationTime},
    Name{"comm_time", Figure::kCommunicationTime},
    Name{"communication", Figure::kCommunicationTime},
    Name{"allreduce", Figure::kCommunicationTime},
    Name{"all-reduce", Figure::kCommunicationTime},
    Name{"allreduce_time", Figure::kCommunicationTime},
    Name{"nccl", Figure::kCommunicationTime},
    Name{"optimizer", Figure::kOptimizerTime},
    Name{"optimizer time", Figure::kOptimizerTime},
    Name{"optimizer_time", Figure::kOptimizerTime},
    Name{"optim", Figure::kOptimizerTime},
    Name{"opt_time", Figure::kOptimizerTime},
    // DeepSpeed's wall_clock_breakdown: its "bwd" holds both of the next two.
    Name{"fwd_microstep", Figure::kForwardTime},
    Name{"bwd_inner_microstep", Figure::kBackwardTime},
    Name{"bwd_allreduce_microstep", Figure::kCommunicationTime},
    Name{"step_microstep", Figure::kOptimizerTime},
    // Megatron's timers.
    Name{"forward-compute", Figure::kForwardTime},
    Name{"backward-compute", Figure::kBackwardTime},
    Name{"grads-all-reduce", Figure::kCommunicationTime},
    Name{"all-grads-sync", Figure::kCommunicationTime},
    Name{"backward-params-all-reduce", Figure::kCommunicationTime},
    Name{"img/s", Figure::kSampleRate},
    Name{"imgs/s", Figure::kSampleRate},
    Name{"images/s", Figure::kSampleRate},
    Name{"images/sec", Figure::kSampleRate},
    Name{"samples/s", Figure::kSampleRate},
    Name{"samples/sec", Figure::kSampleRate},
    Name{"examples/s", Figure::kSampleRate},
    Name{"examples/sec", Figure::kSampleRate},
    Name{"samples_per_second", Figure::kSampleRate},
    Name{"train_samples_per_second", Figure::kSampleRate},
    Name{"currsamplespersec", Figure::kSampleRate},
    Name{"throughput", Figure::kSampleRate},
    Name{"tokens/s", Figure::kTokenRate},
    Name{"tokens/sec", Figure::kTokenRate},
    Name{"tok/s", Figure::kTokenRate},
    Name{"tok/sec", Figure::kTokenRate},
    Name{"tokens_per_second", Figure::kTokenRate},
    Name{"tokens per second", Figure::kTokenRate},
    Name{"tps", Figure::kTokenRate},
    Name{"wps", Figure::kTokenRate},
    Name{"it/s", Figure::kStepRate},
    Name{"steps/s", Figure::kStepRate},
    Name{"steps/sec", Figure::kStepRate},
    Name{"steps_per_second", Figure::kStepRate},
    Name{"train_steps_per_second", Figure::kStepRate},
    Name{"ups", Figure::kStepRate},
    Name{"global batch size", Figure::kSamples},
    Name{"batch size", Figure::kSamples},
    Name{"batch_size", Figure::kSamples},
    Name{"bsz", Figure::kSamples},
    Name{"eval_runtime", Figure::kEvalTime},
    Name{"timestamp", Figure::kUnixTime},
    Name{"ts", Figure::kUnixTime},
    Name{"eta", Figure::kUnused},
    Name{"etc", Figure::kUnused},
};

struct UnitFigure {
  std::string_view unit;
  Figure figure;
  double factor;
};
constexpr std::array kUnitFigures{
    UnitFigure{"it/s", Figure::kStepRate, 1},          UnitFigure{"step/s", Figure::kStepRate, 1},
    UnitFigure{"steps/s", Figure::kStepRate, 1},       UnitFigure{"batch/s", Figure::kStepRate, 1},
    UnitFigure{"s/it", Figure::kStepTime, 1},          UnitFigure{"s/step", Figure::kStepTime, 1},
    UnitFigure{"ms/step", Figure::kStepTime, 1e-3},    UnitFigure{"us/step", Figure::kStepTime, 1e-6},
    UnitFigure{"s/batch", Figure::kStepTime, 1},       UnitFigure{"s/iter", Figure::kStepTime, 1},
    UnitFigure{"ms/it", Figure::kStepTime, 1e-3},      UnitFigure{"/s", Figure::kSampleRate, 1},
    UnitFigure{"img/s", Figure::kSampleRate, 1},       UnitFigure{"images/s", Figure::kSampleRate, 1},
    UnitFigure{"images/sec", Figure::kSampleRate, 1},  UnitFigure{"samples/s", Figure::kSampleRate, 1},
    UnitFigure{"samples/sec", Figure::kSampleRate, 1}, UnitFigure{"examples/s", Figure::kSampleRate, 1},
    UnitFigure{"tokens/s", Figure::kTokenRate, 1},     UnitFigure{"tokens/sec", Figure::kTokenRate, 1},
    UnitFigure{"tok/s", Figure::kTokenRate, 1},        UnitFigure{"tok/sec", Figure::kTokenRate, 1}};

Figure figure_of_key(std::string_view key) {
  const auto* const found = std::ranges::find(kNames, key, &Name::key);
  if (found != kNames.end()) return found->figure;
  // Words may stand before those that count: "training epoch". A loss with a word before it is another loss.
  const std::size_t blank = key.rfind(' ');
  if (blank == std::string_view::npos) return Figure::kNone;
  const auto* const last = std::ranges::find(kNames, key.substr(blank + 1), &Name::key);
  const bool counts = last != kNames.end() && (last->figure == Figure::kStep || last->figure == Figure::kEpoch);
  return counts ? last->figure : Figure::kNone;
}

bool is_part(Figure figure) {
  return figure == Figure::kForwardTime || figure == Figure::kBackwardTime || figure == Figure::kCommunicationTime ||
         figure == Figure::kOptimizerTime;
}
bool is_time(Figure figure) {
  return is_part(figure) || figure == Figure::kStepTime || figure == Figure::kDataTime || figure == Figure::kEvalTime;
}

// "forward_ms": a figure whose name ends in its unit. A number of a step with a unit of time is the step's time.
Figure take_unit_of_name(LogItem& item) {
  const std::size_t at = item.key.find_last_of("_ ");
  if (at == std::string::npos || !item.unit.empty() || !is_unit_of_time(std::string_view(item.key).substr(at + 1))) {
    return Figure::kNone;
  }
  const Figure figure = figure_of_key(std::string_view(item.key).substr(0, at));
  if (figure != Figure::kStep && !is_time(figure)) return Figure::kNone;
  item.unit = item.key.substr(at + 1);
  return figure;
}

double seconds_of(std::string_view unit) {
  if (unit == "ms" || unit == "msec") return 1e-3;
  if (unit == "us") return 1e-6;
  if (unit == "min") return 60;
  return 1;
}

bool starts_with_word(std::string_view text, std::span<const std::string_view> words) {
  const std::string begin = to_lower(text.substr(0, 16));
  return std::ranges::any_of(words, [&](std::string_view word) { return begin.starts_with(word); });
}

// The words before the first figure say whose it is, behind a level and a logger's name: "INFO - eval - val_loss 2.1".
bool says_evaluation(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kWords{"test",    "val",   "eval",      "sanity",
                                                          "predict", "infer", "epoch(val)"};
  constexpr std::size_t kHeadMax = 96;
  std::string_view head = text.substr(0, kHeadMax);
  head = head.substr(0, head.find_first_of("0123456789="));
  if (starts_with_word(text, kWords)) return true;
  for (const std::string_view between : {" - ", ": ", "] ", "| ", "INFO "}) {
    for (std::size_t at = head.find(between); at != std::string_view::npos; at = head.find(between, at + 1)) {
      if (starts_with_word(head.substr(at + between.size()), kWords)) return true;
    }
  }
  return false;
}

class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  // Nothing: the line says nothing of training.
  std::optional<LogLine> read() {
    static constexpr std::array<std::string_view, 6> kTraining{"epoch", "train", "iter", "step", "progress", "batch"};
    bar_ = text_.find("%|");
    is_drawn_ = text_.find("\xE2\x94\x81") != std::string_view::npos || text_.find("[==") != std::string_view::npos ||
                text_.find("[>") != std::string_view::npos || text_.find("=>") != std::string_view::npos;
    is_in_ms_ = text_.find("(ms)") != std::string_view::npos || text_.find("..: (") != std::string_view::npos;
    line_.is_bar = bar_ != std::string_view::npos;
    line_.is_drawn = is_drawn_;
    // YOLO's bar over the validation set has the titles of its results for a title.
    const bool is_of_results = line_.is_bar && text_.substr(0, bar_).find("mAP") != std::string_view::npos;
    line_.is_evaluation = is_of_results || says_evaluation(text_);
    // A bar with another title is of something else: a download, a tokenizer.
    const bool has_title = line_.is_bar && !text_.empty() &&
                           ((text_[0] >= 'A' && text_[0] <= 'Z') || (text_[0] >= 'a' && text_[0] <= 'z'));
    if (has_title && !line_.is_evaluation && !starts_with_word(text_, kTraining)) return std::nullopt;
    for (LogItem& item : find_log_items(text_)) take(item);
    line_.is_timers = is_of_timers();
    if (!line_.is_timers && !is_understood()) return std::nullopt;
    return std::move(line_);
  }

 private:
  void take(LogItem& item) {
    if (item.is_clock) {
      const bool is_passed = (line_.is_bar && item.begins_bracket && item.at > bar_) || (is_drawn_ && !line_.passed_s);
      if (is_passed && item.key != "eta") line_.passed_s = item.value;
      return;
    }
    if (!item.unit.empty()) {
      const auto* const known = std::ranges::find(kUnitFigures, std::string_view(item.unit), &UnitFigure::unit);
      if (known != kUnitFigures.end()) {
        return line_.set(known->figure, item.value * known->factor, scaled(item.average, known->factor));
      }
      if (item.unit == "%") return;
    }
    if (const auto memory = read_log_memory(item)) line_.memory_bytes.push_back(*memory);
    if (item.total) return take_ratio(item);
    Figure figure = figure_of_key(item.key);
    if (figure == Figure::kNone) figure = take_unit_of_name(item);
    if (figure == Figure::kStep && is_unit_of_time(item.unit)) figure = Figure::kStepTime;
    if (is_part(figure) && item.unit.empty() && is_in_ms_) item.unit = "ms";
    if (figure == Figure::kNone && item.key == "train" && item.at < 16) figure = Figure::kEpoch;  // timm
    if (figure == Figure::kEpoch && item.at < bar_ && line_.is_bar) line_.bar_epoch = item.value;
    if (figure == Figure::kStepTime && item.value > 1e9 && item.value < 9e9) figure = Figure::kUnixTime;
    switch (figure) {
      case Figure::kNone:
        if (!item.key.empty()) line_.others.emplace_back(item.key, item.value);
        return;
      case Figure::kUnused: return;
      case Figure::kStepTime:
      case Figure::kDataTime:
      case Figure::kForwardTime:
      case Figure::kBackwardTime:
      case Figure::kCommunicationTime:
      case Figure::kOptimizerTime:
      case Figure::kEvalTime: {
        const double factor = seconds_of(item.unit);
        return line_.set(figure, item.value * factor, scaled(item.average, factor));
      }
      default: return line_.set(figure, item.value, item.average);
    }
  }
  static std::optional<double> scaled(std::optional<double> value, double factor) {
    return value ? std::optional(*value * factor) : std::nullopt;
  }

  // "[50/500]", "Epoch 3/10", "iteration 10/ 500".
  void take_ratio(const LogItem& item) {
    const Figure figure = figure_of_key(item.key);
    const bool is_before_bar = line_.is_bar && item.at < bar_;
    if (figure == Figure::kEpoch || is_before_bar) {
      line_.set(Figure::kEpoch, item.value);
      line_.epoch_of = item.total;
    } else if (figure == Figure::kStep || item.key.empty() || item.key == "train" || line_.is_evaluation) {
      if (!line_.has(Figure::kStep)) {
        line_.total = item.total;
        line_.step_restarts = figure != Figure::kStep;
      }
      line_.set(Figure::kStep, item.value);
    }
  }

  // "time (ms) | fwd_microstep: 50.10 | …", "    forward-backward .......: (150.00, 151.00)": what steps are made of,
  // in a line of its own.
  bool is_of_timers() const {
    const bool has_part = line_.has(Figure::kForwardTime) || line_.has(Figure::kBackwardTime) ||
                          line_.has(Figure::kCommunicationTime) || line_.has(Figure::kOptimizerTime);
    const bool has_more = line_.has(Figure::kStep) || line_.has(Figure::kEpoch) || line_.has(Figure::kStepTime);
    return has_part && !has_more && is_in_ms_;
  }

  bool is_understood() const {
    const auto has = [&](Figure figure) { return line_.has(figure); };
    const bool has_result = has(Figure::kLoss) || has(Figure::kEvalLoss) || has(Figure::kStepTime) ||
                            has(Figure::kSampleRate) || has(Figure::kTokenRate) || has(Figure::kStepRate) ||
                            has(Figure::kEvalTime);
    if (line_.is_evaluation) return has_result || line_.passed_s;
    if (has(Figure::kStep)) {
      return has_result || has(Figure::kLearningRate) || has(Figure::kEpoch) || line_.is_bar || is_drawn_;
    }
    if (line_.epoch_of) return true;  // "Epoch 3/10"
    // A loss alone may be anybody's; with what stands beside it in a training it is one.
    return has_result && (has(Figure::kEpoch) || has(Figure::kLearningRate) || has(Figure::kEvalTime) ||
                          (has(Figure::kSampleRate) && has(Figure::kStepRate)));
  }

  std::string_view text_;
  std::size_t bar_ = std::string_view::npos;
  bool is_drawn_ = false;
  bool is_in_ms_ = false;  // figures without a unit
  LogLine line_;
};

}  // namespace

std::optional<LogLine> read_log_line(std::string_view text_untrusted) { return LineReader(text_untrusted).read(); }

}  // namespace hotlap
