#include "analysis/trace_phases.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace hotlap {
namespace {

constexpr std::size_t kNamesMax = 4'000'000;
constexpr std::size_t kStepsToInfer = 2;

constexpr std::int64_t kOverlapPartMax = 20;  // of the time of numbered steps, one in so many may lie in two of them
constexpr std::int64_t kCoveredPart = 2;  // labelled steps cover at least one in so many of the time from first to last

constexpr std::array kKinds{SpanKind::kStep,      SpanKind::kDataWait, SpanKind::kForward,    SpanKind::kBackward,
                            SpanKind::kOptimizer, SpanKind::kOperator, SpanKind::kCheckpoint, SpanKind::kGarbage,
                            SpanKind::kCompile,   SpanKind::kUser};

std::int64_t end_of(const Span& span) { return span.start_ns + std::max<std::int64_t>(span.duration_ns, 0); }

}  // namespace

std::span<const SpanKind> TracePhases::kinds() { return kKinds; }

const TracePhases::Meaning& TracePhases::meaning_of(std::uint32_t name) {
  static constexpr Meaning kNothing{};
  if (name == 0 || name >= kNamesMax) return kNothing;
  if (name >= names_.size()) names_.resize(name + 1);
  if (!names_[name]) {
    const std::string text = name_of_(name);
    names_[name] = Meaning{.phase = phase_name(text), .step = step_label(text)};
  }
  return *names_[name];
}

TracePhases::Process* TracePhases::process_of(std::uint32_t slot) {
  const auto found = processes_.find(slot);
  if (found != processes_.end()) return &found->second;
  if (processes_.size() >= kProcessesMax) return nullptr;
  return &processes_[slot];
}

void TracePhases::add(const Span& span) {
  switch (span.kind) {
    case SpanKind::kUser:
    case SpanKind::kStep:
    case SpanKind::kDataWait:
    case SpanKind::kForward:
    case SpanKind::kBackward:
    case SpanKind::kOptimizer:
    case SpanKind::kOperator: break;
    case SpanKind::kCheckpoint:
    case SpanKind::kGarbage:
    case SpanKind::kCompile: out_.span(span); return;
    default: return;
  }
  Process* const found = process_of(span.process);
  if (found == nullptr) {
    ++refused_;
    return;
  }
  Process& process = *found;
  if (span.kind != SpanKind::kStep && span.step >= 0) add_number(process, span);
  if (span.kind == SpanKind::kUser || span.kind == SpanKind::kOperator) {
    if (const auto& label = meaning_of(span.name).step) return add_label(process, span, *label);
  }
  switch (span.kind) {
    case SpanKind::kStep: begin_step(span.process, process, span); break;
    case SpanKind::kDataWait: add_segment(process, span, Part::kDataWait, true); break;
    case SpanKind::kForward: add_segment(process, span, Part::kForward, true); break;
    case SpanKind::kBackward: add_segment(process, span, Part::kBackward, true); break;
    case SpanKind::kOptimizer: add_segment(process, span, Part::kOptimizer, true); break;
    case SpanKind::kOperator: add_operator(process, span); break;
    default: break;
  }
}

void TracePhases::add_operator(Process& process, const Span& span) {
  switch (meaning_of(span.name).phase) {
    case PhaseName::kNone: return add_segment(process, span, Part::kForward, false);
    case PhaseName::kAutograd: return add_segment(process, span, Part::kBackward, false);
    case PhaseName::kDataWait: return add_segment(process, span, Part::kDataWait, true);
    case PhaseName::kForward: return add_segment(process, span, Part::kForward, true);
    case PhaseName::kBackward: return add_segment(process, span, Part::kBackward, true);
    case PhaseName::kOptimizer: return add_segment(process, span, Part::kOptimizer, true);
    case PhaseName::kCommunication: return;
  }
}

void TracePhases::add_number(Process& process, const Span& span) {
  if (process.has_steps || span.duration_ns < 0) return;
  auto found = process.numbered.find(span.step);
  if (found == process.numbered.end()) {
    if (process.numbered.size() >= kNumbersMax) {
      ++refused_;
      return;
    }
    found = process.numbered.emplace(span.step, Extent{span.start_ns, end_of(span)}).first;
  }
  found->second.start_ns = std::min(found->second.start_ns, span.start_ns);
  found->second.end_ns = std::max(found->second.end_ns, end_of(span));
}

