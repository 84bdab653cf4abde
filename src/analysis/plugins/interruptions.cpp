// Pauses of training that show in time alone, in or between steps: how long, at which period, and what the machine did
// meanwhile. What the hook measured inside (a checkpoint, an evaluation) is told elsewhere and left out.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/log_histogram.h"
#include "analysis/node_analyzer.h"
#include "analysis/side_series.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"count", "1", "pauses between the first step and the last"},
    FactField{"total_s", "s", "their time, without that of a typical step"},
    FactField{"mean_s", "s", "of one"},
    FactField{"longest_s", "s", ""},
    FactField{"share_pct", "%", "of all time from the first step to the last"},
    FactField{"between_pct", "%", "share of them that lie between two steps, not inside one"},
    FactField{"every_steps", "{step}", "from one to the next; absent: they come at no period"},
    FactField{"every_s", "s", "the same as time"},
    FactField{"data_wait_pct", "%", "share of their time that was measured as waiting for data"},
    FactField{"epoch_pct", "%", "share of them that lie where an epoch begins; absent: no epoch is known"},
    FactField{"saved_pct", "%", "share of them in which the program said that it saves"},
    FactField{"write_bytes_per_s", "By/s", "written to disks and sent meanwhile"},
    FactField{"write_otherwise_bytes_per_s", "By/s", "and otherwise"},
    FactField{"read_bytes_per_s", "By/s", "read from disks meanwhile"},
    FactField{"gpu_busy_pct", "%", "mean use of the GPUs meanwhile"},
    FactField{"gpu_busy_otherwise_pct", "%", "and otherwise"},
    FactField{"process", "text", "label of the training process"},
};
constexpr std::array kSchemas{FactSchema{"interruptions.summary", "pauses of training, by time alone", kFields}};

// What SideSeries takes, and what is sent.
constexpr std::array<std::string_view, 11> kMetrics = [] {
  std::array<std::string_view, 11> out{};
  std::ranges::copy(SideSeries::kMetrics, out.begin());
  out.back() = "network.total.transmit.bytes";
  return out;
}();
constexpr std::array kSpans{SpanKind::kEpoch, SpanKind::kEvaluation, SpanKind::kCheckpoint};

constexpr std::size_t kProcessesMax = 256;
constexpr std::size_t kPausesMax = 4096;
constexpr std::size_t kMarksMax = 4096;
constexpr std::int64_t kShortestNs = kNsPerS;  // of a pause
constexpr double kFarAbove = 3;                // times a typical step
constexpr double kPeriodShare = 0.7;           // of the gaps, within a twentieth of the typical one
constexpr std::size_t kPeriodicMin = 2;        // gaps
constexpr std::int64_t kStepsMin = 20;         // before what is typical is known

struct Pause {
  std::int64_t index = 0;   // of the step that follows, or that holds it
  std::int64_t number = 0;  // of steps seen
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t pause_ns = 0;  // beyond a typical step
  std::int64_t wait_ns = -1;  // of it, waiting for data
  bool is_between = false;
};

class InterruptionsAnalyzer final : public NodeAnalyzer<InterruptionsAnalyzer> {
 public:
  explicit InterruptionsAnalyzer(const RunDescription& run) : NodeAnalyzer(run), run_(run) {}

