#include "analysis/step_statistics.h"

#include <algorithm>
#include <cmath>

namespace hotlap {
namespace {

// A batch is ragged below this share of a full one. Where more than kVariableShare of the steps are, batches simply
// vary.
constexpr double kRaggedBelow = 0.9;
constexpr double kVariableShare = 0.2;
constexpr std::size_t kSettleWindowMin = 8;
constexpr std::size_t kSettleWindowMax = 32;
constexpr std::size_t kBlocksWanted = 12;
// Steps that are faster at first live on batches that were prefetched; more of them are no warm-up: it became slower.
constexpr std::size_t kPrefetchedMax = 32;
constexpr std::size_t kFewSteps = 96;  // below, at most a third is warm-up: the rest must still suffice for an answer

std::int64_t end_of(const Step& step) { return step.start_ns + step.duration_ns; }

// What follows a checkpoint may have been taken for a wait.
bool has_typical_wait(const Step& step) { return step.data_wait_ns && step.checkpoint_ns.value_or(0) == 0; }

bool has_compiled(const Step& step) { return step.compile_ns.value_or(0) > step.duration_ns / 10; }

double mean_duration(const std::vector<Step>& steps, std::size_t from, std::size_t to) {
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += static_cast<double>(steps[i].duration_ns);
  return to > from ? sum / static_cast<double>(to - from) : 0;
}

}  // namespace

std::optional<std::int64_t> part_ns(const Step& step, StepPart part) {
  switch (part) {
    case StepPart::kDataWait: return step.data_wait_ns;
    case StepPart::kForward: return step.forward_ns;
    case StepPart::kBackward: return step.backward_ns;
    case StepPart::kOptimizer: return step.optimizer_ns;
    case StepPart::kCommunication: return step.communication_ns;
    case StepPart::kCheckpoint: return step.checkpoint_ns;
    case StepPart::kGarbage: return step.gc_ns;
    case StepPart::kCompile: return step.compile_ns;
    case StepPart::kEvaluation: return step.evaluation_ns;
    case StepPart::kHook: return step.hook_ns;
  }
  return std::nullopt;
}

void StepSums::add(const Step& step) {
  ++steps;
  duration_ns += step.duration_ns;
  if (step.is_inferred) ++inferred;
  if (step.samples >= 0) {
    ++sample_steps;
    sample_ns += step.duration_ns;
    samples += step.samples;
  }
  if (step.tokens >= 0) {
    token_ns += step.duration_ns;
    tokens += step.tokens;
  }
  for (std::size_t i = 0; i < kStepPartCount; ++i) {
    if (const auto ns = part_ns(step, static_cast<StepPart>(i))) {
      part_sum_ns[i] += *ns;
      ++part_steps[i];
    }
  }
  if (step.data_wait_ns && step.checkpoint_ns.value_or(0) > 0) {
    saving_wait_ns += *step.data_wait_ns;
    ++saving_wait_steps;
  }
  if (!step.is_hooked) return;
  ++hooked_steps;
  hooked_ns += step.duration_ns;
  if (step.batches >= 0) {
    ++batch_steps;
    batches += static_cast<std::uint64_t>(step.batches);
  }
  for (const NamedTime& one : step.named) add_named(one.name, one.ns);
}

void StepSums::add(const StepSums& other) {
  steps += other.steps;
  duration_ns += other.duration_ns;
  hooked_steps += other.hooked_steps;
  hooked_ns += other.hooked_ns;
  for (std::size_t i = 0; i < kStepPartCount; ++i) {
    part_sum_ns[i] += other.part_sum_ns[i];
    part_steps[i] += other.part_steps[i];
  }
  saving_wait_ns += other.saving_wait_ns;
  saving_wait_steps += other.saving_wait_steps;
  batch_steps += other.batch_steps;
  batches += other.batches;
  sample_steps += other.sample_steps;
  sample_ns += other.sample_ns;
  samples += other.samples;
  token_ns += other.token_ns;
  tokens += other.tokens;
  inferred += other.inferred;
  for (const auto& [name, ns] : other.named_ns) add_named(name, ns);
}

void StepSums::add_named(std::string_view name, std::int64_t ns) {
  if (const auto found = named_ns.find(name); found != named_ns.end()) {
    found->second += ns;
  } else if (named_ns.size() < kNamesMax) {
    named_ns.emplace(name, ns);
  }
}

std::optional<double> StepSums::mean_ns(StepPart part) const {
  const auto i = static_cast<std::size_t>(part);
  if (hooked_steps == 0 || part_steps[i] * 2 < hooked_steps) return std::nullopt;
  if (part == StepPart::kDataWait && 2 * saving_wait_steps <= part_steps[i]) {
    return static_cast<double>(part_sum_ns[i] - saving_wait_ns) /
           static_cast<double>(part_steps[i] - saving_wait_steps);
  }
  return static_cast<double>(part_sum_ns[i]) / static_cast<double>(part_steps[i]);
}

bool StepStatistics::is_ragged(const Step& step) const {
  return step.samples >= 0 && samples_max_ > 0 &&
         static_cast<double>(step.samples) < kRaggedBelow * static_cast<double>(samples_max_);
}

void StepStatistics::add(const Step& step) {
  steady_.reset();
  if (rank_ < 0) rank_ = step.rank;
  add_pauses(step);
  ++count_;
  total_ns_ += step.duration_ns;
  samples_max_ = std::max(samples_max_, step.samples);
  const bool is_restart = step.index <= last_index_;
  last_index_ = step.index;
  last_end_ns_ = end_of(step);
  if (is_restart) {
    ++restarts_;
    starting_.add(step);  // it warms up again
    return;
  }
  if (head_.size() < kHeadMax) {
    head_.push_back(step);
    return;
  }
  add_tail(step);
}

void StepStatistics::append(const StepStatistics& later) {
  if (count_ == 0) {
    *this = later;
    return;
  }
  steady_.reset();
  if (rank_ < 0) rank_ = later.rank_;
  for (std::size_t i = 0; i < kStepPartCount; ++i) {
    PartPauses& own = pauses_[i];
    const PartPauses& more = later.pauses_[i];
    own.measured += more.measured;
    if (more.steps == 0) continue;
    if (own.steps == 0) own.first_step = count_ + more.first_step;
    own.last_step = count_ + more.last_step;
    own.steps += more.steps;
    own.total_ns += more.total_ns;
    own.longest_ns = std::max(own.longest_ns, more.longest_ns);
  }
  saving_rest_ns_.merge(later.saving_rest_ns_);
  count_ += later.count_;
  restarts_ += later.restarts_;
  total_ns_ += later.total_ns_;
  samples_max_ = std::max(samples_max_, later.samples_max_);
  const bool is_restart = !later.head_.empty() && later.head_.front().index <= last_index_;
  if (is_restart) ++restarts_;
  for (std::size_t i = 0; i < later.head_.size(); ++i) {
    const Step& step = later.head_[i];
    if (is_restart && i == 0) {
      starting_.add(step);
    } else if (head_.size() < kHeadMax) {
      head_.push_back(step);
    } else {
      add_tail(step);
    }
  }
  starting_.add(later.starting_);
  regular_.append(later.regular_);
  ragged_.append(later.ragged_);
  tail_blocks_ns_.append(later.tail_blocks_ns_);
  tail_wait_blocks_ns_.append(later.tail_wait_blocks_ns_);
  last_index_ = later.last_index_;
  last_end_ns_ = later.last_end_ns_;
}

void StepStatistics::add_pauses(const Step& step) {
  if (const std::int64_t saving_ns = step.checkpoint_ns.value_or(0); saving_ns > 0) {
    const std::int64_t rare_ns =
        saving_ns + step.evaluation_ns.value_or(0) + step.gc_ns.value_or(0) + step.compile_ns.value_or(0);
    saving_rest_ns_.add(static_cast<double>(std::max<std::int64_t>(step.duration_ns - rare_ns, 0)));
  }
  for (std::size_t i = 0; i < kStepPartCount; ++i) {
    const auto part = part_ns(step, static_cast<StepPart>(i));
    if (!part) continue;
    PartPauses& pauses = pauses_[i];
    ++pauses.measured;
    if (*part <= 0) continue;
    if (pauses.steps++ == 0) pauses.first_step = count_;
    pauses.last_step = count_;
    pauses.total_ns += *part;
    pauses.longest_ns = std::max(pauses.longest_ns, *part);
  }
}

void StepStatistics::add_tail(const Step& step) {
  if (step.loader_start_ns) {
    starting_.add(step);
    return;
  }
  const bool ragged = is_ragged(step);
  Tail& tail = ragged ? ragged_ : regular_;
  tail.sums.add(step);
  tail.durations_ns.add(static_cast<double>(step.duration_ns));
  if (ragged) return;
  tail_blocks_ns_.add(static_cast<double>(step.duration_ns));
  if (has_typical_wait(step)) tail_wait_blocks_ns_.add(static_cast<double>(*step.data_wait_ns));
}

// First steps that are far longer than the median of those after them.
std::size_t StepStatistics::start_steps() const {
  constexpr double kFarLonger = 2;
  std::size_t from = 0;
  for (; from < head_.size() / 2; ++from) {
    std::vector<std::int64_t> rest;
    for (std::size_t i = from + 1; i < head_.size(); ++i) rest.push_back(head_[i].duration_ns);
    const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2);
    std::ranges::nth_element(rest, middle);
    if (static_cast<double>(head_[from].duration_ns) <= kFarLonger * static_cast<double>(*middle)) break;
  }
  return from;
}