void TracePhases::add_label(Process& process, const Span& span, const StepLabel& label) {
  if (process.has_steps || span.duration_ns <= 0) return;
  if (process.labels >= kNumbersMax) {
    ++refused_;
    return;
  }
  ++process.labels;
  Labelled& same = process.labelled[{span.thread, label.words}];
  same.thread = span.thread;
  same.words = label.words;
  same.ranges.push_back(span);
  same.ranges.back().step = label.number;
}

void TracePhases::add_segment(Process& process, const Span& span, Part part, bool is_marked) {
  if (host_ == Host::kHandsOverPrograms) {
    if (!is_marked) return;
    if (span.thread != 0) {
      Span anywhere = span;
      anywhere.thread = 0;
      return add_segment(process, anywhere, part, is_marked);
    }
  }
  process.has_marked_forward |= is_marked && part == Part::kForward;
  process.has_marked_backward |= is_marked && part == Part::kBackward;
  if (span.duration_ns < 0) return;
  Thread& thread = process.threads[span.thread];
  // What lies inside something that was taken is part of it. Neighbours may overlap a little, since the end of one and
  // the begin of the next are read from a clock one after the other, or averaged.
  if (span.start_ns < thread.top_end_ns && thread.top_end_ns - span.start_ns >= span.duration_ns / 2) return;
  const std::int64_t start_ns = std::max(span.start_ns, thread.top_end_ns);
  thread.top_end_ns = end_of(span);
  thread.work_ns += end_of(span) - start_ns;
  thread.has_marks = thread.has_marks || (is_marked && part != Part::kBackward);
  const std::int64_t last_other_ns = process.last_other_ns;
  (part == Part::kBackward ? process.last_backward_ns : process.last_other_ns) = start_ns;
  if (thread.may_join && !thread.segments.empty()) {
    Segment& last = thread.segments.back();
    // Forward and backward pass may take turns on two threads: neither reaches over the other.
    const bool is_apart =
        part == Part::kBackward ? last_other_ns >= last.end_ns : process.last_backward_ns > last.start_ns;
    if (last.part == part && !is_marked && !last.is_marked && !is_apart) {
      last.end_ns = end_of(span);
      return;
    }
  }
  if (process.segments >= kSegmentsMax) {
    ++refused_;
    return;
  }
  ++process.segments;
  thread.may_join = true;
  thread.segments.push_back({start_ns, end_of(span), span.thread, part, is_marked});
}

void TracePhases::begin_step(std::uint32_t slot, Process& process, const Span& span) {
  if (span.duration_ns < 0) {
    out_.span(span);  // counted there as damaged
    return;
  }
  // A range inside the step that is open is the same step's, said twice.
  if (!process.step.empty() && end_of(span) <= end_of(process.step.front())) return;
  end_step(slot, process);
  process.has_steps = true;
  process.step.assign(1, span);
  for (auto& [id, thread] : process.threads) thread.may_join = false;
}

void TracePhases::end_step(std::uint32_t slot, Process& process) {
  if (process.step.empty()) return;
  Span step = process.step.front();
  process.step.clear();
  // A profile of several windows numbers them anew; steps of one process grow.
  if (step.step < 0 || step.step <= process.last_number) step.step = process.last_number + 1;
  process.last_number = step.step;
  emit(slot, process, step, take_segments(process, step.thread, end_of(step)));
}

// Those of the training thread, and the backward pass wherever it ran, up to `end_ns`; what is older goes.
std::vector<TracePhases::Segment> TracePhases::take_segments(Process& process, std::uint32_t main,
                                                             std::int64_t end_ns) {
  std::vector<Segment> taken;
  for (auto& [id, thread] : process.threads) {
    const auto later = std::ranges::partition_point(thread.segments,
                                                    [&](const Segment& segment) { return segment.start_ns < end_ns; });
    for (auto segment = thread.segments.begin(); segment != later; ++segment) {
      // What is marked is its own thread's: those of a pipeline's stages run side by side.
      if (segment->thread == main || (segment->part == Part::kBackward && !segment->is_marked)) {
        taken.push_back(*segment);
      }
    }
    process.segments -= static_cast<std::size_t>(later - thread.segments.begin());
    thread.segments.erase(thread.segments.begin(), later);
  }
  std::ranges::stable_sort(taken, {}, &Segment::start_ns);
  return taken;
}

