// What interrupts training now and then: checkpoints, evaluations, and how often they come. A typical step does not
// show them: they make theirs untypical.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/step_table.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"what", "text", "checkpoint or evaluation"},
    FactField{"count", "1", "interruptions; checkpoints: steps that had any"},
    FactField{"total_s", "s", "time of all interruptions; checkpoints: with what lies around them"},
    FactField{"mean_s", "s", "time of one"},
    FactField{"longest_s", "s", "the longest; checkpoints: in one step"},
    FactField{"beside_s", "s", "of total_s: beside torch.save and torch.load, in the same steps; absent: none"},
    FactField{"share_pct", "%", "of all time from the first step to the last"},
    FactField{"every_steps", "{step}", "from one to the next, mean; absent with fewer than two"},
    FactField{"every_s", "s", "the same as time"},
    FactField{"batches", "{batch}", "that a loader gave for one evaluation, mean; 0: forwards without a loader"},
    FactField{"bytes", "By", "written by one checkpoint, mean"},
    FactField{"bytes_per_s", "By/s", "while it is written"},
    FactField{"process", "text", "label of the training process"},
};
constexpr std::array kSchemas{FactSchema{"pauses.part", "one kind of interruption of one training process", kFields}};
constexpr std::array kSpans{SpanKind::kCheckpoint, SpanKind::kEvaluation};
constexpr std::size_t kProcessesMax = 4096;
constexpr std::size_t kThreadsMax = 64;  // of one process that save
constexpr std::size_t kLatestMax = 16;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