std::size_t StepStatistics::warmup_steps() const {
  if (is_chosen_) return may_hold_start_ ? start_steps() : 0;
  const std::size_t n = head_.size();
  if (n < 2) return n;
  const std::size_t most = n < kFewSteps ? n / 3 : n / 2;
  std::size_t from = 1;  // the first step always is: caches, lazy initialisation, the loader's start
  for (std::size_t i = 0; i < most; ++i) {
    if (has_compiled(head_[i])) from = i + 1;
  }
  // Steps come in bursts as wide as the loader has workers, so windows are compared, not steps; and with those of the
  // second half, which tell how much windows differ here anyway.
  const std::size_t window = std::clamp(n / 8, kSettleWindowMin, kSettleWindowMax);
  const double reference = mean_duration(head_, n / 2, n);
  double unrest = 0;
  for (std::size_t i = n / 2; i + window <= n; i += window) {
    unrest = std::max(unrest, std::abs(mean_duration(head_, i, i + window) - reference));
  }
  const double allowed = std::max(kSettled * reference, 1.5 * unrest);
  for (; from + window <= most; ++from) {
    const double above = mean_duration(head_, from, from + window) - reference;
    if (std::abs(above) <= allowed || (above < 0 && from >= kPrefetchedMax)) break;
  }
  return std::min(from, most);
}