void TracePhases::emit(std::uint32_t slot, const Process& process, const Span& step, std::vector<Segment> inside) {
  std::erase_if(inside, [&](const Segment& segment) { return segment.start_ns < step.start_ns; });
  std::int64_t last_backward_ns = INT64_MIN;
  bool has_backward = false;
  for (const Segment& segment : inside) {
    if (segment.part != Part::kBackward) continue;
    has_backward = true;
    last_backward_ns = std::max(last_backward_ns, segment.start_ns);
  }
  for (Segment& segment : inside) {
    // Behind the backward pass the training thread clips, logs and counts.
    if (segment.part != Part::kForward || segment.is_marked) continue;
    if (process.has_marked_forward || (has_backward && segment.start_ns > last_backward_ns))
      segment.part = Part::kOther;
  }
  // One backward pass is one part, however many operators and threads it has.
  for (std::size_t i = 0; i < inside.size();) {
    Segment segment = inside[i++];
    if (segment.part == Part::kOther) continue;
    if (segment.part == Part::kBackward && !segment.is_marked) {
      if (process.has_marked_backward) continue;
      for (; i < inside.size() && inside[i].part == Part::kBackward && !inside[i].is_marked; ++i) {
        segment.end_ns = std::max(segment.end_ns, inside[i].end_ns);
      }
    }
    Span part{.start_ns = segment.start_ns, .duration_ns = segment.end_ns - segment.start_ns};
    part.process = slot;
    part.thread = segment.thread;
    part.step = step.step;
    switch (segment.part) {
      case Part::kDataWait: part.kind = SpanKind::kDataWait; break;
      case Part::kForward: part.kind = SpanKind::kForward; break;
      case Part::kBackward: part.kind = SpanKind::kBackward; break;
      default: part.kind = SpanKind::kOptimizer; break;
    }
    out_.span(part);
  }
  out_.span(step);
}

std::uint32_t TracePhases::main_thread(const Process& process) const {
  const std::pair<const std::uint32_t, Thread>* best = nullptr;
  for (const auto& entry : process.threads) {
    const auto rank = [](const Thread& thread) { return std::pair(thread.has_marks, thread.work_ns); };
    if (best == nullptr || rank(entry.second) > rank(best->second)) best = &entry;
  }
  return best == nullptr ? 0 : best->first;
}

// Numbers that are those of steps come one after the other: those of samples, layers or denoising steps do not.
bool TracePhases::take_numbered(std::uint32_t slot, Process& process) {
  const auto& numbered = process.numbered;
  if (numbered.size() < kStepsToInfer) return false;
  std::int64_t sum_ns = 0;
  std::int64_t overlap_ns = 0;
  for (auto at = numbered.begin(); at != numbered.end(); ++at) {
    sum_ns += at->second.end_ns - at->second.start_ns;
    const auto next = std::next(at);
    if (next == numbered.end()) break;
    if (next->second.start_ns <= at->second.start_ns) return false;
    overlap_ns += std::max<std::int64_t>(0, at->second.end_ns - next->second.start_ns);
  }
  if (overlap_ns > sum_ns / kOverlapPartMax) return false;
  const std::uint32_t main = main_thread(process);
  std::vector<Span> steps;
  for (auto at = numbered.begin(); at != numbered.end(); ++at) {
    const auto next = std::next(at);
    const std::int64_t end_ns =
        next == numbered.end() ? at->second.end_ns : std::min(at->second.end_ns, next->second.start_ns);
    Span step{.start_ns = at->second.start_ns, .kind = SpanKind::kStep, .process = slot, .thread = main};
    step.duration_ns = end_ns - step.start_ns;
    step.step = at->first;
    steps.push_back(step);
  }
  emit_all(slot, process, steps, take_segments(process, main, INT64_MAX));
  return true;
}

void TracePhases::emit_all(std::uint32_t slot, const Process& process, std::span<const Span> steps,
                           std::vector<Segment> all) {
  out_.set_inferred(slot);
  std::size_t next = 0;
  for (const Span& step : steps) {
    std::vector<Segment> inside;
    for (; next < all.size() && all[next].start_ns < end_of(step); ++next) inside.push_back(all[next]);
    emit(slot, process, step, std::move(inside));
  }
}

