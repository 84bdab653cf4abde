#include "rules/pause_kind.h"

#include <algorithm>

#include "rules/step_findings.h"
#include "rules/step_period.h"

namespace hotlap {
namespace {

constexpr double kMost = 60;            // percent of the pauses, or of their time
constexpr double kWriteMinPerS = 10e6;  // a stream to storage
constexpr double kWriteRatio = 4;       // against the time between
constexpr double kGpuWorks = 30;        // percent: something is computed, an evaluation
constexpr double kEpochStepsMin = 20;   // a shorter period is the loader's
constexpr double kPausesMin = 2;

}  // namespace

PauseGuess pause_kind(const FactTable& facts, const Fact& interruptions) {
  if (interruptions.number("count").value_or(0) < kPausesMin) return {};
  const double waiting = interruptions.number("data_wait_pct").value_or(0);
  if (waiting < kMost && interruptions.number("saved_pct").value_or(0) >= kMost) {
    return {PauseKind::kCheckpoint, true};
  }
  const auto written = interruptions.number("write_bytes_per_s");
  const double otherwise = interruptions.number("write_otherwise_bytes_per_s").value_or(0);
  if (waiting < kMost && written && *written >= kWriteMinPerS && *written >= kWriteRatio * otherwise) {
    return {PauseKind::kCheckpoint, false};
  }
  // An evaluation keeps the GPU busy.
  if (interruptions.number("gpu_busy_pct").value_or(0) >= kGpuWorks) return {};
  const Fact* slow = fact_for(facts, "slow_steps.summary", interruptions.where);
  if (slow != nullptr && is_worker_period(facts, *slow)) return {};
  if (interruptions.number("epoch_pct").value_or(0) >= kMost) return {PauseKind::kEpochGap, true};
  const auto every = interruptions.number("every_steps");
  if (interruptions.number("epoch_pct") || !every || *every < kEpochStepsMin) return {};
  const bool is_between = interruptions.number("between_pct").value_or(0) >= kMost;
  return waiting >= kMost || is_between ? PauseGuess{PauseKind::kEpochGap, false} : PauseGuess{};
}

}  // namespace hotlap