std::int64_t StepStatistics::beside_checkpoints_ns() const {
  constexpr double kBeyond = 0.3;  // of the median step
  constexpr std::uint64_t kCheckpointsMin = 2;
  const auto rest_ns = saving_rest_ns_.quantile(0.5);
  const auto typical_ns = steady().durations_ns.quantile(0.5);
  const std::uint64_t saves = saving_rest_ns_.count();
  // Where most steps save, the typical one holds it already.
  if (!rest_ns || !typical_ns || saves < kCheckpointsMin || 2 * saves > count_) return 0;
  if (*rest_ns < (1 + kBeyond) * *typical_ns) return 0;
  return static_cast<std::int64_t>((*rest_ns - *typical_ns) * static_cast<double>(saves));
}

const SteadySteps& StepStatistics::steady() const {
  if (!steady_) steady_ = make_steady();
  return *steady_;
}

SteadySteps StepStatistics::make_steady() const {
  SteadySteps out;
  out.count = count_;
  out.restarts = restarts_;
  out.total_ns = total_ns_;
  const std::size_t warmup = warmup_steps();
  out.warmup_count = warmup;
  for (std::size_t i = 0; i < warmup; ++i) out.warmup_ns += head_[i].duration_ns;

  Tail regular = regular_;
  Tail ragged = ragged_;
  StepSums starting = starting_;
  // Few steps: short blocks, so that there are enough for an interval. Many: the blocks of the tail with those of the
  // head before them.
  const std::size_t in_head = head_.size() - warmup;
  const bool has_tail = regular_.sums.steps > 0;
  const std::size_t block = has_tail ? 16 : std::max<std::size_t>(in_head / kBlocksWanted, 2);
  BlockMeans blocks(static_cast<std::uint32_t>(block));
  BlockMeans wait_blocks(static_cast<std::uint32_t>(block));
  for (std::size_t i = warmup; i < head_.size(); ++i) {
    const Step& step = head_[i];
    if (step.loader_start_ns && i > warmup) {
      starting.add(step);
      continue;
    }
    const bool is_short = is_ragged(step);
    Tail& tail = is_short ? ragged : regular;
    tail.sums.add(step);
    tail.durations_ns.add(static_cast<double>(step.duration_ns));
    if (is_short) continue;
    blocks.add(static_cast<double>(step.duration_ns));
    if (has_typical_wait(step)) wait_blocks.add(static_cast<double>(*step.data_wait_ns));
  }
  out.ragged_count = ragged.sums.steps;
  const std::uint64_t both = ragged.sums.steps + regular.sums.steps;
  if (static_cast<double>(ragged.sums.steps) > kVariableShare * static_cast<double>(both)) {
    out.ragged_count = 0;
    regular.append(ragged);
  }
  out.sums = regular.sums;
  out.durations_ns = std::move(regular.durations_ns);
  // Once the tail is longer than the head, its blocks alone tell more than unequal ones together.
  const bool tail_suffices = regular_.sums.steps >= kHeadMax;
  out.blocks_ns = tail_suffices ? tail_blocks_ns_ : blocks;
  out.wait_blocks_ns = tail_suffices ? tail_wait_blocks_ns_ : wait_blocks;
  out.loader_start_count = starting.steps;
  out.loader_start_ns = starting.duration_ns;
  out.from_ns = warmup < head_.size() ? head_[warmup].start_ns : last_end_ns_;
  out.to_ns = last_end_ns_;
  return out;
}

}  // namespace hotlap