void TracePhases::infer(std::uint32_t slot, Process& process) {
  const std::uint32_t main = main_thread(process);
  const std::vector<Segment> all = take_segments(process, main, INT64_MAX);
  if (all.empty()) return;
  // Where a step begins, by what the trace has.
  std::vector<std::int64_t> cuts;
  const auto count = [&](Part part) { return std::ranges::count(all, part, &Segment::part); };
  const auto waits = count(Part::kDataWait);
  const auto optimizers = count(Part::kOptimizer);
  if (waits >= static_cast<std::ptrdiff_t>(kStepsToInfer) && (optimizers == 0 || waits <= optimizers + 1)) {
    for (const Segment& segment : all) {
      if (segment.part == Part::kDataWait) cuts.push_back(segment.start_ns);
    }
    // What follows the last fetch is a step when it has come to its end.
    if (all.back().part != Part::kDataWait && (optimizers == 0 || all.back().part == Part::kOptimizer)) {
      cuts.push_back(all.back().end_ns);
    }
  } else {
    const Part end = optimizers >= static_cast<std::ptrdiff_t>(kStepsToInfer) ? Part::kOptimizer : Part::kBackward;
    cuts.push_back(all.front().start_ns);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].part == end && (i + 1 == all.size() || all[i + 1].part != end)) cuts.push_back(all[i].end_ns);
    }
  }
  if (cuts.size() <= kStepsToInfer) return;
  std::vector<Span> steps;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    Span step{.start_ns = cuts[i], .duration_ns = cuts[i + 1] - cuts[i], .kind = SpanKind::kStep, .process = slot};
    step.thread = main;
    step.step = process.index++;
    steps.push_back(step);
  }
  emit_all(slot, process, steps, all);
}

// Ranges that come one after the other, all with a number or all without one, and that cover most of the time between
// the first and the last. Of several (batches inside steps) the one that covers most.
const TracePhases::Labelled* TracePhases::best_label(const Process& process) const {
  const Labelled* best = nullptr;
  std::pair<bool, std::int64_t> best_rank{};
  const std::uint32_t main = main_thread(process);
  for (const auto& [key, labelled] : process.labelled) {
    const std::vector<Span>& ranges = labelled.ranges;
    if (ranges.size() < kStepsToInfer) continue;
    std::int64_t sum_ns = 0;
    bool follow = true;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      sum_ns += ranges[i].duration_ns;
      if (i == 0) continue;
      follow = follow && ranges[i].start_ns >= end_of(ranges[i - 1]) && (ranges[i].step >= 0) == (ranges[0].step >= 0);
    }
    const std::int64_t extent_ns = end_of(ranges.back()) - ranges.front().start_ns;
    if (!follow || sum_ns < extent_ns / kCoveredPart) continue;
    const std::pair rank(labelled.thread == main, sum_ns);
    if (best == nullptr || rank > best_rank) {
      best = &labelled;
      best_rank = rank;
    }
  }
  return best;
}

bool TracePhases::take_labelled(std::uint32_t slot, Process& process) {
  const Labelled* const label = best_label(process);
  if (label == nullptr) return false;
  const bool has_one_thread = host_ == Host::kHandsOverPrograms;
  std::vector<Span> steps = label->ranges;
  // Numbers that begin again with each epoch tell no step from another.
  const auto is_above = [](const Span& a, const Span& b) { return a.step >= b.step; };
  const bool is_counted = std::ranges::adjacent_find(steps, is_above) != steps.end();
  for (Span& step : steps) {
    step.kind = SpanKind::kStep;
    step.value_a = step.value_b = -1;
    if (has_one_thread) step.thread = 0;
    if (is_counted) step.step = process.index++;
  }
  emit_all(slot, process, steps, take_segments(process, has_one_thread ? 0 : label->thread, INT64_MAX));
  return true;
}

void TracePhases::finish() {
  for (auto& [slot, process] : processes_) {
    end_step(slot, process);
    if (process.has_steps || take_numbered(slot, process) || take_labelled(slot, process)) continue;
    infer(slot, process);
  }
  processes_.clear();
}

}  // namespace hotlap
