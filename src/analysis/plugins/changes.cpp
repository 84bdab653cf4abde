// Moments from which training was faster or slower than before, for good: change points of the time per sample, the
// part of the step that changed, and the series of the machine that moved along.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/node_analyzer.h"
#include "analysis/side_series.h"
#include "analysis/steady_window.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"number", "1", "which one, from 1 in time"},
    FactField{"at_s", "s", "when, on the recording's clock"},
    FactField{"at_step", "{step}", "index of the step, about"},
    FactField{"before_ms", "ms", "time of a step since the change before"},
    FactField{"after_ms", "ms", "up to the next change"},
    FactField{"change_pct", "%", "of the time per sample, where samples are known; positive: slower"},
    FactField{"half_width_pct", "%", "half of its 95 % interval, from means of blocks"},
    FactField{"lasts_s", "s", "up to the next change, or the end"},
    FactField{"lost_s", "s", "so much more time than before was spent since; negative: less"},
    FactField{"part", "text", "part of the step that makes most of the change"},
    FactField{"part_share_pct", "%", "share of the change"},
    FactField{"along", "text", "series of the machine that moves along most"},
    FactField{"along_before", "1", "its mean before, in its own unit (per second for counters)"},
    FactField{"along_after", "1", "and after"},
    FactField{"process", "text", "label of the training process"},
};
constexpr std::array kSchemas{FactSchema{"changes.point", "a lasting change of throughput", kFields}};

constexpr std::size_t kProcessesMax = 64;
constexpr std::size_t kBlocksMax = 256;
constexpr std::size_t kBlocksOfPart = 6;  // at least, before and after
constexpr std::size_t kPointsMax = 4;
constexpr double kSmallestChange = 0.05;
constexpr double kStandardErrors = 7;
constexpr double kCorrelationMax = 0.75;  // what slows down bit by bit is correlated through and through

struct Block {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t first_index = 0;
  std::uint64_t steps = 0;
  double duration_ns = 0;
  double samples = 0;  // of the steps where they are known
  std::uint64_t sample_steps = 0;
  // Of the steps whose parts were measured.
  std::uint64_t hooked_steps = 0;
  double hooked_ns = 0;
  std::array<double, kWatchedParts.size()> parts_ns{};
  std::array<std::uint64_t, kWatchedParts.size()> part_steps{};

  void add(const Block& other) {
    end_ns = other.end_ns;
    steps += other.steps;
    duration_ns += other.duration_ns;
    samples += other.samples;
    sample_steps += other.sample_steps;
    hooked_steps += other.hooked_steps;
    hooked_ns += other.hooked_ns;
    for (std::size_t i = 0; i < parts_ns.size(); ++i) {
      parts_ns[i] += other.parts_ns[i];
      part_steps[i] += other.part_steps[i];
    }
  }
  double hooked_step_ns() const { return hooked_ns / static_cast<double>(hooked_steps); }
  // Nothing where it was not measured.
  std::optional<double> part_ns(std::size_t i) const {
    return part_steps[i] == 0 ? std::nullopt : std::optional(parts_ns[i] / static_cast<double>(part_steps[i]));
  }
  double step_ns() const { return duration_ns / static_cast<double>(steps); }
};

struct Level {
  double n = 0;
  double mean = 0;
  double squares = 0;   // of the distances from it
  double products = 0;  // of those of neighbours
};

Level level_of(const std::vector<double>& values, std::size_t from, std::size_t to) {
  Level level{.n = static_cast<double>(to - from)};
  for (std::size_t i = from; i < to; ++i) level.mean += values[i] / level.n;
  double before = 0;
  for (std::size_t i = from; i < to; ++i) {
    const double distance = values[i] - level.mean;
    level.squares += distance * distance;
    level.products += before * distance;
    before = distance;
  }
  return level;
}

