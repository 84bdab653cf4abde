// What the recording itself costs, measured in the run: the hook's own time, the recorder's CPU time, and, where
// the hook was switched off and on in blocks, the difference in step time.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/analyzer.h"
#include "analysis/block_means.h"
#include "analysis/minutes.h"
#include "analysis/step_table.h"
#include "analysis/time_profile.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"hook_us_per_step", "us", "the hook's own time in the training thread"},
    FactField{"hook_pct", "%", "the same, of step time"},
    FactField{"recorder_cores", "{core}", "CPU time of the recorder"},
    FactField{"shadow_pct", "%", "step time with the hook on against off, from blocks of steps"},
    FactField{"shadow_half_width_pct", "%", "half of its 95 % interval"},
    FactField{"shadow_blocks", "{block}", "blocks compared"},
    FactField{"low_pct", "%", "overhead, low end"},
    FactField{"high_pct", "%", "overhead, high end"},
};
constexpr std::array kSchemas{FactSchema{"self.overhead", "what the recording costs the job", kFields}};
constexpr std::array kSpans{SpanKind::kHook, SpanKind::kShadow};
constexpr std::array kMetrics{std::string_view{"self.cpu.ns"}};
constexpr std::size_t kBlocksMax = 4096;
constexpr std::size_t kBlocksMin = 4;  // of each kind

struct Block {
  double step_ns = 0;
  bool is_on = false;
};

class OverheadAnalyzer final : public Analyzer {
 public:
  explicit OverheadAnalyzer(const RunDescription& run) : table_(run.steps) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      if (span.kind == SpanKind::kHook) {
        own_ns_ += static_cast<double>(span.duration_ns);
        own_steps_ += static_cast<double>(std::max<std::int64_t>(span.value_b, 1));
      } else if (span.value_b > 0 && blocks_.size() < kBlocksMax) {
        blocks_.push_back(
            {static_cast<double>(span.duration_ns) / static_cast<double>(span.value_b), span.value_a == 1});
      }
    }
  }

  void on_samples(const StoredSeries&, std::span<const SamplePoint> points) override { cpu_.add(points, 1e-9); }
  void on_minutes(const StoredSeries&, std::span<const TierPoint> minutes) override { cpu_.add(minutes, 1e-9); }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const OverheadAnalyzer&>(other);
    own_ns_ += from.own_ns_;
    own_steps_ += from.own_steps_;
    blocks_.insert(blocks_.end(), from.blocks_.begin(), from.blocks_.end());
    if (cpu_.end_ns() == 0) cpu_ = from.cpu_;
  }

  void snapshot(FactTable& out) const override {
    Fact fact{.kind = "self.overhead"};
    const auto cores = cpu_.rate(cpu_.begin_ns(), cpu_.end_ns());
    fact.set("recorder_cores", cores);
    std::optional<double> direct;
    if (own_steps_ > 0) {
      fact.set("hook_us_per_step", own_ns_ / own_steps_ / static_cast<double>(kNsPerUs));
      const auto entries = table_->entries();
      if (!entries.empty()) {
        const SteadySteps& steady = entries.front().steps->steady();
        if (steady.sums.steps > 0) {
          const double mean_ns = static_cast<double>(steady.sums.duration_ns) / static_cast<double>(steady.sums.steps);
          direct = 100 * own_ns_ / own_steps_ / mean_ns;
          fact.set("hook_pct", direct);
        }
      }
    }
    const bool has_shadow = set_shadow(fact);
    if (!has_shadow && direct) {
      // The recorder takes a core now and then; at worst all of that is taken from the job.
      fact.set("low_pct", *direct).set("high_pct", *direct + 100 * cores.value_or(0));
    }
    if (fact.fields.empty()) return;
    out.add(std::move(fact));
  }

 private:
  // Neighbouring blocks are compared, so that a drift of the step time is not taken for ours.
  bool set_shadow(Fact& fact) const {
    std::vector<double> differences;
    for (std::size_t i = 0; i + 1 < blocks_.size(); ++i) {
      const Block& a = blocks_[i];
      const Block& b = blocks_[i + 1];
      if (a.is_on == b.is_on) continue;
      const Block& on = a.is_on ? a : b;
      const Block& off = a.is_on ? b : a;
      differences.push_back(100 * (on.step_ns - off.step_ns) / off.step_ns);
      ++i;  // a block is in one pair only
    }
    if (differences.size() < kBlocksMin) return false;
    double mean = 0;
    for (const double d : differences) mean += d / static_cast<double>(differences.size());
    const double half = half_width_95(differences).value_or(0);
    fact.set("shadow_pct", mean).set("shadow_half_width_pct", half);
    fact.set("shadow_blocks", static_cast<double>(differences.size() * 2));
    fact.set("low_pct", std::max(mean - half, 0.0)).set("high_pct", std::max(mean + half, 0.0));
    return true;
  }

  const StepTable* table_;
  double own_ns_ = 0;
  double own_steps_ = 0;
  std::vector<Block> blocks_;
  RateProfile cpu_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<OverheadAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_overhead{.id = "overhead",
                                                      .summary = "What the recording costs the job.",
                                                      .produces = kSchemas,
                                                      .metrics = kMetrics,
                                                      .spans = kSpans,
                                                      .takes_minutes = true,
                                                      .open = open};

}  // namespace hotlap