class PausesAnalyzer final : public Analyzer {
 public:
  explicit PausesAnalyzer(const RunDescription& run)
      : table_(run.steps), node_(run.recording == nullptr ? std::string() : run.recording->node) {
    on_processes(run.processes);
  }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) labels_[process.slot] = slot_label(process);
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns <= 0) continue;
      const bool is_load = span.value_b == 1;
      const bool is_save = span.kind == SpanKind::kCheckpoint && !is_load && span.value_a > 0;
      if (span.kind != SpanKind::kEvaluation && !is_save) continue;
      if (processes_.size() >= kProcessesMax && !processes_.contains(span.process)) continue;
      Process& process = processes_[span.process];
      if (is_save) {
        if (process.saved.size() >= kThreadsMax && !process.saved.contains(span.thread)) continue;
        process.saved[span.thread].add({.count = 1, .bytes = span.value_a, .ns = span.duration_ns});
      } else {
        process.evaluated.add(span);
      }
    }
  }

  void on_step(const Step& step) override {
    if (processes_.size() < kProcessesMax || processes_.contains(step.process))
      processes_[step.process].thread = step.thread;
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const PausesAnalyzer&>(other);
    for (const auto& [key, process] : from.merged_) merged_[key].add(process);
    for (const auto& [slot, process] : from.processes_) merged_[from.key_of(slot)].add(process);
  }

  void snapshot(FactTable& out) const override {
    for (const StepTable::Entry& entry : table_->entries()) {
      const Process* process = process_of(entry);
      add_checkpoints(entry, process, out);
      add_evaluations(entry, process, out);
    }
  }

 private:
  struct Saved {
    std::uint64_t count = 0;
    std::int64_t bytes = 0;
    std::int64_t ns = 0;
    void add(const Saved& other) {
      count += other.count;
      bytes += other.bytes;
      ns += other.ns;
    }
  };

  // No step contains an evaluation: the one after it begins where it ended.
  struct Evaluated {
    std::uint64_t count = 0;
    std::int64_t ns = 0;
    std::uint64_t told = 0;  // evaluations whose batches are known
    std::int64_t batches = 0;
    std::int64_t longest_ns = 0;
    std::int64_t first_ns = 0;
    std::int64_t first_duration_ns = 0;
    std::int64_t second_ns = 0;
    std::vector<Span> latest;  // in no sum yet: the training may have ended before them

    void add(const Span& span) {
      latest.push_back(span);
      if (latest.size() <= kLatestMax) return;
      take(latest.front());
      latest.erase(latest.begin());
    }
    void add(const Evaluated& other) {
      if (other.count > 0 && (count == 0 || other.first_ns < first_ns)) {
        first_ns = other.first_ns;
        first_duration_ns = other.first_duration_ns;
        second_ns = other.second_ns;
      }
      count += other.count;
      ns += other.ns;
      told += other.told;
      batches += other.batches;
      longest_ns = std::max(longest_ns, other.longest_ns);
      for (const Span& span : other.latest) add(span);
    }
    void take(const Span& span) {
      if (count == 0) {
        first_ns = span.start_ns;
        first_duration_ns = span.duration_ns;
      }
      if (++count == 2) second_ns = span.start_ns;
      if (span.value_a >= 0) {
        ++told;
        batches += span.value_a;
      }
      ns += span.duration_ns;
      longest_ns = std::max(longest_ns, span.duration_ns);
    }
    // Those between the steps, and the begin of the last of them.
    std::pair<Evaluated, std::int64_t> between(std::int64_t begin_ns, std::int64_t end_ns) const {
      Evaluated sum = *this;
      sum.latest.clear();
      std::int64_t last_ns = first_ns;
      for (const Span& span : latest) {
        if (span.start_ns >= end_ns) continue;
        sum.take(span);
        last_ns = span.start_ns;
      }
      if (sum.count > 0 && sum.first_ns < begin_ns) {  // a model that is evaluated as it begins
        --sum.count;
        sum.ns -= sum.first_duration_ns;
        sum.first_ns = sum.second_ns;
      }
      return {sum, last_ns};
    }
  };

  struct Process {
    std::map<std::uint32_t, Saved> saved;  // by thread; 0: unknown
    std::uint32_t thread = 0;              // that trains; 0: unknown
    Evaluated evaluated;
    void add(const Process& other) {
      for (const auto& [by, one] : other.saved) saved[by].add(one);
      if (other.thread != 0) thread = other.thread;
      evaluated.add(other.evaluated);
    }
    // What training stood still for: another thread saves while it goes on.
    Saved saved_in_steps() const {
      Saved sum;
      for (const auto& [by, one] : saved) {
        if (by == thread || by == 0 || thread == 0) sum.add(one);
      }
      return sum;
    }
  };

  // Each recorder of a node numbers the processes anew: over several recordings the label names them.
  using Key = std::pair<std::string, std::string>;  // node and label

  Key key_of(std::uint32_t slot) const {
    const auto label = labels_.find(slot);
    return {node_, label == labels_.end() ? std::string() : label->second};
  }

  const Process* process_of(const StepTable::Entry& entry) const {
    if (merged_.empty()) {
      const auto found = processes_.find(entry.slot);
      return found == processes_.end() ? nullptr : &found->second;
    }
    const auto found = std::ranges::find_if(merged_, [&](const auto& one) {
      return one.first.second == entry.process && (entry.where.node.empty() || one.first.first == entry.where.node);
    });
    return found == merged_.end() ? nullptr : &found->second;
  }

  static Fact pauses_fact(const StepTable::Entry& entry, std::string_view what, std::uint64_t times,
                          std::int64_t total_ns, std::int64_t longest_ns) {
    const auto count = static_cast<double>(times);
    Fact fact{.kind = "pauses.part", .where = entry.where};
    fact.set_text("what", std::string(what)).set("count", count).set("total_s", seconds(total_ns));
    if (times > 0) fact.set("mean_s", seconds(total_ns) / count).set("longest_s", seconds(longest_ns));
    fact.set("share_pct", 100 * static_cast<double>(total_ns) / static_cast<double>(entry.steps->span_ns()));
    fact.set_text("process", entry.process);
    return fact;
  }

  static void add_checkpoints(const StepTable::Entry& entry, const Process* process, FactTable& out) {
    const PartPauses& pauses = entry.steps->pauses(StepPart::kCheckpoint);
    const std::int64_t span_ns = entry.steps->span_ns();
    if (pauses.measured == 0 || span_ns <= 0) return;
    const std::int64_t beside_ns = entry.steps->beside_checkpoints_ns();
    Fact fact = pauses_fact(entry, "checkpoint", pauses.steps, pauses.total_ns + beside_ns, pauses.longest_ns);
    if (beside_ns > 0) fact.set("beside_s", seconds(beside_ns));
    if (pauses.steps > 1) {
      const double every =
          static_cast<double>(pauses.last_step - pauses.first_step) / (static_cast<double>(pauses.steps) - 1);
      fact.set("every_steps", every);
      fact.set("every_s", every * seconds(span_ns) / static_cast<double>(entry.steps->count()));
    }
    const Saved saved = process == nullptr ? Saved{} : process->saved_in_steps();
    if (saved.count > 0) {
      fact.set("bytes", static_cast<double>(saved.bytes) / static_cast<double>(saved.count));
      fact.set("bytes_per_s", static_cast<double>(saved.bytes) / seconds(saved.ns));
    }
    out.add(std::move(fact));
  }

  static void add_evaluations(const StepTable::Entry& entry, const Process* process, FactTable& out) {
    const std::int64_t span_ns = entry.steps->span_ns();
    if (entry.steps->pauses(StepPart::kEvaluation).measured == 0 || span_ns <= 0) return;
    const auto [sum, last_ns] =
        process == nullptr ? std::pair<Evaluated, std::int64_t>{}
                           : process->evaluated.between(entry.steps->end_ns() - span_ns, entry.steps->end_ns());
    Fact fact = pauses_fact(entry, "evaluation", sum.count, sum.ns, sum.longest_ns);
    if (sum.told > 0) fact.set("batches", static_cast<double>(sum.batches) / static_cast<double>(sum.told));
    if (sum.count > 1) {
      const double every_s = seconds(last_ns - sum.first_ns) / (static_cast<double>(sum.count) - 1);
      const double training_s = seconds(span_ns - sum.ns);
      fact.set("every_s", every_s);
      if (training_s > 0) {
        const double trained_s = every_s - seconds(sum.ns) / static_cast<double>(sum.count);
        fact.set("every_steps", std::round(trained_s * static_cast<double>(entry.steps->count()) / training_s));
      }
    }
    out.add(std::move(fact));
  }

  const StepTable* table_;
  std::string node_;
  std::map<std::uint32_t, std::string> labels_;
  std::map<std::uint32_t, Process> processes_;  // by slot
  std::map<Key, Process> merged_;               // of recordings that were merged
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
