#include "query/trace_rows.h"

#include <algorithm>

#include "analysis/recorded_steps.h"

namespace hotlap {
namespace {

constexpr std::size_t kStepsMax = 1'000'000;  // of one recording, in memory; of what is beyond the step is not known
constexpr std::size_t kNodeFromEnd = 2;       // of kTraceTail

}  // namespace

TraceRows::TraceRows(QueriedRun& run, const RowFilter& filter, std::vector<SpanKind> kinds, std::size_t columns)
    : walk_(run, std::move(kinds), filter, columns - kNodeFromEnd) {}

Result<bool> TraceRows::next() {
  while (true) {
    HOTLAP_TRY_ASSIGN(const bool has_row, rows_.next());
    if (has_row) return true;
    if (is_over_) return false;
    rows_ = ListedRows();
    HOTLAP_TRY_ASSIGN(const Span* const span, walk_.next());
    if (span == nullptr) {
      is_over_ = true;
      if (recording_ != nullptr) end();
      continue;
    }
    if (&walk_.recording() != recording_) {
      if (recording_ != nullptr) end();
      HOTLAP_TRY(enter(walk_.recording()));
    }
    links_.add(*span);
    on_span(*span);
  }
}

Result<void> TraceRows::enter(const QueriedRecording& recording) {
  recording_ = &recording;
  links_ = LaunchLinks();
  steps_.clear();
  std::size_t steps = 0;
  HOTLAP_TRY(read_steps(*recording.reader, [&](const Step& step) {
    if (steps++ < kStepsMax) steps_[step.process].push_back(step);
  }));
  return begin();
}

void TraceRows::add(const Span& span, Values own, const Place& place) {
  Values row{recording_->seconds(span.start_ns), span.start_ns};
  row.push_back(span.duration_ns < 0 ? ListedRows::Value() : ms_of_ns(span.duration_ns));
  row.push_back(text_or_null(span.name == 0 ? std::string() : recording_->reader->name(span.name)));
  std::ranges::move(own, std::back_inserter(row));
  row.push_back(step_of(place));
  const auto process = recording_->processes.find(place.process);
  row.push_back(text_or_null(label_of(place.process)));
  row.push_back(process == recording_->processes.end() ? ListedRows::Value() : rank_of(process->second));
  row.emplace_back(recording_->node);
  row.emplace_back(recording_->number);
  rows_.add(std::move(row));
}

TraceRows::Place TraceRows::place_of_work(const Span& work) const {
  if (const LaunchLinks::Call* const call = links_.call_of(work)) return {call->process, call->start_ns};
  if (const LaunchLinks::Operator* const by = links_.operator_of(work)) return {by->process, by->start_ns};
  return {};
}

std::string TraceRows::label_of(std::uint32_t process) const {
  const auto found = recording_->processes.find(process);
  return found == recording_->processes.end() ? std::string() : slot_label(found->second);
}

ListedRows::Value TraceRows::step_of(const Place& place) const {
  const auto process = steps_.find(place.process);
  if (process == steps_.end()) return {};
  const std::vector<Step>& steps = process->second;
  const auto after = std::ranges::upper_bound(steps, place.at_ns, {}, &Step::start_ns);
  if (after == steps.begin()) return {};
  const Step& step = *std::prev(after);
  if (place.at_ns >= step.start_ns + step.duration_ns) return {};
  return step.index;
}

std::vector<SpanKind> DeviceRows::with_host(std::vector<SpanKind> kinds) {
  for (const SpanKind kind : {SpanKind::kOperator, SpanKind::kOptimizer, SpanKind::kRuntime}) kinds.push_back(kind);
  return kinds;
}

TraceRows::Values DeviceRows::with_device(const Span& work, Values own) const {
  own.push_back(text_or_null(label_of(work.process)));
  own.emplace_back(std::int64_t{work.thread});
  const LaunchLinks::Call* const call = links().call_of(work);
  // A device's clock may be off by so much that work begins before its launch: how long it waited is not known then.
  const bool is_after = call != nullptr && work.start_ns >= call->start_ns;
  own.push_back(is_after ? ListedRows::Value(ms_of_ns(work.start_ns - call->start_ns)) : ListedRows::Value());
  own.push_back(known_or_null(work.value_a));
  const LaunchLinks::Operator* const by = links().operator_of(work);
  own.push_back(by == nullptr ? ListedRows::Value() : text_or_null(recording().reader->name(by->name)));
  own.push_back(by == nullptr ? ListedRows::Value() : known_or_null(by->id));
  return own;
}

const KernelTraits& DeviceRows::traits_of(std::uint32_t kernel_name) {
  const auto key = std::pair(recording().number, kernel_name);
  auto found = traits_.find(key);
  if (found == traits_.end()) {
    found = traits_.emplace(key, traits_of_kernel(recording().reader->name(kernel_name))).first;
  }
  return found->second;
}

}  // namespace hotlap
