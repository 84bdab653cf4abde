#include "analysis/step_builder.h"

#include <algorithm>
#include <array>

#include "analysis/named_stretches.h"
#include "wire/ring_layout.h"

namespace hotlap {
namespace {

constexpr std::array kKinds{SpanKind::kStep,        SpanKind::kDataWait,   SpanKind::kForward, SpanKind::kBackward,
                            SpanKind::kOptimizer,   SpanKind::kCheckpoint, SpanKind::kGarbage, SpanKind::kCompile,
                            SpanKind::kEvaluation,  SpanKind::kCollective, SpanKind::kHook,    SpanKind::kWorkerStart,
                            SpanKind::kProfilePause};

// The order in which parts give way when one lies inside another: the inner kinds first.
enum Part : std::uint8_t {
  kGarbagePart,
  kCompilePart,
  kCheckpointPart,
  kEvaluationPart,
  kCommunicationPart,
  kDataWaitPart,
  kForwardPart,
  kBackwardPart,
  kOptimizerPart,
  kPartCount,
};
using Part::kPartCount;

std::optional<Part> part_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kDataWait: return kDataWaitPart;
    case SpanKind::kForward: return kForwardPart;
    case SpanKind::kBackward: return kBackwardPart;
    case SpanKind::kOptimizer: return kOptimizerPart;
    case SpanKind::kCheckpoint: return kCheckpointPart;
    case SpanKind::kGarbage: return kGarbagePart;
    case SpanKind::kCompile: return kCompilePart;
    case SpanKind::kEvaluation: return kEvaluationPart;
    case SpanKind::kCollective: return kCommunicationPart;
    default: return std::nullopt;
  }
}

// Of an evaluation: they are inside its own span.
bool is_of_evaluation(const Span& span) {
  return span.step < 0 && (span.kind == SpanKind::kDataWait || span.kind == SpanKind::kForward);
}

// What another thread does meanwhile holds no step up: a checkpoint that is saved in the background.
bool is_beside(const Span& part, const Span& step) {
  return part.kind == SpanKind::kCheckpoint && part.thread != 0 && step.thread != 0 && part.thread != step.thread;
}

struct PartTime {
  std::int64_t ns = 0;
  bool is_unknown = false;  // an end was not seen
};

// The time of each part inside a step. A span inside another one is taken from the outer: a collection during
// backward is not backward. Forward and optimizer are sums that begin at their first call, so containment is by
// start only. The optimizer's comes without what its closure called (waits, forwards, backwards) already.
class PartTimes {
 public:
  void add(const Span& span, Part part, std::int64_t end_ns) {
    if (span.duration_ns < 0) {
      times_[part].is_unknown = true;
      return;
    }
    const std::int64_t duration = std::min(span.duration_ns, end_ns - span.start_ns);
    times_[part].ns += duration;
    intervals_.push_back({span.start_ns, span.start_ns + duration, part});
  }

  // At most `duration_ns` in all.
  void settle(std::int64_t duration_ns) {
    for (const Interval& inner : intervals_) {
      const Interval* outer = nullptr;  // the tightest that holds it
      for (const Interval& other : intervals_) {
        if (other.part <= inner.part || inner.start_ns < other.start_ns || inner.start_ns >= other.end_ns) continue;
        if (other.part == kOptimizerPart && is_of_closure(inner.part)) continue;
        if (outer == nullptr || other.start_ns > outer->start_ns) outer = &other;
      }
      if (outer == nullptr) continue;
      const std::int64_t inside = std::min(inner.end_ns, outer->end_ns) - inner.start_ns;
      times_[outer->part].ns = std::max<std::int64_t>(times_[outer->part].ns - inside, 0);
    }
    std::int64_t rest = duration_ns;
    for (PartTime& time : times_) {
      time.ns = std::min(time.ns, rest);
      rest -= time.ns;
    }
  }

  std::int64_t sum_ns() const {
    std::int64_t sum = 0;
    for (const PartTime& time : times_) sum += time.ns;
    return sum;
  }
  std::vector<TimeStretch> stretches() const {
    std::vector<TimeStretch> out;
    for (const Interval& one : intervals_) out.push_back({one.start_ns, one.end_ns});
    return out;
  }

  const PartTime& operator[](Part part) const { return times_[part]; }

 private:
  static bool is_of_closure(Part part) {
    return part == kDataWaitPart || part == kForwardPart || part == kBackwardPart;
  }
  struct Interval {
    std::int64_t start_ns;
    std::int64_t end_ns;
    Part part;
  };
  std::array<PartTime, kPartCount> times_{};
  std::vector<Interval> intervals_;
};

constexpr std::uint32_t bit(Part part) { return 1U << part; }
// The hook always watches these, so that none seen means none happened.
constexpr std::uint32_t kWork = bit(kDataWaitPart) | bit(kForwardPart) | bit(kBackwardPart) | bit(kOptimizerPart);
constexpr std::uint32_t kAlwaysWatched = bit(kGarbagePart) | bit(kCheckpointPart) | bit(kEvaluationPart);

