// Whether the data that an epoch reads stays in memory: what came from storage in the first epoch and in later ones,
// and how long a step took in them. A slow first epoch is a cold cache; an epoch that reads as much as the first does
// not fit.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "analysis/node_analyzer.h"
#include "analysis/time_profile.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"epochs", "{epoch}", "that ended, as far as they are looked at"},
    FactField{"first_read_bytes", "By", "from storage in the first epoch"},
    FactField{"later_read_bytes", "By", "in each later one, mean"},
    FactField{"asked_bytes", "By", "asked for in an epoch, from storage or cache, mean"},
    FactField{"first_step_ms", "ms", "time of a step in the first epoch"},
    FactField{"later_step_ms", "ms", "in later ones"},
    FactField{
        "state", "text",
        "warm: already the first epoch came from memory; fits: later ones do; partly; too large: each epoch reads "
        "all of it again; absent: little is read, or not two epochs ended"},
};
constexpr std::array kSchemas{FactSchema{"page_cache.summary", "what of the data stays in memory", kFields}};
constexpr std::array<std::string_view, 2> kMetrics{"process.io.rchar.bytes", "process.io.read.bytes"};
constexpr std::array kSpans{SpanKind::kEpoch};
constexpr std::size_t kEpochsMax = 64;  // the first ones: they tell
constexpr std::size_t kSeriesMax = 4096;
constexpr double kLeastBytes = 16e6;  // of an epoch; program files are read too
constexpr double kWarmShare = 0.1;    // of what was asked for, from storage
constexpr double kFitsShare = 0.15;   // of the first epoch
constexpr double kTooLargeShare = 0.7;

// All counters of one kind together over time.
class CounterSum {
 public:
  // Samples or points of minutes.
  template <class Point>
  void add(const std::string& instance, std::span<const Point> points, double scale) {
    if (counters_.size() >= kSeriesMax && !counters_.contains(instance)) return;
    counters_[instance].add(points, [&](std::int64_t from_ns, std::int64_t to_ns, double grown) {
      amounts_.add(from_ns, to_ns, grown * scale);
    });
  }
  double amount(std::int64_t from_ns, std::int64_t to_ns) const { return amounts_.sum(from_ns, to_ns); }
  bool is_empty() const { return counters_.empty(); }

 private:
  std::map<std::string, CounterTrack> counters_;
  TimeProfile amounts_;
};

class PageCacheAnalyzer final : public NodeAnalyzer<PageCacheAnalyzer> {
 public:
  explicit PageCacheAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_step(const Step& step) override {
    if (process_ && *process_ != step.process) return;  // one of several ranks speaks for all of the machine
    process_ = step.process;
    steps_.add(step.start_ns, step.start_ns + step.duration_ns, 1);
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    (series.metric == kMetrics[0] ? asked_ : read_).add(series.instance, points, series.scale);
  }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override {
    (series.metric == kMetrics[0] ? asked_ : read_).add(series.instance, minutes, series.scale);
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.kind != SpanKind::kEpoch || span.duration_ns <= 0 || epochs_.size() >= kEpochsMax) continue;
      if (epoch_process_ && *epoch_process_ != span.process) continue;
      epoch_process_ = span.process;
      epochs_.emplace_back(span.start_ns, span.start_ns + span.duration_ns);
    }
  }

  std::int64_t seen_ns() const { return epochs_.empty() ? 0 : epochs_.back().second - epochs_.front().first; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    if (epochs_.size() < 2 || read_.is_empty()) return;
    Fact fact{.kind = "page_cache.summary"};
    fact.where.node = node;
    const double later = static_cast<double>(epochs_.size() - 1);
    const auto first = epochs_.front();
    const double first_read = read_.amount(first.first, first.second);
    double later_read = 0;
    double asked = asked_.amount(first.first, first.second);
    double later_ns = 0;
    double later_steps = 0;
    for (std::size_t i = 1; i < epochs_.size(); ++i) {
      const auto [from_ns, to_ns] = epochs_[i];
      later_read += read_.amount(from_ns, to_ns) / later;
      asked += asked_.amount(from_ns, to_ns);
      later_ns += static_cast<double>(to_ns - from_ns);
      later_steps += steps_.sum(from_ns, to_ns);
    }
    asked /= later + 1;
    fact.set("epochs", later + 1).set("first_read_bytes", first_read).set("later_read_bytes", later_read);
    if (!asked_.is_empty()) fact.set("asked_bytes", asked);
    const double first_steps = steps_.sum(first.first, first.second);
    constexpr double kNsPerMilli = 1e6;
    if (first_steps >= 1)
      fact.set("first_step_ms", static_cast<double>(first.second - first.first) / first_steps / kNsPerMilli);
    if (later_steps >= 1) fact.set("later_step_ms", later_ns / later_steps / kNsPerMilli);
    if (const std::string_view state = state_of(first_read, later_read, asked); !state.empty())
      fact.set_text("state", std::string(state));
    out.add(std::move(fact));
  }

 private:
  std::string_view state_of(double first_read, double later_read, double asked) const {
    if (asked_.is_empty() || asked < kLeastBytes) return {};
    if (later_read >= kTooLargeShare * first_read && later_read >= kWarmShare * asked) return "too large";
    if (first_read < kWarmShare * asked) return "warm";
    return later_read <= kFitsShare * first_read ? "fits" : "partly";
  }

  CounterSum asked_;
  CounterSum read_;
  TimeProfile steps_;
  std::optional<std::uint32_t> process_;
  std::optional<std::uint32_t> epoch_process_;
  std::vector<std::pair<std::int64_t, std::int64_t>> epochs_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<PageCacheAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_page_cache{.id = "page_cache",
                                                        .summary = "Whether the data of an epoch stays in memory.",
                                                        .produces = kSchemas,
                                                        .metrics = kMetrics,
                                                        .spans = kSpans,
                                                        .takes_minutes = true,
                                                        .open = open};

}  // namespace hotlap
