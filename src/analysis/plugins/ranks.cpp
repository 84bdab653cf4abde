// The ranks of a job side by side, step by step: who is slowest how often, and by how much. Where what a rank
// communicates is measured it is left out: it is the wait for the others.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/analyzer.h"

namespace hotlap {
namespace {

constexpr std::array kSummaryFields{
    FactField{"ranks", "{rank}", "seen"},
    FactField{"running", "{rank}", "that have not ended yet, or whose end was not seen"},
    FactField{"steps", "{step}", "that all of them tell"},
    FactField{"median_ms", "ms", "of the ranks' own work in a step, mean over the steps"},
    FactField{"slowest_ms", "ms", "of the slowest of each step, mean"},
    FactField{"lost_pct", "%", "of the slowest's time that the median rank waits for it"},
    FactField{"own_work", "1", "1: communication was measured and left out; 0: whole steps are compared"},
    FactField{"stalls", "1", "times that one rank took far longer than the others of the same step"},
    FactField{"stalled_ranks", "{rank}", "ranks to which that happened"},
    FactField{"stall_ms", "ms", "beyond the median, mean"},
    FactField{"stall_lost_pct", "%", "of the slowest's time, in stalls"},
    FactField{"stall_top_share_pct", "%", "of the stalls, those of the rank that has most"},
    FactField{"stall_every_steps", "{step}", "from one stall of a rank to its next, median"},
};
constexpr std::array kRankFields{
    FactField{"steps", "{step}", "that it did"},
    FactField{"mean_ms", "ms", "of its own work in a step"},
    FactField{"slower_pct", "%", "than the median rank in the same step, mean; negative: faster"},
    FactField{"slowest_share_pct", "%", "of the steps in which it was the slowest"},
    FactField{"data_wait_ms", "ms", "of a step, mean"},
    FactField{"process", "text", "label of the training process"},
};
constexpr std::array kSchemas{
    FactSchema{"ranks.summary", "the ranks of a job side by side", kSummaryFields},
    FactSchema{"ranks.rank", "one rank beside the others", kRankFields},
};

constexpr std::size_t kRanksMax = 4096;
constexpr std::size_t kCellsMax = std::size_t{1} << 20;  // durations that are kept: 8 MiB
constexpr std::size_t kStepsMax = 16'384;                // of one rank
constexpr std::int64_t kWarmup = 3;                      // first steps of each, left out
constexpr double kPresent = 0.8;                         // of the ranks, that must tell a step
constexpr double kStall = 0.3;                           // beyond the median, of the median
constexpr std::size_t kFactsMax = 256;

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class RanksAnalyzer final : public Analyzer {
 public:
  explicit RanksAnalyzer(const RunDescription& run) { on_processes(run.processes); }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) {
      if (process.role != ProcessRole::kRank) continue;
      labels_[process.index] = slot_label(process);
      const bool was_watched = process.start_ns >= 0;  // not so where all is from a file
      if (was_watched && process.end_ns < 0) {
        running_.insert(process.index);
      } else {
        running_.erase(process.index);
      }
    }
  }

  void on_step(const Step& step) override {
    if (step.rank < 0 || step.duration_ns <= 0) return;
    if (ranks_.size() >= kRanksMax && !ranks_.contains(step.rank)) return;
    Rank& rank = ranks_[step.rank];
    ++rank.steps;
    if (step.data_wait_ns) {
      rank.wait_ns += static_cast<double>(*step.data_wait_ns);
      ++rank.waits;
    }
    if (rank.steps <= kWarmup || cells_ >= kCellsMax || rank.own_ms.size() >= kStepsMax) return;
    const std::int64_t own_ns = step.duration_ns - step.communication_ns.value_or(0);
    rank.has_communication &= step.communication_ns.has_value();
    if (rank.own_ms.emplace(step.index, static_cast<float>(static_cast<double>(own_ns) / 1e6)).second) ++cells_;
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const RanksAnalyzer&>(other);
    labels_.insert(from.labels_.begin(), from.labels_.end());
    running_.insert(from.running_.begin(), from.running_.end());
    for (const auto& [number, rank] : from.ranks_) {
      const auto [place, is_new] = ranks_.try_emplace(number, rank);
      if (is_new) continue;
      // The same rank in another recording: a recorder that was started again.
      place->second.steps += rank.steps;
      place->second.wait_ns += rank.wait_ns;
      place->second.waits += rank.waits;
      place->second.own_ms.insert(rank.own_ms.begin(), rank.own_ms.end());
    }
  }

  void snapshot(FactTable& out) const override {
    if (ranks_.size() < 2) return;
    const Comparison seen = compare();
    if (seen.steps == 0) return;
    Fact summary{.kind = "ranks.summary"};
    const auto steps = static_cast<double>(seen.steps);
    const bool is_own = std::ranges::all_of(ranks_, [](const auto& one) { return one.second.has_communication; });
    summary.set("running", static_cast<double>(running_.size()));
    summary.set("ranks", static_cast<double>(ranks_.size())).set("steps", steps).set("own_work", is_own ? 1 : 0);
    summary.set("median_ms", seen.median_ms / steps).set("slowest_ms", seen.slowest_ms / steps);
    summary.set("lost_pct", 100 * (seen.slowest_ms - seen.median_ms) / seen.slowest_ms);
    set_stalls(seen, summary);
    out.add(std::move(summary));
    add_ranks(seen, out);
  }

