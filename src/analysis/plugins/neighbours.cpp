// What others take of the machine: time that the hypervisor gave away (steal), cores that other programs use, and
// whether steps are slower while they do.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"
#include "analysis/time_profile.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"window_s", "s", "time that was looked at"},
    FactField{"steps_only", "1", "1: during typical steps"},
    FactField{"usable_cores", "{core}", "what affinity and quota leave to the job"},
    FactField{"steal_pct", "%", "of the cores' time, given to others by the hypervisor, mean"},
    FactField{"steal_high_pct", "%", "share of time with 10 % of it or more"},
    FactField{"steal_longest_s", "s", "longest stretch of that"},
    FactField{"steal_slowdown_pct", "%", "so much longer steps are in that time than otherwise"},
    FactField{"outside_cores", "{core}", "busy with programs that are not of the job, mean"},
    FactField{"outside_high_pct", "%", "share of time in which they take a quarter of the usable cores or more"},
    FactField{"outside_slowdown_pct", "%", "so much longer steps are in that time than otherwise"},
    FactField{"full_pct", "%", "share of time with all cores of the machine busy"},
};
constexpr std::array kSchemas{FactSchema{"neighbours.summary", "what others take of the machine", kFields}};
constexpr std::array<std::string_view, 5> kMetrics{"cpu.steal.seconds", "cpu.busy.seconds", "process.cpu.seconds",
                                                   "cpu.usable.cores", "cpu.count"};
constexpr std::size_t kBuckets = 1024;
constexpr double kHighSteal = 0.1;
constexpr double kHighOutside = 0.25;
constexpr double kFull = 0.9;

// Time and steps, apart for when something holds and when it does not.
struct Apart {
  double seconds_while = 0;
  double seconds_else = 0;
  double steps_while = 0;
  double steps_else = 0;
  double longest_s = 0;
  double running_s = 0;

  void add(bool holds, double seconds, double steps) {
    (holds ? seconds_while : seconds_else) += seconds;
    (holds ? steps_while : steps_else) += steps;
    running_s = holds ? running_s + seconds : 0;
    longest_s = std::max(longest_s, running_s);
  }
  double share_pct() const {
    const double all = seconds_while + seconds_else;
    return all > 0 ? 100 * seconds_while / all : 0;
  }
  // Nothing when one of both was too short.
  std::optional<double> slowdown_pct() const {
    if (steps_while < 10 || steps_else < 10) return std::nullopt;
    return 100 * ((seconds_while / steps_while) / (seconds_else / steps_else) - 1);
  }
};

class NeighboursAnalyzer final : public NodeAnalyzer<NeighboursAnalyzer> {
 public:
  explicit NeighboursAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_step(const Step& step) override {
    if (!slot_) slot_ = step.process;
    if (*slot_ != step.process || step.duration_ns <= 0) return;
    steps_.add(step.start_ns, step.start_ns + step.duration_ns, 1);
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto window = steady_or_observed(*table_, first_ns_, last_ns_);
    const auto cores = count_.last();
    if (!window || !cores || *cores <= 0) return;
    const double usable = usable_.last().value_or(*cores);
    Fact fact{.kind = "neighbours.summary"};
    fact.where.node = node;
    fact.set("window_s", window->seconds()).set("steps_only", window->is_of_steps ? 1 : 0);
    fact.set("usable_cores", usable);
    if (const auto steal = steal_.rate(window->from_ns, window->to_ns)) {
      Apart apart;
      walk(steal_, *window, [&](double rate, double seconds, double steps, std::int64_t, std::int64_t) {
        apart.add(rate >= kHighSteal * *cores, seconds, steps);
      });
      fact.set("steal_pct", 100 * *steal / *cores).set("steal_high_pct", apart.share_pct());
      fact.set("steal_longest_s", apart.longest_s).set("steal_slowdown_pct", apart.slowdown_pct());
    }
    if (busy_.rate(window->from_ns, window->to_ns) && !processes_.empty()) {
      Apart apart;
      Apart full;
      double outside_s = 0;
      double seen_s = 0;
      walk(busy_, *window, [&](double rate, double seconds, double steps, std::int64_t from, std::int64_t to) {
        double job = 0;
        for (const auto& [label, profile] : processes_) job += profile.amount(from, to);
        const double others = std::max(rate - job / seconds, 0.0);
        // With a limit, others take of the job's share only what the rest of the machine does not hold.
        const double outside = std::max(others - std::max(*cores - usable, 0.0), 0.0);
        outside_s += outside * seconds;
        seen_s += seconds;
        apart.add(outside >= kHighOutside * usable, seconds, steps);
        full.add(rate >= kFull * *cores, seconds, steps);
      });
      if (seen_s > 0) fact.set("outside_cores", outside_s / seen_s);
      fact.set("outside_high_pct", apart.share_pct()).set("outside_slowdown_pct", apart.slowdown_pct());
      fact.set("full_pct", full.share_pct());
    }
    out.add(std::move(fact));
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty()) return;
    first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    last_ns_ = std::max(last_ns_, end_ns(points.back()));
    if (series.metric == "process.cpu.seconds") {
      if (processes_.size() < kBuckets || processes_.contains(series.instance))
        processes_.try_emplace(series.instance, 0.95, kBuckets).first->second.add(points, series.scale);
    } else if (series.metric == "cpu.steal.seconds") {
      steal_.add(points, series.scale);
    } else if (series.metric == "cpu.busy.seconds") {
      busy_.add(points, series.scale);
    } else {
      (series.metric == "cpu.count" ? count_ : usable_).add(points, series.scale);
    }
  }

  // visit(rate, seconds, steps, from_ns, to_ns) for each stretch of the profile inside the window.
  template <class Visit>
  void walk(const RateProfile& profile, const SteadyWindow& window, const Visit& visit) const {
    const std::int64_t width_ns = profile.width_ns();
    for (std::int64_t t = window.from_ns; t < window.to_ns; t += width_ns) {
      const std::int64_t to_ns = std::min(t + width_ns, window.to_ns);
      const double seconds = profile.observed_s(t, to_ns);
      if (seconds <= 0) continue;
      visit(profile.amount(t, to_ns) / seconds, seconds, steps_.sum(t, to_ns), t, to_ns);
    }
  }

  RateProfile steal_{0.95, kBuckets};
  RateProfile busy_{0.95, kBuckets};
  std::map<std::string, RateProfile> processes_;
  GaugeProfile count_;
  GaugeProfile usable_;
  TimeProfile steps_{kBuckets};
  std::optional<std::uint32_t> slot_;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<NeighboursAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_neighbours{.id = "neighbours",
                                                        .summary = "What others take of the machine.",
                                                        .produces = kSchemas,
                                                        .metrics = kMetrics,
                                                        .spans = {},
                                                        .takes_minutes = true,
                                                        .open = open};

}  // namespace hotlap