// As a kHook span tells it; -1: it does not.
std::uint32_t shed_parts(std::int64_t hook_parts) {
  if (hook_parts < 0) return 0;
  const auto has_shed = [&](HookPart part) {
    return (static_cast<std::uint64_t>(hook_parts) & static_cast<std::uint64_t>(part)) != 0;
  };
  return (has_shed(HookPart::kPhases)
              ? bit(kForwardPart) | bit(kBackwardPart) | bit(kOptimizerPart) | bit(kEvaluationPart)
              : 0) |
         (has_shed(HookPart::kGarbage) ? bit(kGarbagePart) : 0) |
         (has_shed(HookPart::kCollectives) ? bit(kCommunicationPart) : 0);
}

}  // namespace

std::span<const SpanKind> StepBuilder::kinds() { return kKinds; }

StepBuilder::Process* StepBuilder::process_of(std::uint32_t slot) {
  if (const auto found = processes_.find(slot); found != processes_.end()) return &found->second;
  if (processes_.size() >= kProcessesMax) return nullptr;
  return &processes_[slot];
}

void StepBuilder::set_communication_unseen(std::uint32_t process, bool is_unseen) {
  if (is_unseen) {
    communication_unseen_.insert(process);
  } else {
    communication_unseen_.erase(process);
  }
}

void StepBuilder::add(const Span& span) {
  const bool is_named = span.kind == SpanKind::kUser && name_of_ != nullptr;
  if (!is_named && std::ranges::find(kKinds, span.kind) == kKinds.end()) return;
  Process* process = process_of(span.process);
  if (process == nullptr) {
    ++counts_.spans_refused;
    return;
  }
  if (is_named) return add_named(*process, span);
  if (span.kind != SpanKind::kStep) {
    add_part(*process, span);
    if (process->is_inferring) infer(span.process, *process, false);
    return;
  }
  if (span.duration_ns < 0) {
    ++counts_.steps_damaged;
    return;
  }
  process->waits.clear();
  process->is_inferring = false;
  process->has_steps = true;
  close_held(span.process, *process);
  process->step = span;
  process->was_profiling = process->is_profiling;
}

void StepBuilder::add_named(Process& process, const Span& span) {
  if (span.step < 0 || span.duration_ns <= 0) return;  // of an evaluation, or a native observer's
  if (process.named.size() >= kNamedMax) {
    counts_.spans_refused += kNamedMax / 2;
    process.named.erase(process.named.begin(), process.named.begin() + kNamedMax / 2);
  }
  process.named.push_back(span);
}

// Those of the training thread, cut to the step; what goes on beyond it is of the next one.
std::vector<Span> StepBuilder::take_named(Process& process, const Span& step) {
  const std::int64_t end_ns = step.start_ns + step.duration_ns;
  std::vector<Span> taken;
  std::vector<Span> later;
  for (Span span : process.named) {
    if (span.start_ns >= end_ns) {
      later.push_back(span);
      continue;
    }
    const bool is_other_thread = span.thread != 0 && step.thread != 0 && span.thread != step.thread;
    if (span.start_ns < step.start_ns || is_other_thread) continue;
    const std::int64_t beyond_ns = span.start_ns + span.duration_ns - end_ns;
    if (beyond_ns > 0) {
      Span rest = span;
      rest.start_ns = end_ns;
      rest.duration_ns = beyond_ns;
      later.push_back(rest);
      span.duration_ns -= beyond_ns;
    }
    taken.push_back(span);
  }
  process.named = std::move(later);
  return taken;
}

void StepBuilder::add_pause(Process& process, const Span& span) {
  process.is_profiling = span.value_a == 1;
  if (span.duration_ns < 0) return;
  const Pause pause{span.start_ns, span.start_ns + span.duration_ns};
  if (pauses_.size() < kPausesMax) {
    pauses_.push_back(pause);
  } else {
    pauses_[next_pause_] = pause;
    next_pause_ = (next_pause_ + 1) % kPausesMax;
  }
}

bool StepBuilder::has_pause(const Span& step) const {
  return std::ranges::any_of(pauses_, [&](const Pause& pause) {
    return pause.from_ns < step.start_ns + step.duration_ns && step.start_ns < pause.to_ns;
  });
}

void StepBuilder::add_part(Process& process, const Span& span) {
  if (span.kind == SpanKind::kProfilePause) return add_pause(process, span);
  if (span.kind == SpanKind::kHook) {
    process.has_hook_spans = true;
    process.shed = shed_parts(span.value_a);
    if (span.duration_ns >= 0) process.hook_ns = span.duration_ns / std::max<std::int64_t>(span.value_b, 1);
    return;
  }
  if (const auto part = part_of(span.kind); part && !is_of_evaluation(span)) process.measured |= bit(*part);
  if (process.pending.size() >= kPendingMax) {
    counts_.spans_refused += kPendingMax / 2;
    process.pending.erase(process.pending.begin(), process.pending.begin() + kPendingMax / 2);
  }
  process.pending.push_back(span);
  if (span.kind != SpanKind::kDataWait || process.has_steps || is_of_evaluation(span) || span.duration_ns < 0) return;
  process.waits.push_back(span);
  if (process.waits.size() >= kWaitsBeforeInference) process.is_inferring = true;
}

