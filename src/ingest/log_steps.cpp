#include "ingest/log_steps.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::int64_t kStepsOfBlockMax = 100'000;  // more between two lines are not believed
constexpr std::uint64_t kStepsMax = 20'000'000;
constexpr double kSecondsMax = 1e8;
constexpr std::size_t kBlocksToLearn = 8;  // without a pause, until it is known how long a step takes
constexpr std::size_t kBlocksToWait = 64;  // for them
constexpr std::size_t kBlocksRecent = 63;  // over which that is looked at
constexpr std::int64_t kPauseMinNs = kNsPerS;
constexpr double kPauseMinShare = 0.1;  // of the time of the steps beside it: less is how much they vary

bool is_seconds(double value) { return std::isfinite(value) && value >= 0 && value <= kSecondsMax; }

std::int64_t room_ns(const LogBlock& block) {
  return block.end_ns - block.begin_ns - (block.evaluated_to_ns - block.evaluated_from_ns);
}
std::int64_t steps_ns(const LogBlock& block) { return block.own_ns > 0 ? block.own_ns : room_ns(block); }

// The time of a step that a line says holds a pause too where it was taken over several, or around an evaluation.
bool may_hold_pause(const LogBlock& block) {
  if (block.pause == LogPause::kEvaluation || block.pause == LogPause::kSilence) return true;
  if (block.count == 1 || block.pause == LogPause::kNone) return false;
  return block.own_ns == 0 || block.pause == LogPause::kSaved;
}

}  // namespace

void LogSteps::give(std::uint32_t process, const LogBlock& block) {
  process_ = process;
  if (block.count > kStepsOfBlockMax || given_ + static_cast<std::uint64_t>(block.count) > kStepsMax) {
    refused_ += static_cast<std::uint64_t>(block.count);
    return;
  }
  given_ += static_cast<std::uint64_t>(block.count);
  learn(block);
  if (is_flowing_) return put(block);
  waiting_.push_back(block);
  if (recent_ns_.size() >= kBlocksToLearn || waiting_.size() >= kBlocksToWait) flush();
}

void LogSteps::finish() { flush(); }

void LogSteps::flush() {
  is_flowing_ = true;
  for (const LogBlock& block : waiting_) put(block);
  waiting_.clear();
}

void LogSteps::learn(const LogBlock& block) {
  if (block.pause != LogPause::kNone || block.is_head || block.evaluated_to_ns > block.evaluated_from_ns) return;
  recent_count_ = block.count;
  recent_ns_.push_back(static_cast<double>(steps_ns(block)) / static_cast<double>(block.count));
  if (recent_ns_.size() > kBlocksRecent) recent_ns_.pop_front();
}

// Of a step; 0: not known.
double LogSteps::typical_ns() const {
  if (recent_ns_.empty()) return 0;
  std::vector<double> sorted(recent_ns_.begin(), recent_ns_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

void LogSteps::put(const LogBlock& block) {
  std::int64_t all_ns = steps_ns(block);
  std::int64_t pause_ns = 0;
  const double typical = typical_ns();
  if (block.is_head) {
    // A log that goes on where another ended has no more of them than lie between two of its lines.
    const bool is_believed = recent_count_ == 0 || block.count <= recent_count_;
    if (all_ns <= 0) all_ns = std::llround(typical * static_cast<double>(block.count));
    if (!is_believed || all_ns <= 0) {
      given_ -= static_cast<std::uint64_t>(block.count);
      return;
    }
  }
  if (typical > 0 && may_hold_pause(block)) {
    const auto usual_ns = std::llround(typical * static_cast<double>(block.count));
    const double least =
        std::max({static_cast<double>(kPauseMinNs), typical, kPauseMinShare * static_cast<double>(usual_ns)});
    if (static_cast<double>(all_ns - usual_ns) >= least) {
      pause_ns = all_ns - usual_ns;
      all_ns = usual_ns;
    }
  }
  const double each = static_cast<double>(all_ns) / static_cast<double>(block.count);
  const auto steps_until = [&](std::int64_t t_ns) {
    return each > 0 ? std::llround(static_cast<double>(t_ns - block.begin_ns) / each) : 0;
  };
  std::int64_t before = 0;
  if (block.evaluated_to_ns > block.evaluated_from_ns) {
    before = steps_until(block.evaluated_from_ns);
  } else if (pause_ns > 0 || all_ns < room_ns(block)) {
    before = block.pause_at_ns ? steps_until(*block.pause_at_ns) : block.before;
  }
  before = std::clamp<std::int64_t>(before, 0, block.count);
  const auto before_ns = std::llround(each * static_cast<double>(before));
  const std::int64_t begin_ns = std::min(block.begin_ns, block.end_ns - all_ns - pause_ns);
  if (before > 0) put_steps(block, block.number - block.count + 1, before, begin_ns, begin_ns + before_ns);
  if (before < block.count) {
    put_steps(block, block.number - block.count + 1 + before, block.count - before, block.end_ns - (all_ns - before_ns),
              block.end_ns);
  }
  if (pause_ns > 0 && block.pause == LogPause::kEvaluation) {
    out_.span({.start_ns = begin_ns + before_ns,
               .duration_ns = pause_ns,
               .kind = SpanKind::kEvaluation,
               .process = process_});
  }
}

void LogSteps::put_steps(const LogBlock& block, std::int64_t first, std::int64_t count, std::int64_t start_ns,
                         std::int64_t end_ns) {
  const bool has_last = first + count - 1 == block.number;
  const std::int64_t all_ns = end_ns - start_ns;
  const std::int64_t last_ns =
      has_last && block.last_ns >= 0 && count > 1 ? std::min(block.last_ns, all_ns) : all_ns / count;
  const std::int64_t rest_ns = count > 1 ? (all_ns - last_ns) / (count - 1) : 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t duration_ns = k + 1 == count ? end_ns - start_ns : rest_ns;
    put_parts(block, has_last && k + 1 == count, first + k, start_ns, duration_ns);
    out_.span({.start_ns = start_ns,
               .duration_ns = duration_ns,
               .kind = SpanKind::kStep,
               .process = process_,
               .step = first + k,
               .value_a = block.samples});
    start_ns += duration_ns;
  }
}

// One after the other, as far as the step goes.
void LogSteps::put_parts(const LogBlock& block, bool is_last, std::int64_t step, std::int64_t start_ns,
                         std::int64_t duration_ns) {
  const std::int64_t end_ns = start_ns + duration_ns;
  const auto put_part = [&](SpanKind kind, double seconds) {
    if (!is_seconds(seconds)) return;
    const std::int64_t part_ns = std::min<std::int64_t>(std::llround(seconds * 1e9), end_ns - start_ns);
    if (part_ns == 0 && start_ns == end_ns) return;  // it would count for the next step
    out_.span({.start_ns = start_ns, .duration_ns = part_ns, .kind = kind, .process = process_, .step = step});
    start_ns += part_ns;
  };
  put_part(SpanKind::kDataWait, is_last ? block.last_wait_s : block.wait_s);
  for (std::size_t i = 0; i < kLogParts; ++i) put_part(kLogPartKinds[i], block.parts_s[i]);
}

}  // namespace hotlap
