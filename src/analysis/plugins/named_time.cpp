// Calls and time by name, as native observers count them: ranges that the program announces, PyTorch's operators by
// sampling.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/figure_table.h"
#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::array kRangeFields{
    FactField{"name", "text", "of the range; in a domain of its own \"domain:name\""},
    FactField{"calls", "{call}", "that have ended"},
    FactField{"total_ms", "ms", "time in them; ranges inside each other count each"},
    FactField{"mean_us", "us", "of one"},
};
constexpr std::array kOperatorFields{
    FactField{"name", "text", "of the operator"},
    FactField{"calls", "{call}", "estimated from those that were looked at"},
    FactField{"total_ms", "ms", "time in them on the CPU, estimated likewise; what an operator calls counts for both"},
    FactField{"mean_us", "us", "of those that were looked at"},
};
constexpr std::array kSchemas{
    FactSchema{"ranges.range", "a range that a program announces (NVTX, record_function), in one process",
               kRangeFields},
    FactSchema{"operators.sampled", "an operator of PyTorch in one process, by sampling", kOperatorFields}};
constexpr std::array<std::string_view, 2> kMetrics{"range.", "operator."};
constexpr std::size_t kFactsMax = 40;  // of a process and kind: those that take most

class NamedTimeAnalyzer final : public Analyzer {
 public:
  explicit NamedTimeAnalyzer(const RunDescription& run) : run_(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    figures_.add(series, points);
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const NamedTimeAnalyzer&>(other);
    std::vector<Fact> facts = from.facts();
    for (Fact& fact : facts) fact.where.node = from.run_.recording->node;
    std::ranges::move(facts, std::back_inserter(merged_));
    merged_.insert(merged_.end(), from.merged_.begin(), from.merged_.end());
  }

  void snapshot(FactTable& out) const override {
    for (Fact& fact : facts()) out.add(std::move(fact));
    for (const Fact& fact : merged_) out.add(fact);
  }

 private:
  std::vector<Fact> facts() const {
    std::vector<Fact> out;
    for (const auto& [kind, metric] :
         {std::pair("ranges.range", "range"), std::pair("operators.sampled", "operator")}) {
      std::map<std::string, std::vector<Fact>> by_process;
      for (const std::string& instance : figures_.instances(format("{}.time.ns", metric))) {
        const std::size_t slash = instance.find('/');
        const auto calls = last_of(figures_.find(format("{}.calls", metric), instance));
        const auto time_ns = last_of(figures_.find(format("{}.time.ns", metric), instance));
        if (slash == std::string::npos || !calls || !time_ns || *calls <= 0) continue;
        const std::string process = instance.substr(0, slash);
        Fact& fact = by_process[process].emplace_back(Fact{.kind = kind});
        fact.where.process = process;
        fact.set_text("name", instance.substr(slash + 1)).set("calls", *calls);
        fact.set("total_ms", *time_ns / static_cast<double>(kNsPerMs));
        fact.set("mean_us", *time_ns / *calls / static_cast<double>(kNsPerUs));
      }
      for (auto& [process, all] : by_process) {
        std::ranges::stable_sort(all, std::greater<>(), [](const Fact& fact) { return fact.number("total_ms"); });
        if (all.size() > kFactsMax) all.resize(kFactsMax);
        std::ranges::move(all, std::back_inserter(out));
      }
    }
    return out;
  }

  RunDescription run_;
  FigureTable figures_;
  std::vector<Fact> merged_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<NamedTimeAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_named_time{.id = "named_time",
                                                        .summary = "Calls and time by name, of native observers.",
                                                        .produces = kSchemas,
                                                        .metrics = kMetrics,
                                                        .open = open};

}  // namespace hotlap
