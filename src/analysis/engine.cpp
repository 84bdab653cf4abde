#include "analysis/engine.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

// At most so much of a recording's samples is in memory at once: a stretch, which ends with the commit after that time.
constexpr std::int64_t kWindowNs = 620 * kNsPerS;
// A slow lane's tick may be committed after ticks of other lanes that are later; it is looked for so far back.
constexpr std::int64_t kLateNs = 5 * kNsPerS;
constexpr std::int64_t kWindowsMax = 4096;
// A hundred years of uptime: times beyond are damage.
constexpr std::int64_t kPlausibleNs = std::int64_t{100} * 365 * 86'400 * kNsPerS;

bool has(std::span<const std::string_view> metrics, std::string_view metric) {
  return std::ranges::any_of(metrics, [&](std::string_view wanted) {
    return wanted.ends_with('.') ? metric.starts_with(wanted) : metric == wanted;
  });
}
bool needs_samples(const AnalyzerSpec& spec, std::string_view metric) {
  return !spec.takes_minutes || has(spec.in_full, metric);
}

static_assert(kSpanKindCount <= 64);
constexpr std::uint64_t bit_of(SpanKind kind) {
  const auto number = static_cast<std::uint16_t>(kind);
  return number < kSpanKindCount ? std::uint64_t{1} << number : 0;
}

std::string_view loss_help(std::string_view counter) {
  const auto found = std::ranges::find(kLosses, counter, &LossDesc::counter);
  return found == kLosses.end() ? std::string_view{} : found->help;
}

}  // namespace

RecordingAnalysis::RecordingAnalysis(RecordingReader& reader, const RunInfo& run,
                                     std::span<const AnalyzerSpec* const> specs, const ThinningLimits& limits)
    : reader_(reader),
      specs_(specs),
      limits_(limits),
      info_(reader.info()),
      table_(info_),
      builder_([this](const Step& step) { steps_.push_back(step); }) {
  description_ = {.run = &run,
                  .recording = &info_,
                  .steps = &table_,
                  .side = &side_,
                  .processes = processes_,
                  .name_of = [&reader](std::uint32_t id) { return reader.name(id); }};
  outside_description_ = description_;
  if (is_window()) outside_description_.steps = &no_steps_;
  builder_.set_names(description_.name_of);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    std::uint64_t kinds = 0;
    for (const SpanKind kind : specs_[i]->spans) kinds |= bit_of(kind);
    kinds_wanted_.push_back(kinds);
    analyzers_.push_back(specs_[i]->open(looks_inside(i) ? description_ : outside_description_));
  }
  if (is_of_trace(info_)) {
    phases_ = std::make_unique<TracePhases>(
        description_.name_of,
        TracePhases::Output{.span =
                                [this](const Span& span) {
                                  builder_.add(span);
                                  give_steps();
                                },
                            .set_inferred = [this](std::uint32_t process) { builder_.set_inferred(process); }},
        TracePhases::host_of(info_));
  }
}

bool RecordingAnalysis::looks_inside(std::size_t analyzer) const {
  constexpr std::uint64_t kInside = bit_of(SpanKind::kOperator) | bit_of(SpanKind::kKernel);
  return (kinds_wanted_[analyzer] & kInside) != 0;
}

Result<void> RecordingAnalysis::advance() {
  meet_series();
  HOTLAP_TRY_ASSIGN(info_.attributes, reader_.read_attributes());
  HOTLAP_TRY(read_processes());
  HOTLAP_TRY(read_events());
  HOTLAP_TRY(read_samples());
  return read_spans();
}