 private:
  struct Rank {
    std::int64_t steps = 0;
    double wait_ns = 0;
    std::int64_t waits = 0;
    bool has_communication = true;
    std::map<std::int64_t, float> own_ms;  // by index of the step
  };
  struct Beside {
    double slower = 0;  // sums over steps
    double compared = 0;
    double slowest = 0;
    std::vector<std::int64_t> stalls;  // steps
  };
  struct Comparison {
    std::int64_t steps = 0;
    double median_ms = 0;
    double slowest_ms = 0;
    double stall_ms = 0;
    std::map<std::int32_t, Beside> ranks;
  };

  Comparison compare() const {
    Comparison seen;
    std::map<std::int64_t, std::vector<std::pair<std::int32_t, double>>> by_step;
    for (const auto& [number, rank] : ranks_) {
      for (const auto& [index, own_ms] : rank.own_ms) by_step[index].emplace_back(number, own_ms);
    }
    const auto needed =
        std::max<std::size_t>(2, static_cast<std::size_t>(kPresent * static_cast<double>(ranks_.size())));
    std::vector<double> values;
    for (const auto& [index, ranks] : by_step) {
      if (ranks.size() < needed) continue;
      values.clear();
      for (const auto& [number, own_ms] : ranks) values.push_back(own_ms);
      const double median = median_of(values);
      const auto slowest = std::ranges::max_element(ranks, {}, &std::pair<std::int32_t, double>::second);
      if (median <= 0) continue;
      ++seen.steps;
      seen.median_ms += median;
      seen.slowest_ms += slowest->second;
      for (const auto& [number, own_ms] : ranks) {
        Beside& beside = seen.ranks[number];
        beside.slower += own_ms / median - 1;
        beside.compared += 1;
        if (own_ms < (1 + kStall) * median) continue;
        beside.stalls.push_back(index);
        seen.stall_ms += own_ms - median;
      }
      seen.ranks[slowest->first].slowest += 1;
    }
    return seen;
  }

  static void set_stalls(const Comparison& seen, Fact& summary) {
    double stalls = 0;
    double most = 0;
    double stalled = 0;
    std::vector<double> gaps;
    for (const auto& [number, beside] : seen.ranks) {
      const auto count = static_cast<double>(beside.stalls.size());
      stalls += count;
      most = std::max(most, count);
      stalled += count > 0 ? 1 : 0;
      for (std::size_t i = 1; i < beside.stalls.size(); ++i) {
        gaps.push_back(static_cast<double>(beside.stalls[i] - beside.stalls[i - 1]));
      }
    }
    summary.set("stalls", stalls).set("stalled_ranks", stalled);
    if (stalls < 1) return;
    summary.set("stall_ms", seen.stall_ms / stalls).set("stall_top_share_pct", 100 * most / stalls);
    summary.set("stall_lost_pct", std::min(100 * seen.stall_ms / seen.slowest_ms, 100.0));
    if (!gaps.empty()) summary.set("stall_every_steps", median_of(gaps));
  }

  // All of a small job; of a large one those that are slowest.
  void add_ranks(const Comparison& seen, FactTable& out) const {
    std::vector<std::pair<std::int32_t, const Beside*>> order;
    for (const auto& [number, beside] : seen.ranks) order.emplace_back(number, &beside);
    std::ranges::stable_sort(order, std::greater{},
                             [](const auto& one) { return one.second->slower / one.second->compared; });
    if (order.size() > kFactsMax) order.resize(kFactsMax);
    for (const auto& [number, beside] : order) {
      const Rank& rank = ranks_.at(number);
      Fact fact{.kind = "ranks.rank"};
      fact.where.rank = number;
      double sum = 0;
      for (const auto& [index, own_ms] : rank.own_ms) sum += own_ms;
      fact.set("steps", static_cast<double>(rank.steps)).set("slower_pct", 100 * beside->slower / beside->compared);
      if (!rank.own_ms.empty()) fact.set("mean_ms", sum / static_cast<double>(rank.own_ms.size()));
      fact.set("slowest_share_pct", 100 * beside->slowest / static_cast<double>(seen.steps));
      if (rank.waits > 0) fact.set("data_wait_ms", rank.wait_ns / static_cast<double>(rank.waits) / 1e6);
      if (const auto label = labels_.find(number); label != labels_.end()) fact.set_text("process", label->second);
      out.add(std::move(fact));
    }
  }

  std::map<std::int32_t, Rank> ranks_;
  std::map<std::int32_t, std::string> labels_;
  std::set<std::int32_t> running_;
  std::size_t cells_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<RanksAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_ranks{.id = "ranks",
                                                   .summary = "The ranks of a job side by side, step by step.",
                                                   .produces = kSchemas,
                                                   .metrics = {},
                                                   .spans = {},
                                                   .open = open};

}  // namespace hotlap