  void on_event(const Event& event) override {
    if (is_note_of(event, kSavedNote) && saved_ns_.size() < kMarksMax) saved_ns_.push_back(event.t_ns);
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.kind == SpanKind::kEpoch) {
        if (epochs_ns_.size() < kMarksMax) epochs_ns_.push_back(span.start_ns);
      } else if (span.duration_ns > 0 && known_.size() < kMarksMax) {
        known_.push_back({span.start_ns, span.start_ns + span.duration_ns, span.kind == SpanKind::kCheckpoint});
      }
    }
  }

  void on_step(const Step& step) override {
    if (steps_.size() >= kProcessesMax && !steps_.contains(step.process)) return;
    Steps& steps = steps_[step.process];
    const std::int64_t end_ns = step.start_ns + step.duration_ns;
    last_ns_ = std::max(last_ns_, end_ns);
    if (steps.count == 0) steps.first_ns = step.start_ns;
    if (step.duration_ns > 0) steps.durations.add(static_cast<double>(step.duration_ns));
    ++steps.count;
    const bool is_long = std::max(step.start_ns - steps.end_ns, step.duration_ns) >= kShortestNs;
    if (is_long && steps.count > kStepsMin && steps.pauses.size() < kPausesMax) {
      const double typical = steps.durations.quantile(0.5).value_or(0);
      const std::int64_t limit_ns = std::max(kShortestNs, static_cast<std::int64_t>(kFarAbove * typical));
      if (step.start_ns - steps.end_ns >= limit_ns) {
        steps.pauses.push_back({.index = step.index,
                                .number = steps.count,
                                .from_ns = steps.end_ns,
                                .to_ns = step.start_ns,
                                .pause_ns = step.start_ns - steps.end_ns,
                                .is_between = true});
      }
      if (step.duration_ns >= limit_ns) {
        steps.pauses.push_back({.index = step.index,
                                .number = steps.count,
                                .from_ns = step.start_ns,
                                .to_ns = end_ns,
                                .pause_ns = step.duration_ns - static_cast<std::int64_t>(typical),
                                .wait_ns = step.data_wait_ns.value_or(-1)});
      }
    }
    steps.end_ns = std::max(steps.end_ns, end_ns);
  }

  std::int64_t seen_ns() const { return last_ns_; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    for (const StepTable::Entry& entry : table_->entries()) {
      const auto found = steps_.find(entry.slot);
      if (found == steps_.end()) continue;
      std::vector<Pause> pauses = found->second.pauses;
      std::erase_if(pauses, [&](const Pause& pause) { return is_known(pause); });
      if (pauses.empty()) continue;
      Fact fact{.kind = "interruptions.summary", .where = entry.where};
      if (!node.empty()) fact.where.node = node;
      fact.set_text("process", entry.process);
      fill(found->second, pauses, fact);
      out.add(std::move(fact));
    }
  }

 private:
  struct Steps {
    std::int64_t count = 0;
    std::int64_t first_ns = 0;
    std::int64_t end_ns = INT64_MIN / 2;
    LogHistogram durations;
    std::vector<Pause> pauses;
  };

  // Half of it was measured as something that is told elsewhere, or it holds a checkpoint: what lies around one is
  // told with it.
  bool is_known(const Pause& pause) const {
    std::int64_t inside_ns = 0;
    for (const Known& known : known_) {
      const std::int64_t common_ns = std::min(known.to_ns, pause.to_ns) - std::max(known.from_ns, pause.from_ns);
      if (common_ns <= 0) continue;
      if (known.is_checkpoint && !pause.is_between) return true;
      inside_ns += common_ns;
    }
    return 2 * inside_ns > pause.pause_ns;
  }

  static std::size_t count_near(const std::vector<std::int64_t>& marks, const std::vector<Pause>& pauses,
                                std::int64_t slack_ns) {
    return static_cast<std::size_t>(std::ranges::count_if(pauses, [&](const Pause& pause) {
      return std::ranges::any_of(
          marks, [&](std::int64_t t_ns) { return t_ns >= pause.from_ns - slack_ns && t_ns <= pause.to_ns + slack_ns; });
    }));
  }

  std::optional<std::int64_t> told_epoch_steps() const {
    if (run_.recording == nullptr) return std::nullopt;
    for (const std::string_view key : {"meta.steps_per_epoch", "meta.epoch_steps"}) {
      const auto found = run_.recording->attributes.find(std::string(key));
      if (found == run_.recording->attributes.end()) continue;
      if (const auto steps = parse_i64(found->second); steps && *steps > 1) return *steps;
    }
    return std::nullopt;
  }

  void fill(const Steps& steps, const std::vector<Pause>& pauses, Fact& fact) const {
    double total_s = 0;
    double longest_s = 0;
    double between = 0;
    double wait_s = 0;
    double measured_s = 0;
    SideSeries::Stretches during;
    SideSeries::Stretches otherwise;
    std::int64_t before_ns = steps.first_ns;
    for (const Pause& pause : pauses) {
      const double pause_s = static_cast<double>(pause.pause_ns) / 1e9;
      total_s += pause_s;
      longest_s = std::max(longest_s, pause_s);
      between += pause.is_between ? 1 : 0;
      if (pause.wait_ns >= 0) {
        measured_s += pause_s;
        wait_s += std::min(static_cast<double>(pause.wait_ns) / 1e9, pause_s);
      }
      during.emplace_back(pause.from_ns, pause.to_ns);
      if (pause.from_ns > before_ns) otherwise.emplace_back(before_ns, pause.from_ns);
      before_ns = pause.to_ns;
    }
    if (steps.end_ns > before_ns) otherwise.emplace_back(before_ns, steps.end_ns);
    const auto count = static_cast<double>(pauses.size());
    const double run_s = static_cast<double>(steps.end_ns - steps.first_ns) / 1e9;
    fact.set("count", count).set("total_s", total_s).set("mean_s", total_s / count).set("longest_s", longest_s);
    if (run_s > 0) fact.set("share_pct", std::min(100 * total_s / run_s, 100.0));
    fact.set("between_pct", 100 * between / count);
    if (measured_s > 0.5 * total_s) fact.set("data_wait_pct", 100 * wait_s / measured_s);
    set_period(pauses, fact);
    set_marks(steps, pauses, fact);
    const auto both = [&](const SideSeries::Stretches& stretches) -> std::optional<double> {
      const auto disk = side_->mean("disk.total.write.bytes", stretches);
      const auto sent = side_->mean("network.total.transmit.bytes", stretches);
      return disk || sent ? std::optional(std::max(disk.value_or(0), sent.value_or(0))) : std::nullopt;
    };
    fact.set("write_bytes_per_s", both(during)).set("write_otherwise_bytes_per_s", both(otherwise));
    fact.set("read_bytes_per_s", side_->mean("disk.total.read.bytes", during));
    fact.set("gpu_busy_pct", side_->mean("gpu.busy.percent", during));
    fact.set("gpu_busy_otherwise_pct", side_->mean("gpu.busy.percent", otherwise));
  }

  static void set_period(const std::vector<Pause>& pauses, Fact& fact) {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < pauses.size(); ++i) gaps.push_back(pauses[i].number - pauses[i - 1].number);
    if (gaps.size() < kPeriodicMin) return;
    std::vector<std::int64_t> sorted = gaps;
    std::ranges::sort(sorted);
    const std::int64_t gap = sorted[sorted.size() / 2];
    const std::int64_t slack = std::max<std::int64_t>(gap / 20, 1);
    const auto keeps =
        std::ranges::count_if(gaps, [&](std::int64_t one) { return std::abs(one - gap) <= (gap < 20 ? 0 : slack); });
    if (gap < 2 || static_cast<double>(keeps) < kPeriodShare * static_cast<double>(gaps.size())) return;
    fact.set("every_steps", static_cast<double>(gap));
    fact.set("every_s", static_cast<double>(pauses.back().from_ns - pauses.front().from_ns) / 1e9 /
                            static_cast<double>(gaps.size()));
  }

  void set_marks(const Steps& steps, const std::vector<Pause>& pauses, Fact& fact) const {
    const auto count = static_cast<double>(pauses.size());
    const auto slack_ns =
        std::max<std::int64_t>(static_cast<std::int64_t>(2 * steps.durations.quantile(0.5).value_or(0)), kNsPerS);
    if (!saved_ns_.empty()) {
      fact.set("saved_pct", 100 * static_cast<double>(count_near(saved_ns_, pauses, slack_ns)) / count);
    }
    if (const auto epoch = told_epoch_steps()) {
      const auto at_epoch = std::ranges::count_if(pauses, [&](const Pause& pause) {
        const std::int64_t rest = pause.index % *epoch;
        return rest <= 1 || rest == *epoch - 1;
      });
      fact.set("epoch_pct", 100 * static_cast<double>(at_epoch) / count);
    } else if (epochs_ns_.size() > 1) {
      fact.set("epoch_pct", 100 * static_cast<double>(count_near(epochs_ns_, pauses, slack_ns)) / count);
    }
  }

  const RunDescription& run_;
  std::map<std::uint32_t, Steps> steps_;
  std::vector<std::int64_t> saved_ns_;
  std::vector<std::int64_t> epochs_ns_;
  struct Known {
    std::int64_t from_ns;
    std::int64_t to_ns;
    bool is_checkpoint;
  };
  std::vector<Known> known_;
  std::int64_t last_ns_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<InterruptionsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_interruptions{
    .id = "interruptions",
    .summary = "Pauses of training by time alone: period, and what the machine did meanwhile.",
    .produces = kSchemas,
    .metrics = kMetrics,
    .spans = kSpans,
    .open = open};

}  // namespace hotlap