// Standard error of the difference of two means. What disturbs one step disturbs the next ones too: values of a
// first-order process, by the correlation of neighbours on both sides (which is estimated too low: Kendall's term).
double error_of(const Level& a, const Level& b) {
  if (a.n < 2 || b.n < 2) return 0;
  const double squares = a.squares + b.squares;
  const double seen = squares > 0 ? (a.products + b.products) / squares : 0;
  const double correlation = std::clamp(seen + (1 + 4 * seen) / (a.n + b.n), 0.0, kCorrelationMax);
  const double independent = a.squares / (a.n - 1) / a.n + b.squares / (b.n - 1) / b.n;
  return std::sqrt(independent * (1 + correlation) / (1 - correlation));
}

struct Split {
  std::size_t at = 0;
  double standard_errors = 0;
};

// Where the two sides differ most for what they vary.
std::optional<Split> best_split(const std::vector<double>& values, std::size_t from, std::size_t to) {
  std::optional<Split> best;
  for (std::size_t at = from + kBlocksOfPart; at + kBlocksOfPart <= to; ++at) {
    const Level before = level_of(values, from, at);
    const Level after = level_of(values, at, to);
    const double change = std::abs(after.mean - before.mean);
    if (change < kSmallestChange * before.mean) continue;
    const double error = error_of(before, after) + 1e-4 * before.mean;
    const double standard_errors = change / error;
    if (standard_errors < kStandardErrors || (best && standard_errors <= best->standard_errors)) continue;
    best = Split{at, standard_errors};
  }
  return best;
}

void find_splits(const std::vector<double>& values, std::size_t from, std::size_t to, std::vector<Split>& out) {
  const auto split = best_split(values, from, to);
  if (!split) return;
  out.push_back(*split);
  find_splits(values, from, split->at, out);
  find_splits(values, split->at, to, out);
}

class ChangesAnalyzer final : public NodeAnalyzer<ChangesAnalyzer> {
 public:
  explicit ChangesAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_step(const Step& step) override {
    last_ns_ = std::max(last_ns_, step.start_ns + step.duration_ns);
    if (step.loader_start_ns || step.duration_ns <= 0) return;
    if (steps_.size() >= kProcessesMax && !steps_.contains(step.process)) return;
    Steps& steps = steps_[step.process];
    Block one{.start_ns = step.start_ns,
              .end_ns = step.start_ns + step.duration_ns,
              .first_index = step.index,
              .steps = 1,
              .duration_ns = static_cast<double>(step.duration_ns)};
    if (step.samples > 0) {
      one.samples = static_cast<double>(step.samples);
      one.sample_steps = 1;
    }
    if (step.is_hooked) set_parts(step, one);
    add(steps, one);
  }

  std::int64_t seen_ns() const { return last_ns_; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    for (const StepTable::Entry& entry : table_->entries()) {
      const auto found = steps_.find(entry.slot);
      if (found == steps_.end()) continue;
      std::vector<Block> blocks;
      const std::int64_t from_ns = entry.steps->steady().from_ns;
      for (const Block& block : found->second.blocks) {
        if (block.start_ns >= from_ns && block.steps >= found->second.steps_of_block) blocks.push_back(block);
      }
      add_points(entry, node, blocks, out);
    }
  }

 private:
  struct Steps {
    std::vector<Block> blocks;
    std::uint64_t steps_of_block = 1;
  };

  static void set_parts(const Step& step, Block& one) {
    one.hooked_steps = 1;
    one.hooked_ns = one.duration_ns;
    for (std::size_t i = 0; i < kWatchedParts.size(); ++i) {
      const auto ns = hotlap::part_ns(step, kWatchedParts[i].first);
      if (!ns) continue;
      one.parts_ns[i] = static_cast<double>(*ns);
      one.part_steps[i] = 1;
    }
  }

  static void add(Steps& steps, const Block& one) {
    if (!steps.blocks.empty() && steps.blocks.back().steps < steps.steps_of_block) {
      steps.blocks.back().add(one);
      return;
    }
    if (steps.blocks.size() == kBlocksMax) {
      for (std::size_t i = 0; i < kBlocksMax / 2; ++i) {
        Block joined = steps.blocks[2 * i];
        joined.add(steps.blocks[2 * i + 1]);
        steps.blocks[i] = joined;
      }
      steps.blocks.resize(kBlocksMax / 2);
      steps.steps_of_block *= 2;
    }
    steps.blocks.push_back(one);
  }

