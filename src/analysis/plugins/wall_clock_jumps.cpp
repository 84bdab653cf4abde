// Jumps of the machine's wall clock, and times when it slept: what compares times with other machines is wrong then.
#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/node_analyzer.h"
#include "base/clock.h"
#include "model/clock_step.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"count", "{jump}", "jumps of more than 1 ms"},
    FactField{"sum_s", "s", "all of them together, forward positive"},
    FactField{"largest_s", "s", "the largest one, forward positive"},
    FactField{"backward", "{jump}", "of them, backward"},
    FactField{"unsure", "{jump}", "of them, those that may be sleeps of the machine: nothing tells them apart"},
    FactField{"suspends", "{sleep}", "times that the machine slept"},
    FactField{"suspended_s", "s", "time of it"},
};
constexpr std::array kSchemas{FactSchema{"clock.jumps", "jumps of the wall clock of one node", kFields}};

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

class WallClockJumpsAnalyzer final : public NodeAnalyzer<WallClockJumpsAnalyzer> {
 public:
  explicit WallClockJumpsAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_event(const Event& event) override {
    first_ns_ = std::min(first_ns_, event.t_ns);
    last_ns_ = std::max(last_ns_, event.t_ns);
    if (event.kind == EventKind::kSuspend) {
      suspends_ += 1;
      suspended_s_ += seconds(event.value);
    }
    if (event.kind != EventKind::kClockStep) return;
    const double jump_s = seconds(event.value);
    count_ += 1;
    sum_s_ += jump_s;
    if (jump_s < 0) backward_ += 1;
    if (event.text == kMayBeSleep) unsure_ += 1;
    if (std::abs(jump_s) > std::abs(largest_s_)) largest_s_ = jump_s;
  }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  // A recording in which no clock jumped says so: that is known, not missing.
  void snapshot_node(const std::string& node, FactTable& out) const {
    Fact fact{.kind = "clock.jumps"};
    fact.where.node = node;
    fact.set("count", count_).set("sum_s", sum_s_).set("largest_s", largest_s_).set("backward", backward_);
    if (unsure_ > 0) fact.set("unsure", unsure_);
    fact.set("suspends", suspends_).set("suspended_s", suspended_s_);
    out.add(std::move(fact));
  }

 private:
  double count_ = 0;
  double sum_s_ = 0;
  double largest_s_ = 0;
  double backward_ = 0;
  double unsure_ = 0;
  double suspends_ = 0;
  double suspended_s_ = 0;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<WallClockJumpsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_wall_clock_jumps{.id = "wall_clock_jumps",
                                                              .summary = "Jumps of the machine's wall clock.",
                                                              .produces = kSchemas,
                                                              .metrics = {},
                                                              .spans = {},
                                                              .open = open};

}  // namespace hotlap
