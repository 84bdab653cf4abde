// Steps that take far longer than the typical one: how many, what they cost, whether they come at a period, which part
// of the step grew and which series of the machine moves along.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "analysis/node_analyzer.h"
#include "analysis/side_series.h"
#include "analysis/steady_window.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"steps", "{step}", "typical steps, slow ones among them"},
    FactField{"median_ms", "ms", ""},
    FactField{"deviation_ms", "ms", "standard deviation"},
    FactField{"mean_ms", "ms", ""},
    FactField{"threshold_ms", "ms", "from which on a step is slow: far above what steps vary anyway"},
    FactField{"slow", "{step}", "of them, slow"},
    FactField{"slow_ms", "ms", "mean of the slow ones; of the longest 512 where there are more"},
    FactField{"lost_s", "s", "what slow steps took beyond the median"},
    FactField{"lost_pct", "%", "the same, of the time of all typical steps"},
    FactField{"over_1sd", "{step}", "steps beyond mean + 1 standard deviation"},
    FactField{"over_2sd", "{step}", "beyond mean + 2"},
    FactField{"over_3sd", "{step}", "beyond mean + 3"},
    FactField{"over_4sd", "{step}", "beyond mean + 4"},
    FactField{"over_5sd", "{step}", "beyond mean + 5"},
    FactField{"over_6sd", "{step}", "beyond mean + 6"},
    FactField{"over_7sd", "{step}", "beyond mean + 7"},
    FactField{"over_8sd", "{step}", "beyond mean + 8"},
    FactField{"over_9sd", "{step}", "beyond mean + 9"},
    FactField{"over_10sd", "{step}", "beyond mean + 10"},
    FactField{"period_steps", "{step}", "from one slow step to the next; absent: they come at no period"},
    FactField{"period_phase", "{step}", "index of slow steps modulo the period"},
    FactField{"period_share_pct", "%", "share of slow steps that keep to it"},
    FactField{"part", "text", "part of the step that makes most of the difference"},
    FactField{"part_share_pct", "%", "share of the difference"},
    FactField{"part_slow_ms", "ms", "that part in a slow step"},
    FactField{"part_typical_ms", "ms", "and in a typical one"},
    FactField{"along", "text", "series of the machine that moves along most"},
    FactField{"along_slow", "1", "its mean in slow steps, in its own unit (per second for counters)"},
    FactField{"along_typical", "1", "and otherwise"},
    FactField{"process", "text", "label of the training process"},
};
constexpr std::array kSchemas{FactSchema{"slow_steps.summary", "steps far longer than the typical one", kFields}};
constexpr std::array<std::string_view, 10> kOver{"over_1sd", "over_2sd", "over_3sd", "over_4sd", "over_5sd",
                                                 "over_6sd", "over_7sd", "over_8sd", "over_9sd", "over_10sd"};

constexpr std::size_t kProcessesMax = 256;
constexpr std::size_t kLongestMax = 512;
constexpr std::size_t kRecentMax = 2048;
constexpr double kFarAbove = 1.3;      // of the median
constexpr double kPeriodShare = 0.75;  // of the gaps
constexpr std::size_t kPeriodicMin = 4;

constexpr std::size_t part_at(StepPart part) {
  std::size_t i = 0;
  while (kWatchedParts[i].first != part) ++i;
  return i;
}

struct Long {
  std::int64_t index = 0;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::array<float, kWatchedParts.size()> parts{};  // NaN: not measured
};

struct Period {
  std::int64_t steps = 0;
  std::int64_t phase = 0;
  double share = 0;
};

// From the gaps between slow steps. One that was missed makes a gap of two periods.
std::optional<Period> period_of(std::vector<std::int64_t> indices) {
  std::ranges::sort(indices);
  if (indices.size() < kPeriodicMin) return std::nullopt;
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < indices.size(); ++i) gaps.push_back(indices[i] - indices[i - 1]);
  std::vector<std::int64_t> sorted = gaps;
  std::ranges::sort(sorted);
  const std::int64_t gap = sorted[sorted.size() / 2];
  if (gap < 2) return std::nullopt;
  const std::int64_t slack = gap / 20;
  const auto keeps = std::ranges::count_if(gaps, [&](std::int64_t one) {
    const std::int64_t periods = std::max<std::int64_t>((one + gap / 2) / gap, 1);
    return periods <= 3 && std::abs(one - periods * gap) <= slack;
  });
  const double share = static_cast<double>(keeps) / static_cast<double>(gaps.size());
  if (share < kPeriodShare) return std::nullopt;
  return Period{gap, indices.back() % gap, share};
}

