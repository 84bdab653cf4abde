// How long steps take: warm-up, loader starts, ragged batches and steps without the hook kept apart from the
// typical ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/step_table.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"count", "{step}", "all steps seen"},
    FactField{"steady_count", "{step}", "typical steps: what the other fields speak of"},
    FactField{"warmup_count", "{step}", "first steps, left out"},
    FactField{"warmup_s", "s", "their time"},
    FactField{"warmup_data_wait_ms", "ms", "their mean data wait, without the very first and starts of workers"},
    FactField{"loader_start_count", "{step}", "steps that waited for loader workers to start, left out"},
    FactField{"loader_start_s", "s", "their time"},
    FactField{"ragged_count", "{step}", "steps with a short last batch, left out"},
    FactField{"unhooked_count", "{step}", "steps in blocks with the hook switched off"},
    FactField{"restarts", "{restart}", "times that the step count began anew"},
    FactField{"inferred", "1", "1: steps were cut by the loader's cadence, there is no optimizer step"},
    FactField{"chosen", "1", "1: steps of a profiler's trace: few, and no warm-up among them"},
    FactField{"mean_ms", "ms", "mean step"},
    FactField{"half_width_ms", "ms", "half of the mean's 95 % interval, from means of blocks"},
    FactField{"median_ms", "ms", ""},
    FactField{"p90_ms", "ms", ""},
    FactField{"p99_ms", "ms", ""},
    FactField{"data_wait_ms", "ms", "mean data wait of a step"},
    FactField{"data_wait_half_width_ms", "ms", "half of its 95 % interval"},
    FactField{"batches_per_step", "{batch}", "taken from the loader; more than 1 with gradient accumulation"},
    FactField{"samples_per_step", "{sample}", ""},
    FactField{"from_s", "s", "begin of the typical steps on the recording's clock"},
    FactField{"to_s", "s", "their end"},
    FactField{"steady_s", "s", "time of the typical steps"},
    FactField{"total_s", "s", "time of all steps"},
    FactField{"process", "text", "label of the process"},
};
constexpr std::array kSchemas{FactSchema{"steps.summary", "steps of one training process", kFields}};

double ms(double ns) { return ns / static_cast<double>(kNsPerMs); }
double s(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }
std::optional<double> ms(std::optional<double> ns) { return ns ? std::optional(ms(*ns)) : std::nullopt; }

class StepsAnalyzer final : public Analyzer {
 public:
  explicit StepsAnalyzer(const RunDescription& run) : table_(run.steps) {}

  void on_step(const Step& step) override {
    if (first_.size() >= kProcessesMax && !first_.contains(step.process)) return;
    First& first = first_[step.process];
    if (step.index <= first.last_index) return;  // it began anew: the table does not count these as the first either
    first.last_index = step.index;
    if (first.waits_ns.size() >= StepStatistics::kHeadMax) return;
    const bool is_start = first.waits_ns.empty() || step.loader_start_ns;
    first.waits_ns.push_back(is_start ? std::nullopt : step.data_wait_ns);
  }

  // All else that it says is of the table. Processes are numbered anew in each recording.
  void merge(const Analyzer&) override { is_merged_ = true; }

  void snapshot(FactTable& out) const override {
    for (const StepTable::Entry& entry : table_->entries()) {
      const SteadySteps& steady = entry.steps->steady();
      Fact fact{.kind = "steps.summary", .where = entry.where};
      fact.set("count", static_cast<double>(steady.count))
          .set("steady_count", static_cast<double>(steady.sums.steps))
          .set("warmup_count", static_cast<double>(steady.warmup_count))
          .set("warmup_s", s(steady.warmup_ns))
          .set("loader_start_count", static_cast<double>(steady.loader_start_count))
          .set("loader_start_s", s(steady.loader_start_ns))
          .set("ragged_count", static_cast<double>(steady.ragged_count))
          .set("unhooked_count", static_cast<double>(steady.sums.steps - steady.sums.hooked_steps))
          .set("restarts", static_cast<double>(steady.restarts))
          .set("total_s", s(steady.total_ns))
          .set_text("process", entry.process);
      if (entry.steps->is_chosen()) fact.set("chosen", 1);
      if (!is_merged_) fact.set("warmup_data_wait_ms", ms(first_wait_ns(entry.slot, steady.warmup_count)));
      if (steady.sums.steps > 0) set_typical(steady, fact);
      out.add(std::move(fact));
    }
  }

 private:
  static constexpr std::size_t kProcessesMax = 4096;
  struct First {
    std::int64_t last_index = -1;
    std::vector<std::optional<std::int64_t>> waits_ns;  // of the first steps; nothing: not measured, or not meant
  };

  // Mean data wait of so many first steps.
  std::optional<double> first_wait_ns(std::uint32_t slot, std::size_t count) const {
    const auto found = first_.find(slot);
    if (found == first_.end()) return std::nullopt;
    double sum = 0;
    double measured = 0;
    for (std::size_t i = 0; i < std::min(count, found->second.waits_ns.size()); ++i) {
      const auto& wait_ns = found->second.waits_ns[i];
      if (!wait_ns) continue;
      sum += static_cast<double>(*wait_ns);
      ++measured;
    }
    return measured > 0 ? std::optional(sum / measured) : std::nullopt;
  }

  static void set_typical(const SteadySteps& steady, Fact& fact) {
    const StepSums& sums = steady.sums;
    const auto steps = static_cast<double>(sums.steps);
    fact.set("inferred", sums.inferred * 2 > sums.steps ? 1 : 0)
        .set("mean_ms", ms(static_cast<double>(sums.duration_ns)) / steps)
        .set("median_ms", ms(steady.durations_ns.quantile(0.5)))
        .set("p90_ms", ms(steady.durations_ns.quantile(0.9)))
        .set("p99_ms", ms(steady.durations_ns.quantile(0.99)))
        .set("from_s", s(steady.from_ns))
        .set("to_s", s(steady.to_ns))
        .set("steady_s", s(sums.duration_ns));
    if (const auto interval = steady.blocks_ns.interval()) fact.set("half_width_ms", ms(interval->half_width));
    if (const auto wait = sums.mean_ns(StepPart::kDataWait)) {
      fact.set("data_wait_ms", ms(*wait));
      if (const auto interval = steady.wait_blocks_ns.interval()) {
        fact.set("data_wait_half_width_ms", ms(interval->half_width));
      }
    }
    if (sums.batch_steps > 0 && sums.batches > 0) {
      fact.set("batches_per_step", static_cast<double>(sums.batches) / static_cast<double>(sums.batch_steps));
    }
    if (sums.sample_steps > 0) {
      fact.set("samples_per_step", static_cast<double>(sums.samples) / static_cast<double>(sums.sample_steps));
    }
  }

  const StepTable* table_;
  std::map<std::uint32_t, First> first_;  // by slot
  bool is_merged_ = false;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<StepsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_steps{.id = "steps",
                                                   .summary = "How long steps take, and which of them are typical.",
                                                   .produces = kSchemas,
                                                   .metrics = {},
                                                   .spans = {},
                                                   .open = open};

}  // namespace hotlap