void StepBuilder::close_held(std::uint32_t slot, Process& process) {
  if (!process.step) return;
  const Span step = *process.step;
  process.step.reset();
  emit_step(slot, process, step, inferred_.contains(slot));
}

void StepBuilder::infer(std::uint32_t slot, Process& process, bool is_last) {
  if (process.waits.size() < 2) return;
  // The newest wait is kept: its step has not ended.
  for (std::size_t i = 0; i + 1 < process.waits.size(); ++i) {
    const Span& wait = process.waits[i];
    const Span& next = process.waits[i + 1];
    Span step{.start_ns = wait.start_ns, .duration_ns = next.start_ns - wait.start_ns, .kind = SpanKind::kStep};
    step.thread = wait.thread;
    step.step = process.index_inferred++;
    step.value_a = wait.value_a;
    if (step.duration_ns > 0) emit_step(slot, process, step, true);
  }
  process.waits.erase(process.waits.begin(), process.waits.end() - (is_last ? 0 : 1));
}

StepBuilder::Parts StepBuilder::take_parts(Process& process, std::int64_t start_ns, std::int64_t end_ns) {
  Parts parts;
  std::vector<Span> later;
  for (const Span& span : process.pending) {
    if (span.start_ns >= end_ns) {
      later.push_back(span);
    } else if (!is_of_evaluation(span) && span.start_ns >= start_ns) {
      // What began before the step, and in none before it, is work between steps. It is no loss: it stays recorded,
      // and happens in every run that warms up or validates.
      parts.push_back(span);
    }
  }
  process.pending = std::move(later);
  return parts;
}

void StepBuilder::emit_step(std::uint32_t slot, Process& process, const Span& span, bool is_inferred) {
  const std::int64_t end_ns = span.start_ns + span.duration_ns;
  Step step{.process = slot, .index = span.step, .start_ns = span.start_ns, .duration_ns = span.duration_ns};
  step.thread = span.thread;
  if (const auto rank = ranks_.find(slot); rank != ranks_.end()) step.rank = rank->second;
  step.samples = span.value_a;
  step.tokens = span.value_b;
  step.is_inferred = is_inferred;
  step.is_profiled = process.was_profiling || has_pause(span);

  PartTimes times;
  std::int32_t batches = 0;
  bool has_work = false;
  for (const Span& part : take_parts(process, span.start_ns, end_ns)) {
    if (is_beside(part, span)) continue;
    if (part.kind == SpanKind::kWorkerStart) {
      if (part.duration_ns >= 0) step.loader_start_ns = step.loader_start_ns.value_or(0) + part.duration_ns;
      continue;
    }
    const auto kind = part_of(part.kind);
    if (!kind) continue;
    times.add(part, *kind, end_ns);
    has_work = has_work || *kind >= kDataWaitPart;
    // next() that only found the loader's end carries 0 samples.
    if (part.kind == SpanKind::kDataWait && part.value_a != 0) ++batches;
  }
  times.settle(span.duration_ns);
  const std::vector<Span> named = take_named(process, span);

  // In a block with the hook off only the steps are recorded.
  step.is_hooked = has_work || (process.measured & kWork) == 0;
  const std::uint32_t measured = (process.measured | (process.has_hook_spans ? kAlwaysWatched : 0)) & ~process.shed;
  const auto take = [&](Part part) -> std::optional<std::int64_t> {
    if (((measured & bit(part)) == 0 && times[part].ns == 0) || times[part].is_unknown) return std::nullopt;
    return times[part].ns;
  };
  // Where small steps are watched in turns, what is rare is still seen in each.
  step.checkpoint_ns = take(kCheckpointPart);
  step.compile_ns = take(kCompilePart);
  step.evaluation_ns = take(kEvaluationPart);
  if (step.is_hooked) {
    step.data_wait_ns = take(kDataWaitPart);
    step.forward_ns = take(kForwardPart);
    step.backward_ns = take(kBackwardPart);
    step.optimizer_ns = take(kOptimizerPart);
    if (!communication_unseen_.contains(slot)) step.communication_ns = take(kCommunicationPart);
    step.gc_ns = take(kGarbagePart);
    step.hook_ns = process.hook_ns;
    if ((measured & bit(kDataWaitPart)) != 0) step.batches = batches;
    if (!named.empty()) {
      step.named = named_times(named, times.stretches(), name_of_);
      std::int64_t rest_ns = span.duration_ns - times.sum_ns();
      for (NamedTime& one : step.named) {
        one.ns = std::min(one.ns, rest_ns);
        rest_ns -= one.ns;
      }
    }
  }
  emit_(step);
}

void StepBuilder::finish() {
  for (auto& [slot, process] : processes_) {
    close_held(slot, process);
    if (!process.has_steps) infer(slot, process, true);
    process.pending.clear();
  }
}

}  // namespace hotlap
