// What interrupts training now and then: checkpoints, evaluations, and how often they come. A typical step does not
// show them: they make theirs untypical.
#include <array>
#include <map>
#include <string>
#include <utility>

#include "analysis/analyzer.h"
#include "analysis/step_table.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"what", "text", "checkpoint or evaluation"},
    FactField{"count", "{step}", "steps that were interrupted"},
    FactField{"total_s", "s", "time of all interruptions"},
    FactField{"mean_s", "s", "time of one"},
    FactField{"longest_s", "s", "in one step"},
    FactField{"share_pct", "%", "of all time from the first step to the last"},
    FactField{"every_steps", "{step}", "from one to the next, mean; absent with fewer than two"},
    FactField{"every_s", "s", "the same as time"},
    FactField{"bytes", "By", "written by one checkpoint, mean"},
    FactField{"bytes_per_s", "By/s", "while it is written"},
    FactField{"process", "text", "label of the training process"},
};
constexpr std::array kSchemas{FactSchema{"pauses.part", "one kind of interruption of one training process", kFields}};
constexpr std::array kSpans{SpanKind::kCheckpoint};
constexpr std::array<std::pair<StepPart, std::string_view>, 2> kParts{
    {{StepPart::kCheckpoint, "checkpoint"}, {StepPart::kEvaluation, "evaluation"}}};
constexpr std::size_t kProcessesMax = 4096;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

class PausesAnalyzer final : public Analyzer {
 public:
  explicit PausesAnalyzer(const RunDescription& run)
      : table_(run), node_(run.recording == nullptr ? std::string() : run.recording->node) {}

  void on_processes(std::span<const ProcessInfo> processes) override { table_.on_processes(processes); }
  void on_step(const Step& step) override { table_.on_step(step); }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      const bool is_load = span.value_b == 1;
      if (span.kind != SpanKind::kCheckpoint || is_load || span.value_a <= 0 || span.duration_ns <= 0) continue;
      const std::pair key{node_, span.process};
      if (saved_.size() >= kProcessesMax && !saved_.contains(key)) continue;
      Saved& saved = saved_[key];
      ++saved.count;
      saved.bytes += span.value_a;
      saved.ns += span.duration_ns;
    }
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const PausesAnalyzer&>(other);
    table_.merge(from.table_);
    for (const auto& [key, saved] : from.saved_) {
      Saved& own = saved_[key];
      own.count += saved.count;
      own.bytes += saved.bytes;
      own.ns += saved.ns;
    }
  }

  void snapshot(FactTable& out) const override {
    for (const StepTable::Entry& entry : table_.entries()) {
      for (const auto& [part, what] : kParts) add_fact(entry, part, what, out);
    }
  }

 private:
  struct Saved {
    std::uint64_t count = 0;
    std::int64_t bytes = 0;
    std::int64_t ns = 0;
  };

  void add_fact(const StepTable::Entry& entry, StepPart part, std::string_view what, FactTable& out) const {
    const PartPauses& pauses = entry.steps->pauses(part);
    const std::int64_t span_ns = entry.steps->span_ns();
    if (pauses.measured == 0 || span_ns <= 0) return;
    const auto count = static_cast<double>(pauses.steps);
    Fact fact{.kind = "pauses.part", .where = entry.where};
    fact.set_text("what", std::string(what)).set("count", count).set("total_s", seconds(pauses.total_ns));
    if (pauses.steps > 0) {
      fact.set("mean_s", seconds(pauses.total_ns) / count).set("longest_s", seconds(pauses.longest_ns));
    }
    fact.set("share_pct", 100 * static_cast<double>(pauses.total_ns) / static_cast<double>(span_ns));
    if (pauses.steps > 1) {
      const double every = static_cast<double>(pauses.last_step - pauses.first_step) / (count - 1);
      fact.set("every_steps", every);
      fact.set("every_s", every * seconds(span_ns) / static_cast<double>(entry.steps->count()));
    }
    const auto saved = saved_.find({entry.where.node.empty() ? node_ : entry.where.node, entry.slot});
    if (part == StepPart::kCheckpoint && saved != saved_.end()) {
      fact.set("bytes", static_cast<double>(saved->second.bytes) / static_cast<double>(saved->second.count));
      fact.set("bytes_per_s", static_cast<double>(saved->second.bytes) / seconds(saved->second.ns));
    }
    fact.set_text("process", entry.process);
    out.add(std::move(fact));
  }

  StepTable table_;
  std::string node_;
  std::map<std::pair<std::string, std::uint32_t>, Saved> saved_;  // by node and slot
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<PausesAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_pauses{.id = "pauses",
                                                    .summary = "Checkpoints and evaluations between the steps.",
                                                    .produces = kSchemas,
                                                    .metrics = {},
                                                    .spans = kSpans,
                                                    .open = open};

}  // namespace hotlap
