#pragma once
// The steps of one process in bounded memory, split into what is typical and what is not: warm-up, steps that begin
// an epoch by starting a loader, a ragged last batch, and steps with the hook switched off. The same for any
// chunking.
//
// Warm-up: the first kHeadMax steps are kept whole; they are warm-up up to the last one that compiled, and further
// while their running mean is further from that of what follows than windows of steps differ anyway, and than
// kSettled. At most half of the steps, a third when they are few.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/block_means.h"
#include "analysis/log_histogram.h"
#include "model/step.h"

namespace hotlap {

enum class StepPart : std::uint8_t {
  kDataWait,
  kForward,
  kBackward,
  kOptimizer,
  kCommunication,
  kCheckpoint,
  kGarbage,
  kCompile,
  kEvaluation,
  kHook,
};
inline constexpr std::size_t kStepPartCount = 10;
std::optional<std::int64_t> part_ns(const Step& step, StepPart part);

// The parts that may make a step slow, by the names that facts have for them.
inline constexpr std::array<std::pair<StepPart, std::string_view>, 8> kWatchedParts{{
    {StepPart::kDataWait, "data_wait"},
    {StepPart::kForward, "forward"},
    {StepPart::kBackward, "backward"},
    {StepPart::kOptimizer, "optimizer"},
    {StepPart::kCheckpoint, "checkpoint"},
    {StepPart::kGarbage, "gc"},
    {StepPart::kCompile, "compile"},
    {StepPart::kEvaluation, "evaluation"},
}};

// Sums over steps.
struct StepSums {
  static constexpr std::size_t kNamesMax = 64;
  std::uint64_t steps = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t hooked_steps = 0;
  std::int64_t hooked_ns = 0;
  std::array<std::int64_t, kStepPartCount> part_sum_ns{};
  std::array<std::uint64_t, kStepPartCount> part_steps{};  // those where it was measured
  std::int64_t saving_wait_ns = 0;                         // data wait of steps that hold a checkpoint
  std::uint64_t saving_wait_steps = 0;                     // those where it was measured
  std::uint64_t batch_steps = 0;                           // steps with a known number of batches
  std::uint64_t batches = 0;
  std::uint64_t sample_steps = 0;
  std::int64_t sample_ns = 0;  // duration of the steps whose samples are known
  std::int64_t samples = 0;
  std::int64_t token_ns = 0;
  std::int64_t tokens = 0;
  std::uint64_t inferred = 0;
  std::map<std::string, std::int64_t, std::less<>> named_ns;  // of the hooked steps; the first kNamesMax names

  void add(const Step& step);
  void add(const StepSums& other);
  void add_named(std::string_view name, std::int64_t ns);
  // Mean of the steps where it was measured; nothing when they are fewer than half as many as the hooked ones. Data
  // wait: of those without a checkpoint, unless most have one. Without a known loader the gap before forward counts as
  // wait, and what follows a checkpoint (flushing, uploading) lies in it.
  std::optional<double> mean_ns(StepPart part) const;
};

// What one part took in all steps, typical or not: a checkpoint makes its step untypical.
struct PartPauses {
  std::uint64_t measured = 0;  // steps in which it was looked at, whether it took time or not
  std::uint64_t steps = 0;     // in which it took any time
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;   // in one step
  std::uint64_t first_step = 0;  // number of the step, counted from 0
  std::uint64_t last_step = 0;
};

// What can be said at one moment.
struct SteadySteps {
  std::uint64_t count = 0;  // all steps seen
  std::uint64_t warmup_count = 0;
  std::int64_t warmup_ns = 0;
  std::uint64_t ragged_count = 0;
  std::uint64_t loader_start_count = 0;  // steps that begin an epoch with a new iterator of workers
  std::int64_t loader_start_ns = 0;      // their time
  std::uint64_t restarts = 0;            // the index began anew
  std::int64_t total_ns = 0;             // of all steps
  StepSums sums;                         // of the typical steps
  LogHistogram durations_ns;
  BlockMeans blocks_ns;       // durations of typical steps, in order
  BlockMeans wait_blocks_ns;  // their data wait
  std::int64_t from_ns = 0;   // of the typical steps
  std::int64_t to_ns = 0;
};

class StepStatistics {
 public:
  static constexpr std::size_t kHeadMax = 256;
  static constexpr double kSettled = 0.15;

  // Steps that somebody chose to look at, after a warm-up of their own: the first ones count like all others. Where
  // that is not known (no step is marked), all but first ones that are far longer than the rest: the program's start.
  void set_chosen(bool may_hold_start) {
    is_chosen_ = true;
    may_hold_start_ = may_hold_start;
  }
  bool is_chosen() const { return is_chosen_; }
  void add(const Step& step);
  // The steps of the same process that another recorder saw later, as if they had been added here. Beyond the first
  // kHeadMax, each recording tells ragged batches by the largest batch that it saw itself.
  void append(const StepStatistics& later);
  // Made once until something is added.
  const SteadySteps& steady() const;
  std::uint64_t count() const { return count_; }
  std::int32_t rank() const { return rank_; }
  const PartPauses& pauses(StepPart part) const { return pauses_[static_cast<std::size_t>(part)]; }
  // What steps with a checkpoint took beyond the typical step and beyond what was measured in them as checkpoint,
  // evaluation, collection or compilation: flushing, copying, uploading right around it. All of them together; 0 where
  // it is no more than steps vary anyway.
  std::int64_t beside_checkpoints_ns() const;
  std::int64_t begin_ns() const { return head_.empty() ? last_end_ns_ : head_.front().start_ns; }
  std::int64_t end_ns() const { return last_end_ns_; }
  // From the begin of the first step to the end of the last one.
  std::int64_t span_ns() const { return head_.empty() ? 0 : last_end_ns_ - head_.front().start_ns; }

 private:
  struct Tail {
    StepSums sums;
    LogHistogram durations_ns;
    void append(const Tail& other) {
      sums.add(other.sums);
      durations_ns.merge(other.durations_ns);
    }
  };
  bool is_ragged(const Step& step) const;
  void add_tail(const Step& step);
  void add_pauses(const Step& step);
  SteadySteps make_steady() const;
  std::size_t warmup_steps() const;
  std::size_t start_steps() const;

  std::vector<Step> head_;
  Tail regular_;
  Tail ragged_;
  StepSums starting_;
  BlockMeans tail_blocks_ns_{16};
  BlockMeans tail_wait_blocks_ns_{16};
  std::array<PartPauses, kStepPartCount> pauses_{};
  LogHistogram saving_rest_ns_;  // of steps with a checkpoint, without what is rare in them
  std::uint64_t count_ = 0;
  std::uint64_t restarts_ = 0;
  std::int64_t total_ns_ = 0;
  std::int64_t last_index_ = -1;
  std::int64_t last_end_ns_ = 0;
  std::int64_t samples_max_ = -1;  // of one step
  std::int32_t rank_ = -1;
  bool is_chosen_ = false;
  bool may_hold_start_ = false;
  mutable std::optional<SteadySteps> steady_;
};

}  // namespace hotlap
