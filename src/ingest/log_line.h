#pragma once
// What one line of a training log says, in the figures that matter: its step, epoch, losses, times and rates, whatever
// the framework calls them.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hotlap {

// Times are in seconds.
enum class Figure : std::uint8_t {
  kNone,
  kStep,
  kEpoch,
  kLoss,
  kEvalLoss,
  kLearningRate,
  kGradientNorm,
  kStepTime,
  kDataTime,
  kForwardTime,
  kBackwardTime,
  kCommunicationTime,
  kOptimizerTime,
  kSampleRate,
  kTokenRate,
  kStepRate,
  kSamples,
  kEvalTime,
  kUnixTime,
  kUnused,
};
inline constexpr std::size_t kFigures = static_cast<std::size_t>(Figure::kUnused) + 1;

struct Reading {
  double value = 0;
  std::optional<double> average;
};

// Of the framework's allocator on the GPU.
enum class LogMemory : std::uint8_t { kAllocated, kReserved, kAllocatedMax };

struct LogLine {
  std::array<std::optional<Reading>, kFigures> figures;
  std::optional<double> total;     // of the steps that the line counts
  bool step_restarts = false;      // it counts within an epoch or a bar
  std::optional<double> epoch_of;  // "Epoch 3/10"
  std::optional<double> passed_s;  // of a progress bar
  bool is_evaluation = false;
  bool is_bar = false;
  bool is_drawn = false;   // a bar in another form: Keras
  bool is_timers = false;  // it says what steps around it are made of, and nothing else
  double bar_epoch = -1;   // that stands before the bar
  std::vector<std::pair<LogMemory, double>> memory_bytes;
  std::vector<std::pair<std::string, double>> others;

  const std::optional<Reading>& operator[](Figure figure) const { return figures[static_cast<std::size_t>(figure)]; }
  bool has(Figure figure) const { return (*this)[figure].has_value(); }
  void set(Figure figure, double value, std::optional<double> average = {}) {
    auto& place = figures[static_cast<std::size_t>(figure)];
    if (!place) place = Reading{value, average};
  }
};

// Nothing: the line says nothing of training. `text_untrusted` without time stamp and colours.
std::optional<LogLine> read_log_line(std::string_view text_untrusted);

}  // namespace hotlap