void RecordingAnalysis::meet_series() {
  const std::vector<StoredSeries>& series = reader_.series();
  for (; series_met_ < series.size(); ++series_met_) {
    const StoredSeries& one = series[series_met_];
    Feed feed;
    bool in_full = false;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (!has(specs_[i]->metrics, one.metric)) continue;
      feed.analyzers.push_back(i);
      in_full = in_full || needs_samples(*specs_[i], one.metric);
    }
    feed.is_side = std::ranges::find(SideSeries::kMetrics, one.metric) != SideSeries::kMetrics.end();
    if (feed.analyzers.empty() && !feed.is_side) continue;
    wanted_.push_back(one.handle);
    (in_full ? wanted_in_full_ : wanted_by_minute_).push_back(one.handle);
    feeds_.emplace(one.handle.index, std::move(feed));
  }
}

Result<void> RecordingAnalysis::read_processes() {
  HOTLAP_TRY_ASSIGN(std::vector<ProcessInfo> processes, reader_.read_processes());
  for (const ProcessInfo& process : processes) {
    const auto source = info_.attributes.find(format("process.{}.step_source", slot_label(process)));
    if (source != info_.attributes.end() && source->second == "loader") builder_.set_inferred(process.slot);
    const auto unseen = info_.attributes.find(format("process.{}.communication_unseen", slot_label(process)));
    if (unseen != info_.attributes.end()) {
      builder_.set_communication_unseen(process.slot, unseen->second != "null");
    }
  }
  if (processes == processes_) return {};
  processes_ = std::move(processes);
  description_.processes = processes_;
  outside_description_.processes = processes_;
  table_.on_processes(processes_);
  for (const ProcessInfo& process : processes_) {
    if (process.role == ProcessRole::kRank) builder_.set_rank(process.slot, process.index);
  }
  for (const auto& analyzer : analyzers_) analyzer->on_processes(processes_);
  return {};
}

Result<void> RecordingAnalysis::read_events() {
  HOTLAP_TRY_ASSIGN(const std::vector<Event> events, reader_.read_events_since(event_cursor_));
  for (const Event& event : events) {
    for (const auto& analyzer : analyzers_) analyzer->on_event(event);
  }
  return {};
}

Result<void> RecordingAnalysis::read_samples() {
  HOTLAP_TRY_ASSIGN(const TimeRange extent, reader_.extent());
  if (extent.from_ns > extent.to_ns || wanted_.empty()) return {};

  // A damaged time must not make a walk of millions of windows, nor one sum overflow.
  const std::int64_t last_ns = std::min(extent.to_ns, kPlausibleNs);
  std::int64_t from_ns = std::max(extent.from_ns, -kPlausibleNs);
  const bool is_first = sample_cursor_ns_ == INT64_MIN;
  if (!is_first) from_ns = std::max(from_ns, sample_cursor_ns_ - kLateNs);
  const std::int64_t window_ns = std::max(kWindowNs, (last_ns - from_ns) / kWindowsMax);
  const std::vector<TickStretch> stretches = reader_.stretches();
  const Thinning thinning =
      is_first ? Thinning(stretches, reader_.series().size(), wanted_by_minute_.size(), limits_) : Thinning();
  std::size_t next = 0;  // stretch that begins after from_ns
  while (from_ns <= last_ns) {
    std::int64_t to_ns = std::min(from_ns + window_ns, last_ns + 1);
    while (next < stretches.size() && stretches[next].from_ns <= from_ns) ++next;
    const bool is_coarse = next > 0 && thinning.is_coarse(next - 1);
    // Windows end where stretches begin: one that lies in two of them would be decoded twice.
    const std::int64_t most_ns = to_ns;
    for (std::size_t i = next; i < stretches.size() && stretches[i].from_ns <= most_ns; ++i) {
      to_ns = stretches[i].from_ns;
      if (thinning.is_coarse(i) != is_coarse) break;
    }
    HOTLAP_TRY(read_window(is_coarse ? wanted_in_full_ : wanted_, {from_ns, to_ns}));
    if (is_coarse) HOTLAP_TRY(read_minutes({from_ns, to_ns}));
    (is_coarse ? resolution_.minutes_ns : resolution_.full_ns) += to_ns - from_ns;
    sample_cursor_ns_ = to_ns;
    from_ns = to_ns;
  }
  last_ns_ = std::max(last_ns_.value_or(last_ns), last_ns);
  return {};
}

