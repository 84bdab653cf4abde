// How long each phase of the run took, and what passed beside training: checkpoints and evaluations.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "analysis/analyzer.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kPhases{Phase::kStarting,   Phase::kDownloading,  Phase::kInitialisation, Phase::kTraining,
                             Phase::kEvaluation, Phase::kFinalisation, Phase::kUploading};
constexpr std::array kFields{
    FactField{"starting_s", "s", ""},
    FactField{"downloading_s", "s", ""},
    FactField{"initialisation_s", "s", ""},
    FactField{"training_s", "s", ""},
    FactField{"evaluation_s", "s", ""},
    FactField{"finalisation_s", "s", ""},
    FactField{"uploading_s", "s", ""},
    FactField{"current", "text", "the phase that runs, or ran last"},
    FactField{"epochs", "{epoch}", "epochs that ended"},
    FactField{"epoch_s", "s", "mean time of an epoch"},
    FactField{"epoch_steps", "{step}", "mean steps of an epoch that ended"},
    FactField{"suspended_s", "s", "time that the machine slept"},
    FactField{"gap_s", "s", "time in which nothing was recorded"},
};
constexpr std::array kSchemas{FactSchema{"phases.summary", "time spent in each phase", kFields}};
constexpr std::array kSpans{SpanKind::kEpoch, SpanKind::kStep, SpanKind::kInitialisation};

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

class PhasesAnalyzer final : public Analyzer {
 public:
  explicit PhasesAnalyzer(const RunDescription& run)
      : node_(run.recording == nullptr ? std::string() : run.recording->node) {}

  void on_event(const Event& event) override {
    if (event.kind == EventKind::kSuspend) suspended_ns_ += event.value;
    if (event.kind == EventKind::kRecorderGap) gap_ns_ += event.value;
    last_ns_ = std::max(last_ns_, event.t_ns);
    if (event.kind != EventKind::kPhase) return;
    for (const Phase phase : kPhases) {
      if (to_string(phase) != event.text) continue;
      if (current_) times_ns_[*current_] += std::max<std::int64_t>(event.t_ns - begin_ns_, 0);
      current_ = phase;
      begin_ns_ = std::max(begin_ns_, event.t_ns);
    }
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      last_ns_ = std::max(last_ns_, span.start_ns + span.duration_ns);
      if (span.kind == SpanKind::kStep) ++steps_;
      if (span.kind != SpanKind::kEpoch) continue;
      ++epochs_;
      steps_in_epochs_ = steps_;
      epoch_ns_ += span.duration_ns;
    }
  }

  // The nodes of a run go through the same phases: the first that knows any speaks. A later recording of that node goes
  // on where it stopped: its recorder was started again.
  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const PhasesAnalyzer&>(other);
    const std::int64_t gap_ns = gap_ns_ + from.gap_ns_;
    if (!current_ && epochs_ == 0) {
      *this = from;
    } else if (from.node_ == node_) {
      go_on(from);
    }
    gap_ns_ = gap_ns;
  }

  void snapshot(FactTable& out) const override {
    if (!current_ && epochs_ == 0) return;
    Fact fact{.kind = "phases.summary"};
    std::map<Phase, std::int64_t> times_ns = times_ns_;
    if (current_) {
      times_ns[*current_] += std::max<std::int64_t>(last_ns_ - begin_ns_, 0);
      fact.set_text("current", std::string(to_string(*current_)));
    }
    for (const auto& [phase, ns] : times_ns) fact.set(std::string(to_string(phase)) + "_s", seconds(ns));
    fact.set("epochs", static_cast<double>(epochs_));
    if (epochs_ > 0) fact.set("epoch_s", seconds(epoch_ns_) / static_cast<double>(epochs_));
    if (epochs_ > 0 && steps_in_epochs_ > 0) {
      fact.set("epoch_steps", static_cast<double>(steps_in_epochs_) / static_cast<double>(epochs_));
    }
    fact.set("suspended_s", seconds(suspended_ns_)).set("gap_s", seconds(gap_ns_));
    out.add(std::move(fact));
  }

 private:
  void go_on(const PhasesAnalyzer& from) {
    if (current_) times_ns_[*current_] += std::max<std::int64_t>(last_ns_ - begin_ns_, 0);
    for (const auto& [phase, ns] : from.times_ns_) times_ns_[phase] += ns;
    if (from.current_) current_ = from.current_;
    last_ns_ = std::max(last_ns_, from.last_ns_);
    begin_ns_ = from.current_ ? from.begin_ns_ : last_ns_;
    if (from.epochs_ > 0) steps_in_epochs_ = steps_ + from.steps_in_epochs_;
    epochs_ += from.epochs_;
    epoch_ns_ += from.epoch_ns_;
    steps_ += from.steps_;
    suspended_ns_ += from.suspended_ns_;
  }

  std::string node_;
  std::map<Phase, std::int64_t> times_ns_;
  std::optional<Phase> current_;
  std::int64_t begin_ns_ = INT64_MIN;
  std::int64_t last_ns_ = INT64_MIN;
  std::uint64_t epochs_ = 0;
  std::int64_t epoch_ns_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_in_epochs_ = 0;  // of all training processes, as are the epochs
  std::int64_t suspended_ns_ = 0;
  std::int64_t gap_ns_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<PhasesAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_phases{.id = "phases",
                                                    .summary = "How long each phase of the run took.",
                                                    .produces = kSchemas,
                                                    .metrics = {},
                                                    .spans = kSpans,
                                                    .open = open};

}  // namespace hotlap
