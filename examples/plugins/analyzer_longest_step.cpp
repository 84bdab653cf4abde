// Skeleton of an analyzer: the longest step seen. Copy it to src/analysis/plugins/<name>.cpp.
#include <algorithm>
#include <array>

#include "analysis/analyzer.h"

namespace hotlap {
namespace {

constexpr std::string_view kKind = "example.longest_step";
constexpr std::array kFields{
    FactField{"steps", "{step}", "Steps seen."},
    FactField{"longest_ms", "ms", "Duration of the longest; absent when no step was seen."},
};
constexpr std::array kProduces{FactSchema{kKind, "The longest training step.", kFields}};

// State is bounded, whatever the length of the run.
class LongestStep final : public Analyzer {
 public:
  void on_step(const Step& step) override {
    ++steps_;
    longest_ns_ = std::max(longest_ns_, step.duration_ns);
  }

  void merge(const Analyzer& other) override {
    const auto& seen = static_cast<const LongestStep&>(other);
    steps_ += seen.steps_;
    longest_ns_ = std::max(longest_ns_, seen.longest_ns_);
  }

  void snapshot(FactTable& out) const override {
    Fact fact{.kind = kKind};
    fact.set("steps", static_cast<double>(steps_));
    if (steps_ > 0) fact.set("longest_ms", static_cast<double>(longest_ns_) * 1e-6);
    out.add(std::move(fact));
  }

 private:
  std::int64_t steps_ = 0;
  std::int64_t longest_ns_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription&) { return std::make_unique<LongestStep>(); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_longest_step{
    .id = "longest_step", .summary = "The longest training step.", .produces = kProduces, .open = open};

}  // namespace hotlap