Result<void> RecordingAnalysis::read_window(std::span<const SeriesHandle> wanted, TimeRange range) {
  return reader_.read_samples(wanted, range, [&](SeriesHandle handle, std::span<const SamplePoint> points) {
    const auto found = feeds_.find(handle.index);
    if (found == feeds_.end()) return;
    Feed& feed = found->second;
    const auto fresh =
        std::ranges::find_if(points, [&](const SamplePoint& point) { return point.t_ns > feed.last_ns; });
    points = points.subspan(static_cast<std::size_t>(fresh - points.begin()));
    if (points.empty()) return;
    feed.last_ns = points.back().t_ns;
    if (feed.is_side) side_.add(series_of(handle.index), points);
    for (const std::size_t i : feed.analyzers) analyzers_[i]->on_samples(series_of(handle.index), points);
  });
}

Result<void> RecordingAnalysis::read_minutes(TimeRange range) {
  return reader_.read_minutes(wanted_by_minute_, range, [&](SeriesHandle handle, std::span<const TierPoint> points) {
    const auto found = feeds_.find(handle.index);
    if (found == feeds_.end()) return;
    Feed& feed = found->second;
    const auto fresh = std::ranges::find_if(points, [&](const TierPoint& point) { return point.to_ns > feed.last_ns; });
    points = points.subspan(static_cast<std::size_t>(fresh - points.begin()));
    if (points.empty()) return;
    feed.last_ns = points.back().to_ns;
    if (feed.is_side) side_.add(series_of(handle.index), points);
    for (const std::size_t i : feed.analyzers) analyzers_[i]->on_minutes(series_of(handle.index), points);
  });
}

Result<void> RecordingAnalysis::read_spans() {
  return reader_.read_spans_since(span_cursor_, {}, [&](std::span<const Span> spans) {
    give_spans(spans);
    for (const Span& span : spans) {
      if (phases_) {
        phases_->add(span);
      } else {
        builder_.add(span);
        give_steps();
      }
      if (span.duration_ns < 0) continue;
      const std::int64_t end_ns = span.start_ns + span.duration_ns;
      last_ns_ = std::max(last_ns_.value_or(end_ns), end_ns);
    }
  });
}

// To each analyzer the kinds that it asked for.
void RecordingAnalysis::give_spans(std::span<const Span> spans) {
  std::uint64_t kinds = 0;
  for (const Span& span : spans) kinds |= bit_of(span.kind);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if ((kinds & kinds_wanted_[i]) == 0 || (is_window() && !looks_inside(i))) continue;
    wanted_spans_.clear();
    for (const Span& span : spans) {
      if ((bit_of(span.kind) & kinds_wanted_[i]) != 0) wanted_spans_.push_back(span);
    }
    analyzers_[i]->on_spans(wanted_spans_);
  }
}

// Steps under a profiler of ours are slower, by us: no statistics are made of them.
void RecordingAnalysis::give_steps() {
  for (const Step& step : steps_) {
    if (step.is_profiled) continue;
    table_.on_step(step);
    for (std::size_t i = 0; i < analyzers_.size(); ++i) {
      if (!is_window() || looks_inside(i)) analyzers_[i]->on_step(step);
    }
  }
  steps_.clear();
}

void RecordingAnalysis::finish() {
  if (phases_) phases_->finish();
  builder_.finish();
  give_steps();
}

std::vector<Loss> RecordingAnalysis::losses() const {
  std::vector<Loss> out;
  const auto add = [&](std::string_view counter, std::uint64_t count) {
    if (count > 0)
      out.push_back({.counter = std::string(counter), .count = count, .help = std::string(loss_help(counter))});
  };
  add("analysis.spans_refused", builder_.counts().spans_refused + (phases_ ? phases_->spans_refused() : 0));
  add("analysis.steps_damaged", builder_.counts().steps_damaged);
  return out;
}

