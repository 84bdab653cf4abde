// Where the time of a typical step goes. The parts and "other" add up to 100 %; a part that the hook does not
// measure is absent and its time is inside "other". What of "other" the program has named itself is told by name.
#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "analysis/analyzer.h"
#include "analysis/figure_table.h"
#include "analysis/step_table.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array<std::pair<StepPart, std::string_view>, kStepPartCount> kParts{{
    {StepPart::kDataWait, "data_wait"},
    {StepPart::kForward, "forward"},
    {StepPart::kBackward, "backward"},
    {StepPart::kOptimizer, "optimizer"},
    {StepPart::kCommunication, "communication"},
    {StepPart::kCheckpoint, "checkpoint"},
    {StepPart::kGarbage, "gc"},
    {StepPart::kCompile, "compile"},
    {StepPart::kEvaluation, "evaluation"},
    {StepPart::kHook, "hook"},
}};

constexpr std::array kFields{
    FactField{"data_wait", "%", "waiting for the loader"},
    FactField{"forward", "%", "the model's forward pass and loss"},
    FactField{"backward", "%", "the backward pass"},
    FactField{"optimizer", "%", "the optimizer's update"},
    FactField{"communication", "%",
              "collectives that nothing else covers; of DistributedDataParallel what backward waits for"},
    FactField{"checkpoint", "%", "saving and loading, with what follows it in the same step"},
    FactField{"gc", "%", "Python's garbage collector"},
    FactField{"compile", "%", "compilation and recompilation"},
    FactField{"evaluation", "%", "evaluation inside a step"},
    FactField{"hook", "%", "our own time"},
    FactField{"other", "%", "everything else on the training thread, and parts that were not measured"},
    FactField{"compute_known", "1", "1: forward and backward were both measured"},
};
constexpr std::array kNamedFields{
    FactField{"name", "text", "as in hotlap.span(name)"},
    FactField{"share_pct", "%", "of a typical step, outside of all its measured parts"},
    FactField{"step_ms", "ms", "the same per step"},
};
constexpr std::array kSchemas{
    FactSchema{"breakdown.parts", "shares of a typical step", kFields},
    FactSchema{"breakdown.named", "of breakdown.parts' other: a stretch that the program has named itself; the largest",
               kNamedFields}};
constexpr std::size_t kNamedMax = 8;
constexpr double kNamedLeastPct = 0.1;

class BreakdownAnalyzer final : public Analyzer {
 public:
  explicit BreakdownAnalyzer(const RunDescription& run) : table_(run.steps) {}
  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    figures_.add(series, points);
  }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override {
    figures_.add(series, minutes);
  }
  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const BreakdownAnalyzer&>(other);
    figures_.merge(from.figures_);
  }

  void snapshot(FactTable& out) const override {
    for (const StepTable::Entry& entry : table_->entries()) {
      const SteadySteps& steady = entry.steps->steady();
      const StepSums& sums = steady.sums;
      if (sums.hooked_steps == 0 || sums.hooked_ns == 0) continue;
      Fact fact{.kind = "breakdown.parts", .where = entry.where};
      const auto exposed_ns = reducer_exposed_ns(entry.process);
      double known = 0;
      const double mean_ns = static_cast<double>(sums.hooked_ns) / static_cast<double>(sums.hooked_steps);
      // Of a mean step, as the checkpoints themselves.
      const double beside_checkpoints_ns =
          static_cast<double>(entry.steps->beside_checkpoints_ns()) / static_cast<double>(steady.count);
      bool has_parts = false;
      for (const auto& [part, name] : kParts) {
        auto part_mean_ns = sums.mean_ns(part);
        if (part == StepPart::kCommunication && !part_mean_ns) part_mean_ns = exposed_ns;
        if (part == StepPart::kBackward && part_mean_ns && exposed_ns && !sums.mean_ns(StepPart::kCommunication)) {
          part_mean_ns = std::max(*part_mean_ns - *exposed_ns, 0.0);  // it is inside backward
        }
        if (part == StepPart::kCheckpoint && part_mean_ns) *part_mean_ns += beside_checkpoints_ns;
        if (!part_mean_ns) continue;
        const double share = std::min(100 * *part_mean_ns / mean_ns, 100 - known);
        known += share;
        fact.set(name, share);
        has_parts = has_parts || part != StepPart::kHook;
      }
      if (!has_parts) continue;
      fact.set("other", std::max(100 - known, 0.0));
      fact.set("compute_known", fact.number("forward") && fact.number("backward") ? 1 : 0);
      const double other = *fact.number("other");
      out.add(std::move(fact));
      add_named(entry.where, sums, mean_ns, other, out);
    }
  }

 private:
  static void add_named(const Where& where, const StepSums& sums, double mean_ns, double other_pct, FactTable& out) {
    std::vector<std::pair<std::string_view, double>> means;
    for (const auto& [name, ns] : sums.named_ns) {
      means.emplace_back(name, static_cast<double>(ns) / static_cast<double>(sums.hooked_steps));
    }
    std::ranges::stable_sort(means, std::greater<>(), [](const auto& one) { return one.second; });
    if (means.size() > kNamedMax) means.resize(kNamedMax);
    for (const auto& [name, ns] : means) {
      const double share = std::min(100 * ns / mean_ns, other_pct);
      other_pct -= share;
      if (share < kNamedLeastPct) continue;
      Fact fact{.kind = "breakdown.named", .where = where};
      fact.set_text("name", std::string(name)).set("share_pct", share);
      fact.set("step_ms", share / 100 * mean_ns / static_cast<double>(kNsPerMs));
      out.add(std::move(fact));
    }
  }

  // Of one backward: DistributedDataParallel's communication beyond what backward computes meanwhile.
  std::optional<double> reducer_exposed_ns(const std::string& process) const {
    const auto whole_ms = settled_mean_of(figures_.find("ddp.communication.ms", process));
    const auto overlap_ms = settled_mean_of(figures_.find("ddp.overlap.ms", process));
    if (!whole_ms || !overlap_ms) return std::nullopt;
    return std::max(*whole_ms - *overlap_ms, 0.0) * static_cast<double>(kNsPerMs);
  }

  const StepTable* table_;
  FigureTable figures_;
};

constexpr std::array<std::string_view, 2> kMetrics{"ddp.communication.ms", "ddp.overlap.ms"};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<BreakdownAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_breakdown{.id = "breakdown",
                                                       .summary = "Where the time of a typical step goes.",
                                                       .produces = kSchemas,
                                                       .metrics = kMetrics,
                                                       .spans = {},
                                                       .takes_minutes = true,
                                                       .open = open};

}  // namespace hotlap
