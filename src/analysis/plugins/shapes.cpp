// Steps whose input has a shape that was not seen before, where steps tell it: how much longer they take.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "analysis/analyzer.h"
#include "analysis/log_histogram.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"shapes", "1", "different ones"},
    FactField{"steps", "{step}", "that tell one, without the very first"},
    FactField{"first_steps", "{step}", "of them, with a shape not seen before"},
    FactField{"first_ms", "ms", "of those, mean"},
    FactField{"again_ms", "ms", "of the others, median"},
    FactField{"slow_first_pct", "%", "of those with a new shape, that take twice as long as the others or more"},
    FactField{"slow_others_pct", "%", "of the slow steps, that have no new shape"},
    FactField{"lost_s", "s", "beyond the median, of steps with a new shape"},
    FactField{"lost_pct", "%", "the same, of the time of all these steps"},
    FactField{"process", "text", "label of the training process"},
};
constexpr std::array kSchemas{FactSchema{"shapes.summary", "steps with input of a new shape", kFields}};
constexpr std::array kSpans{SpanKind::kStep};
constexpr std::string_view kPrefix = "shape ";
constexpr std::size_t kShapesMax = 65'536;
constexpr std::size_t kFirstMax = 16'384;
constexpr std::size_t kProcessesMax = 256;
constexpr double kSlow = 2;  // times the median

class ShapesAnalyzer final : public Analyzer {
 public:
  explicit ShapesAnalyzer(const RunDescription& run) : run_(run) { on_processes(run.processes); }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) labels_[process.slot] = slot_label(process);
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.name == 0 || span.duration_ns <= 0 || !run_.name_of) continue;
      if (processes_.size() >= kProcessesMax && !processes_.contains(span.process)) continue;
      Process& process = processes_[span.process];
      const auto known = process.seen.find(span.name);
      if (known != process.seen.end()) {
        process.again.add(static_cast<double>(span.duration_ns));
        process.total_ns += static_cast<double>(span.duration_ns);
        continue;
      }
      if (process.seen.size() == kShapesMax || !run_.name_of(span.name).starts_with(kPrefix)) continue;
      process.seen.insert(span.name);
      if (process.seen.size() == 1) continue;  // the very first step is start-up anyway
      process.total_ns += static_cast<double>(span.duration_ns);
      if (process.first_ns.size() < kFirstMax) process.first_ns.push_back(static_cast<double>(span.duration_ns));
    }
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const ShapesAnalyzer&>(other);
    for (const auto& [slot, process] : from.processes_) {
      const auto label = from.labels_.find(slot);
      merged_.emplace_back(label == from.labels_.end() ? std::string() : label->second, process);
    }
    merged_.insert(merged_.end(), from.merged_.begin(), from.merged_.end());
  }

  void snapshot(FactTable& out) const override {
    for (const auto& [label, process] : merged_) add(label, process, out);
    for (const auto& [slot, process] : processes_) {
      const auto label = labels_.find(slot);
      add(label == labels_.end() ? std::string() : label->second, process, out);
    }
  }

 private:
  struct Process {
    std::set<std::uint32_t> seen;  // ids of names
    std::vector<double> first_ns;
    LogHistogram again;
    double total_ns = 0;
  };

  static void add(const std::string& label, const Process& process, FactTable& out) {
    const auto again = process.again.quantile(0.5);
    if (process.first_ns.empty() || !again || *again <= 0) return;
    Fact fact{.kind = "shapes.summary"};
    double sum = 0;
    double slow = 0;
    double lost = 0;
    for (const double ns : process.first_ns) {
      sum += ns;
      slow += ns >= kSlow * *again ? 1 : 0;
      lost += std::max(ns - *again, 0.0);
    }
    const auto first = static_cast<double>(process.first_ns.size());
    const auto slow_others = static_cast<double>(process.again.count_above(kSlow * *again));
    fact.set("shapes", static_cast<double>(process.seen.size())).set("first_steps", first);
    fact.set("steps", first + static_cast<double>(process.again.count()));
    fact.set("first_ms", sum / first / 1e6).set("again_ms", *again / 1e6).set("slow_first_pct", 100 * slow / first);
    if (slow + slow_others > 0) fact.set("slow_others_pct", 100 * slow_others / (slow + slow_others));
    fact.set("lost_s", lost / 1e9);
    if (process.total_ns > 0) fact.set("lost_pct", std::min(100 * lost / process.total_ns, 100.0));
    if (!label.empty()) fact.set_text("process", label);
    out.add(std::move(fact));
  }

  const RunDescription& run_;
  std::map<std::uint32_t, Process> processes_;
  std::map<std::uint32_t, std::string> labels_;
  std::vector<std::pair<std::string, Process>> merged_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ShapesAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_shapes{.id = "shapes",
                                                    .summary = "Steps whose input has a new shape.",
                                                    .produces = kSchemas,
                                                    .metrics = {},
                                                    .spans = kSpans,
                                                    .open = open};

}  // namespace hotlap