class SlowStepsAnalyzer final : public NodeAnalyzer<SlowStepsAnalyzer> {
 public:
  explicit SlowStepsAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_step(const Step& step) override {
    if (steps_.size() >= kProcessesMax && !steps_.contains(step.process)) return;
    Steps& steps = steps_[step.process];
    last_ns_ = std::max(last_ns_, step.start_ns + step.duration_ns);
    if (step.loader_start_ns) return;  // an epoch's begin, told apart elsewhere
    Long one{.index = step.index, .start_ns = step.start_ns, .duration_ns = step.duration_ns};
    for (std::size_t i = 0; i < kWatchedParts.size(); ++i) {
      const auto part = part_ns(step, kWatchedParts[i].first);
      one.parts[i] = part ? static_cast<float>(*part) : std::numeric_limits<float>::quiet_NaN();
    }
    steps.recent.emplace_back(step.index, step.duration_ns);
    if (steps.recent.size() > kRecentMax) steps.recent.pop_front();
    keep_longest(steps.longest, one);
  }

  std::int64_t seen_ns() const { return last_ns_; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    for (const StepTable::Entry& entry : table_->entries()) {
      const auto found = steps_.find(entry.slot);
      const SteadySteps& steady = entry.steps->steady();
      if (found == steps_.end() || steady.sums.steps < 2) continue;
      Fact fact{.kind = "slow_steps.summary", .where = entry.where};
      if (!node.empty()) fact.where.node = node;
      fact.set_text("process", entry.process);
      fill(found->second, steady, entry.steps->beside_checkpoints_ns(), fact);
      out.add(std::move(fact));
    }
  }

 private:
  struct Steps {
    std::vector<Long> longest;  // a heap, the shortest of them on top
    std::deque<std::pair<std::int64_t, std::int64_t>> recent;
  };

  static bool is_longer(const Long& a, const Long& b) {
    return a.duration_ns != b.duration_ns ? a.duration_ns > b.duration_ns : a.index < b.index;
  }
  static void keep_longest(std::vector<Long>& heap, const Long& one) {
    if (heap.size() >= kLongestMax) {
      if (!is_longer(one, heap.front())) return;
      std::ranges::pop_heap(heap, is_longer);
      heap.pop_back();
    }
    heap.push_back(one);
    std::ranges::push_heap(heap, is_longer);
  }

  // What lies around a checkpoint is told with it.
  static void give_to_checkpoint(Long& one, double median_ns) {
    constexpr auto kCheckpoint = part_at(StepPart::kCheckpoint);
    if (!(one.parts[kCheckpoint] > 0)) return;
    double beyond_ns = static_cast<double>(one.duration_ns) - median_ns;
    for (const StepPart rare : {StepPart::kGarbage, StepPart::kCompile, StepPart::kEvaluation}) {
      if (const float part = one.parts[part_at(rare)]; part > 0) beyond_ns -= part;
    }
    one.parts[kCheckpoint] = std::max(one.parts[kCheckpoint], static_cast<float>(beyond_ns));
    one.parts[part_at(StepPart::kDataWait)] = std::numeric_limits<float>::quiet_NaN();
  }

  void fill(const Steps& steps, const SteadySteps& steady, std::int64_t beside_checkpoints_ns, Fact& fact) const {
    const double median = steady.durations_ns.quantile(0.5).value_or(0);
    const double mean = static_cast<double>(steady.sums.duration_ns) / static_cast<double>(steady.sums.steps);
    const double deviation = steady.durations_ns.deviation().value_or(0);
    fact.set("steps", static_cast<double>(steady.sums.steps)).set("median_ms", median / 1e6).set("mean_ms", mean / 1e6);
    fact.set("deviation_ms", deviation / 1e6);
    for (std::size_t i = 0; i < kOver.size(); ++i) {
      const double limit = mean + static_cast<double>(i + 1) * deviation;
      fact.set(kOver[i], static_cast<double>(steady.durations_ns.count_above(limit)));
    }
    // Above what nine tenths of the steps stay below by as much as these vary.
    const double p10 = steady.durations_ns.quantile(0.1).value_or(0);
    const double usual = std::max(median - p10, 0.0);
    const double threshold = std::max(kFarAbove * median, median + 4 * usual);
    fact.set("threshold_ms", threshold / 1e6);
    const auto slow_count = static_cast<double>(steady.durations_ns.count_above(threshold));
    fact.set("slow", slow_count);
    std::vector<Long> slow;
    for (const Long& one : steps.longest) {
      if (static_cast<double>(one.duration_ns) > threshold && one.start_ns >= steady.from_ns) slow.push_back(one);
    }
    if (slow.empty() || slow_count < 1) return;
    std::ranges::sort(slow, {}, &Long::start_ns);
    double sum = 0;
    for (const Long& one : slow) sum += static_cast<double>(one.duration_ns);
    const double slow_mean = sum / static_cast<double>(slow.size());
    const double lost_ns = slow_count * (slow_mean - median);
    fact.set("slow_ms", slow_mean / 1e6).set("lost_s", lost_ns / 1e9);
    fact.set("lost_pct", std::min(100 * lost_ns / static_cast<double>(steady.sums.duration_ns), 100.0));
    set_period(steps, slow, threshold, fact);
    if (beside_checkpoints_ns > 0) {
      for (Long& one : slow) give_to_checkpoint(one, median);
    }
    set_part(slow, steady, slow_mean - median, fact);
    set_along(slow, steady, fact);
  }