Result<void> RunAnalysis::advance(std::span<RecordingReader* const> recordings) {
  damaged_.clear();
  for (RecordingReader* reader : recordings) {
    auto found = std::ranges::find(recordings_, reader, [](const auto& entry) { return entry.first; });
    if (found == recordings_.end()) {
      recordings_.emplace_back(reader, std::make_unique<RecordingAnalysis>(*reader, run_, specs_, limits_));
      found = recordings_.end() - 1;
    }
    if (Result<void> read = found->second->advance(); !read.ok()) damaged_.push_back(std::move(read).error());
  }
  return damaged_.empty() ? Result<void>() : Result<void>(Error(damaged_.front()));
}

void RunAnalysis::finish() {
  for (const auto& [reader, analysis] : recordings_) analysis->finish();
}

// What is inside steps is told by windows of the profiler where there are any, everything else never is.
std::vector<const RecordingAnalysis*> RunAnalysis::counted(bool for_inside) const {
  const bool has_windows = std::ranges::any_of(recordings_, [](const auto& one) { return one.second->is_window(); });
  std::vector<const RecordingAnalysis*> out;
  for (const auto& [reader, analysis] : recordings_) {
    if (analysis->is_window() == (for_inside && has_windows)) out.push_back(analysis.get());
  }
  return out;
}

FactTable RunAnalysis::facts() const {
  FactTable facts;
  if (recordings_.empty()) return facts;
  if (recordings_.size() == 1) {
    for (const auto& analyzer : recordings_.front().second->analyzers()) analyzer->snapshot(facts);
    return facts;
  }
  const RecordingInfo none;
  std::array<std::vector<const RecordingAnalysis*>, 2> recordings;
  std::array<StepTable, 2> steps;
  for (const bool for_inside : {false, true}) {
    recordings[for_inside] = counted(for_inside);
    for (const RecordingAnalysis* one : recordings[for_inside]) steps[for_inside].merge(one->steps());
  }
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const bool for_inside = recordings_.front().second->looks_inside(i);
    const RunDescription description{
        .run = &run_, .recording = &none, .steps = &steps[for_inside], .processes = {}, .name_of = [](std::uint32_t) {
          return std::string();
        }};
    const std::unique_ptr<Analyzer> merged = specs_[i]->open(description);
    for (const RecordingAnalysis* one : recordings[for_inside]) merged->merge(*one->analyzers()[i]);
    merged->snapshot(facts);
  }
  return facts;
}

std::vector<Loss> RunAnalysis::losses() const {
  std::map<std::string, Loss> by_name;
  for (const auto& [reader, analysis] : recordings_) {
    for (const Loss& loss : analysis->losses()) {
      Loss& sum =
          by_name.try_emplace(loss.counter, Loss{.counter = loss.counter, .count = 0, .help = loss.help}).first->second;
      sum.count += loss.count;
    }
  }
  std::vector<Loss> out;
  out.reserve(by_name.size());
  for (auto& [name, loss] : by_name) out.push_back(std::move(loss));
  return out;
}

Resolution RunAnalysis::resolution() const {
  Resolution sum;
  for (const auto& [reader, analysis] : recordings_) {
    sum.full_ns += analysis->resolution().full_ns;
    sum.minutes_ns += analysis->resolution().minutes_ns;
  }
  return sum;
}

std::vector<ProcessInfo> RunAnalysis::processes() const {
  std::vector<ProcessInfo> out;
  for (const auto& [reader, analysis] : recordings_) {
    if (analysis->is_window()) continue;
    out.insert(out.end(), analysis->processes().begin(), analysis->processes().end());
  }
  return out;
}

}  // namespace hotlap
