// Samples and tokens per second of the typical steps, and over all the time that training took.
#include <array>

#include "analysis/analyzer.h"
#include "analysis/step_table.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"steps_per_s", "{step}/s", "typical steps"},
    FactField{"samples_per_s", "{sample}/s", "typical steps"},
    FactField{"tokens_per_s", "{token}/s", "typical steps"},
    FactField{"overall_steps_per_s", "{step}/s", "all steps, over all that lay between the first and the last"},
};
constexpr std::array kSchemas{FactSchema{"throughput.summary", "work per second of one training process", kFields}};

double per_s(double amount, std::int64_t ns) { return amount * static_cast<double>(kNsPerS) / static_cast<double>(ns); }

class ThroughputAnalyzer final : public Analyzer {
 public:
  explicit ThroughputAnalyzer(const RunDescription& run) : table_(run.steps) {}
  void merge(const Analyzer&) override {}  // all that it says is of the table

  void snapshot(FactTable& out) const override {
    for (const StepTable::Entry& entry : table_->entries()) {
      const SteadySteps& steady = entry.steps->steady();
      const StepSums& sums = steady.sums;
      if (sums.steps == 0 || sums.duration_ns == 0) continue;
      Fact fact{.kind = "throughput.summary", .where = entry.where};
      fact.set("steps_per_s", per_s(static_cast<double>(sums.steps), sums.duration_ns));
      if (sums.sample_ns > 0) fact.set("samples_per_s", per_s(static_cast<double>(sums.samples), sums.sample_ns));
      if (sums.token_ns > 0) fact.set("tokens_per_s", per_s(static_cast<double>(sums.tokens), sums.token_ns));
      if (const std::int64_t span_ns = entry.steps->span_ns(); span_ns > 0) {
        fact.set("overall_steps_per_s", per_s(static_cast<double>(steady.count), span_ns));
      }
      out.add(std::move(fact));
    }
  }

 private:
  const StepTable* table_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ThroughputAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_throughput{.id = "throughput",
                                                        .summary = "Samples, tokens and steps per second.",
                                                        .produces = kSchemas,
                                                        .metrics = {},
                                                        .spans = {},
                                                        .open = open};

}  // namespace hotlap