  static void set_period(const Steps& steps, const std::vector<Long>& slow, double threshold, Fact& fact) {
    // Short periods show in consecutive steps, long ones in the longest of all.
    std::vector<std::int64_t> indices;
    for (const auto& [index, duration_ns] : steps.recent) {
      if (static_cast<double>(duration_ns) > threshold) indices.push_back(index);
    }
    auto period = period_of(indices);
    if (!period && slow.size() < kLongestMax) {
      indices.clear();
      for (const Long& one : slow) indices.push_back(one.index);
      period = period_of(indices);
    }
    if (!period) return;
    fact.set("period_steps", static_cast<double>(period->steps))
        .set("period_phase", static_cast<double>(period->phase));
    fact.set("period_share_pct", 100 * period->share);
  }

  static void set_part(const std::vector<Long>& slow, const SteadySteps& steady, double difference_ns, Fact& fact) {
    double most = 0;
    double known = 0;
    bool is_whole = true;  // each part was measured in most of the slow steps
    for (std::size_t i = 0; i < kWatchedParts.size(); ++i) {
      double sum = 0;
      std::size_t measured = 0;
      for (const Long& one : slow) {
        if (std::isnan(one.parts[i])) continue;
        sum += static_cast<double>(one.parts[i]);
        ++measured;
      }
      is_whole = is_whole && (2 * measured >= slow.size() || !steady.sums.mean_ns(kWatchedParts[i].first));
      if (measured == 0) continue;
      // What few of the slow steps tell says nothing of the others.
      const double in_slow = sum / static_cast<double>(2 * measured >= slow.size() ? measured : slow.size());
      // The mean of all holds the slow ones too: what they add is taken off.
      const double all = steady.sums.mean_ns(kWatchedParts[i].first).value_or(0);
      const double share = static_cast<double>(slow.size()) / static_cast<double>(steady.sums.steps);
      const double typical = share < 0.9 ? std::max((all - share * in_slow) / (1 - share), 0.0) : all;
      const double grown = in_slow - typical;
      known += std::max(grown, 0.0);
      if (grown <= most) continue;
      most = grown;
      fact.set_text("part", std::string(kWatchedParts[i].second));
      fact.set("part_slow_ms", in_slow / 1e6).set("part_typical_ms", typical / 1e6);
      fact.set("part_share_pct", std::min(100 * grown / difference_ns, 100.0));
    }
    if (difference_ns - known <= most) return;
    if (!is_whole) {
      for (const std::string_view field : {"part", "part_share_pct", "part_slow_ms", "part_typical_ms"}) {
        if (const auto found = fact.fields.find(field); found != fact.fields.end()) fact.fields.erase(found);
      }
      return;
    }
    fact.set_text("part", "other")
        .set("part_share_pct", std::min(100 * (difference_ns - known) / difference_ns, 100.0));
    fact.fields.erase("part_slow_ms");
    fact.fields.erase("part_typical_ms");
  }

  void set_along(const std::vector<Long>& slow, const SteadySteps& steady, Fact& fact) const {
    SideSeries::Stretches during;
    SideSeries::Stretches otherwise;
    std::int64_t before_ns = steady.from_ns;
    for (const Long& one : slow) {
      if (one.start_ns > before_ns) otherwise.emplace_back(before_ns, one.start_ns);
      before_ns = one.start_ns + one.duration_ns;
      during.emplace_back(one.start_ns, before_ns);
    }
    if (steady.to_ns > before_ns) otherwise.emplace_back(before_ns, steady.to_ns);
    const auto move = side_->mover(during, otherwise);
    if (!move) return;
    fact.set_text("along", move->series).set("along_slow", move->during).set("along_typical", move->otherwise);
  }

  std::map<std::uint32_t, Steps> steps_;
  std::int64_t last_ns_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<SlowStepsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_slow_steps{.id = "slow_steps",
                                                        .summary = "Slow steps: count, cost, period, part, companion.",
                                                        .produces = kSchemas,
                                                        .metrics = {},
                                                        .spans = {},
                                                        .open = open};

}  // namespace hotlap
