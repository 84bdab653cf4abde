#include "ingest/log_series.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::size_t kOtherNamesMax = 256;

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
// By LogMemory.
constexpr std::array kMemory{
    gauge("allocator.allocated.bytes", "By", "In tensors, as the log printed it."),
    gauge("allocator.reserved.bytes", "By", "Taken from the driver, as the log printed it."),
    gauge("allocator.allocated_max.bytes", "By", "The most in tensors so far, as the log printed it."),
};

}  // namespace

void LogSeries::give(const LogLine& line, std::int64_t now_ns) {
  // Samples of one series need times that differ; logs have seconds.
  sample_ns_ = std::max(now_ns, sample_ns_ + kNsPerUs);
  for (const FigureSeries& known : kSeries) {
    const auto reading = line[known.figure];
    if (!reading) continue;
    const bool is_of_evaluation = line.is_evaluation && known.figure == Figure::kLoss;
    give_one(is_of_evaluation ? kSeries[1].metric : known.metric, reading->value);
  }
  for (const auto& [memory, bytes] : line.memory_bytes) {
    const MetricDesc& metric = kMemory[static_cast<std::size_t>(memory)];
    const std::string who = rank_ >= 0 ? format("rank {}", rank_) : std::string("main");
    out_.sample(out_.series(metric, who + "/cuda:0"), sample_ns_, Value::of(bytes));
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
    give_one(gauge(name, "1", "As the log printed it."), value);
  }
}

void LogSeries::give_one(const MetricDesc& metric, double value) {
  const std::string instance = rank_ >= 0 ? format("rank {}", rank_) : std::string{};
  out_.sample(out_.series(metric, instance), sample_ns_,
              std::isfinite(value) ? Value::of(value) : Value::missing(MissingReason::kReadFailed));
}

}  // namespace hotlap