  void add_points(const StepTable::Entry& entry, const std::string& node, const std::vector<Block>& blocks,
                  FactTable& out) const {
    // A larger batch takes longer and is no slow-down: time per sample, where all steps tell their samples.
    const bool by_sample = !blocks.empty() && std::ranges::all_of(blocks, [](const Block& block) {
      return block.sample_steps == block.steps && block.samples > 0;
    });
    std::vector<double> values;
    values.reserve(blocks.size());
    for (const Block& block : blocks) values.push_back(by_sample ? block.duration_ns / block.samples : block.step_ns());
    std::vector<Split> splits;
    find_splits(values, 0, values.size(), splits);
    std::ranges::stable_sort(splits, std::greater{}, &Split::standard_errors);
    if (splits.size() > kPointsMax) splits.resize(kPointsMax);
    std::ranges::sort(splits, {}, &Split::at);
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const std::size_t from = i == 0 ? 0 : splits[i - 1].at;
      const std::size_t to = i + 1 < splits.size() ? splits[i + 1].at : blocks.size();
      Fact fact{.kind = "changes.point", .where = entry.where};
      if (!node.empty()) fact.where.node = node;
      fact.set("number", static_cast<double>(i + 1)).set_text("process", entry.process);
      fill(blocks, values, from, splits[i].at, to, fact);
      out.add(std::move(fact));
    }
  }

  void fill(const std::vector<Block>& blocks, const std::vector<double>& values, std::size_t from, std::size_t at,
            std::size_t to, Fact& fact) const {
    Block before = blocks[from];
    for (std::size_t i = from + 1; i < at; ++i) before.add(blocks[i]);
    Block after = blocks[at];
    for (std::size_t i = at + 1; i < to; ++i) after.add(blocks[i]);
    const Level low = level_of(values, from, at);
    const Level high = level_of(values, at, to);
    const double change = (high.mean - low.mean) / low.mean;
    fact.set("at_s", static_cast<double>(after.start_ns) / 1e9).set("at_step", static_cast<double>(after.first_index));
    fact.set("before_ms", before.step_ns() / 1e6)
        .set("after_ms", after.step_ns() / 1e6)
        .set("change_pct", 100 * change);
    fact.set("half_width_pct", 196 * error_of(low, high) / low.mean);
    fact.set("lasts_s", static_cast<double>(after.end_ns - after.start_ns) / 1e9);
    fact.set("lost_s", after.duration_ns * change / (1 + change) / 1e9);
    set_part(before, after, fact);
    const auto move = side_->mover({{after.start_ns, after.end_ns}}, {{before.start_ns, before.end_ns}});
    if (!move) return;
    fact.set_text("along", move->series).set("along_before", move->otherwise).set("along_after", move->during);
  }

  static void set_part(const Block& before, const Block& after, Fact& fact) {
    constexpr std::uint64_t kMeasuredMin = 5;
    if (std::min(before.hooked_steps, after.hooked_steps) < kMeasuredMin) return;
    const double difference = after.hooked_step_ns() - before.hooked_step_ns();
    if (difference * (after.step_ns() - before.step_ns()) <= 0) return;  // those that were measured do not show it
    double most = 0;
    double known = 0;
    std::size_t measured = 0;
    std::string_view name;
    for (std::size_t i = 0; i < kWatchedParts.size(); ++i) {
      const auto then = before.part_ns(i);
      const auto now = after.part_ns(i);
      if (!then || !now) continue;
      ++measured;
      const double share = (*now - *then) / difference;
      known += std::max(share, 0.0);
      if (share <= most) continue;
      most = share;
      name = kWatchedParts[i].second;
    }
    if (measured > 0 && 1 - known > most) {
      most = 1 - known;
      name = "other";
    }
    if (name.empty()) return;
    fact.set_text("part", std::string(name)).set("part_share_pct", std::min(100 * most, 100.0));
  }

  std::map<std::uint32_t, Steps> steps_;
  std::int64_t last_ns_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ChangesAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_changes{.id = "changes",
                                                     .summary = "Lasting changes of throughput.",
                                                     .produces = kSchemas,
                                                     .metrics = {},
                                                     .spans = {},
                                                     .open = open};

}  // namespace hotlap
