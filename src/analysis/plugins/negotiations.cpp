// Horovod's negotiations: how long tensors wait until all ranks have announced them, and which rank came last.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "analysis/analyzer.h"
#include "analysis/log_histogram.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"count", "1", "negotiations that ended"},
    FactField{"mean_ms", "ms", ""},
    FactField{"p95_ms", "ms", ""},
    FactField{"longest_ms", "ms", ""},
    FactField{"share_pct", "%", "of the timeline, in which some tensor was negotiated"},
    FactField{"operations_ms", "ms", "of the operations themselves, mean"},
    FactField{"late_rank", "1", "that came last most often, by time waited for it"},
    FactField{"late_share_pct", "%", "of the negotiations, in which it came last"},
    FactField{"late_ms", "ms", "of those, mean"},
    FactField{"ranks_late", "{rank}", "ranks that came last at all"},
};
constexpr std::array kSchemas{FactSchema{"negotiations.summary", "Horovod's negotiations", kFields}};
constexpr std::array kSpans{SpanKind::kCollective};
constexpr std::size_t kRanksMax = 65'536;
constexpr std::size_t kNamesMax = 65'536;

class NegotiationsAnalyzer final : public Analyzer {
 public:
  explicit NegotiationsAnalyzer(const RunDescription& run) : run_(run) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      first_ns_ = std::min(first_ns_, span.start_ns);
      last_ns_ = std::max(last_ns_, span.start_ns + span.duration_ns);
      if (!is_negotiation(span.name)) {
        operations_.add(static_cast<double>(std::max<std::int64_t>(span.duration_ns, 1)));
        continue;
      }
      const auto ns = static_cast<double>(span.duration_ns);
      waits_.add(std::max(ns, 1.0));
      sum_ns_ += ns;
      longest_ns_ = std::max(longest_ns_, ns);
      // Spans come by start: what lies behind the end of all before is new.
      const std::int64_t end_ns = span.start_ns + span.duration_ns;
      covered_ns_ += std::max<std::int64_t>(end_ns - std::max(span.start_ns, covered_to_ns_), 0);
      covered_to_ns_ = std::max(covered_to_ns_, end_ns);
      if (span.value_a < 0 || (late_.size() >= kRanksMax && !late_.contains(span.value_a))) continue;
      late_[span.value_a].count += 1;
      late_[span.value_a].ns += ns;
    }
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const NegotiationsAnalyzer&>(other);
    // Timelines of several jobs do not add up; the longer one speaks.
    if (from.waits_.count() > waits_.count()) {
      waits_ = from.waits_, operations_ = from.operations_, late_ = from.late_;
      sum_ns_ = from.sum_ns_, longest_ns_ = from.longest_ns_, covered_ns_ = from.covered_ns_;
      first_ns_ = from.first_ns_, last_ns_ = from.last_ns_;
    }
  }

  void snapshot(FactTable& out) const override {
    if (waits_.count() == 0) return;
    const auto count = static_cast<double>(waits_.count());
    Fact fact{.kind = "negotiations.summary"};
    fact.set("count", count).set("mean_ms", sum_ns_ / count / 1e6).set("longest_ms", longest_ns_ / 1e6);
    if (const auto p95 = waits_.quantile(0.95)) fact.set("p95_ms", *p95 / 1e6);
    if (const auto median = operations_.quantile(0.5)) fact.set("operations_ms", *median / 1e6);
    if (last_ns_ > first_ns_) {
      fact.set("share_pct",
               std::min(100 * static_cast<double>(covered_ns_) / static_cast<double>(last_ns_ - first_ns_), 100.0));
    }
    const auto most = std::ranges::max_element(late_, {}, [](const auto& one) { return one.second.ns; });
    if (most != late_.end()) {
      fact.set("late_rank", static_cast<double>(most->first)).set("ranks_late", static_cast<double>(late_.size()));
      fact.set("late_share_pct", 100 * most->second.count / count)
          .set("late_ms", most->second.ns / most->second.count / 1e6);
    }
    out.add(std::move(fact));
  }

 private:
  struct Late {
    double count = 0;
    double ns = 0;
  };

  bool is_negotiation(std::uint32_t name) {
    if (const auto known = names_.find(name); known != names_.end()) return known->second;
    const bool is = run_.name_of && run_.name_of(name).find("NEGOTIATE_") != std::string::npos;
    if (names_.size() < kNamesMax) names_.emplace(name, is);
    return is;
  }

  const RunDescription& run_;
  std::map<std::uint32_t, bool> names_;
  LogHistogram waits_;
  LogHistogram operations_;
  std::map<std::int64_t, Late> late_;
  double sum_ns_ = 0;
  double longest_ns_ = 0;
  std::int64_t covered_ns_ = 0;
  std::int64_t covered_to_ns_ = INT64_MIN;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<NegotiationsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_negotiations{
    .id = "negotiations",
    .summary = "Horovod's negotiations: how long, and which rank came last.",
    .produces = kSchemas,
    .metrics = {},
    .spans = kSpans,
    .open = open};

}  // namespace hotlap
