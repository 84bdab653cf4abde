// What a trace would take if something were free, and what lies on its critical path: by running its recorded
// dependencies again.
#include <algorithm>
#include <array>
#include <functional>

#include "analysis/analyzer.h"
#include "analysis/trace_replay.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kScenarioFields{
    FactField{"free", "text",
              "what takes no time in it: nothing, waits (of the host for the device), dispatch (operators and launches "
              "on the host), host code (outside of operators), data, copies, communication, matrix type (fp32 matrix "
              "work outside of tensor cores takes a third)"},
    FactField{"wall_ms", "ms", "of the trace as recorded"},
    FactField{"replayed_ms", "ms", "of the replay"},
    FactField{"saved_pct", "%", "less than the replay in which nothing is free; the limit of what can be won"},
};
constexpr std::array kPathFields{
    FactField{"name", "text", "a sort of kernel, or what the host or a launch did"},
    FactField{"total_ms", "ms", "on the chain of host code, launches and work that determined the end"},
    FactField{"share_pct", "%", "of the wall"},
};
constexpr std::array kSchemas{
    FactSchema{"replay.scenario", "the trace again, with one thing taken away", kScenarioFields},
    FactSchema{"path.part", "what lies on the critical path of a trace, by what it is", kPathFields}};
constexpr std::array kSpans{SpanKind::kKernel,   SpanKind::kTransfer,  SpanKind::kRuntime,     SpanKind::kOperator,
                            SpanKind::kDataWait, SpanKind::kOptimizer, SpanKind::kDeviceWindow};

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }

class ReplayAnalyzer final : public Analyzer {
 public:
  explicit ReplayAnalyzer(const RunDescription& run) : replay_(run.name_of) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      has_windows_ |= span.kind == SpanKind::kDeviceWindow;
      if (!has_windows_) replay_.add(span);
    }
  }

  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const ReplayAnalyzer&>(other);
    has_windows_ |= that.has_windows_;
    results_.push_back(that.replay_.result());
    results_.insert(results_.end(), that.results_.begin(), that.results_.end());
  }

  // Ranks that were traced apart go on side by side: the one that takes longest speaks.
  void snapshot(FactTable& out) const override {
    if (has_windows_) return;  // between them nothing is known of the device
    TraceReplay::Result longest = replay_.result();
    for (const TraceReplay::Result& result : results_) {
      if (result.has_device && (!longest.has_device || result.wall_ns > longest.wall_ns)) longest = result;
    }
    if (!longest.has_device || longest.wall_ns <= 0) return;
    const double nothing_ms = ms(longest.replayed_ns[static_cast<std::size_t>(Freed::kNothing)]);
    for (std::size_t i = 0; i < kFreedCount; ++i) {
      Fact fact{.kind = "replay.scenario"};
      const double replayed_ms = ms(longest.replayed_ns[i]);
      fact.set_text("free", std::string(to_string(static_cast<Freed>(i)))).set("wall_ms", ms(longest.wall_ns));
      fact.set("replayed_ms", replayed_ms);
      if (nothing_ms > 0) fact.set("saved_pct", std::max(0.0, 100 * (1 - replayed_ms / nothing_ms)));
      out.add(std::move(fact));
    }
    std::vector<std::pair<std::int64_t, std::size_t>> parts;
    for (std::size_t part = 0; part < kPathPartCount; ++part) {
      if (longest.path[part] > 0) parts.emplace_back(longest.path[part], part);
    }
    std::ranges::sort(parts, std::greater<>());
    for (const auto& [ns, part] : parts) {
      Fact fact{.kind = "path.part"};
      fact.set_text("name", std::string(name_of_part(part))).set("total_ms", ms(ns));
      fact.set("share_pct", 100 * ms(ns) / ms(longest.wall_ns));
      out.add(std::move(fact));
    }
  }

 private:
  TraceReplay replay_;
  bool has_windows_ = false;
  std::vector<TraceReplay::Result> results_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ReplayAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_replay{
    .id = "replay",
    .summary = "What a trace would take if something were free, and its critical path.",
    .produces = kSchemas,
    .metrics = {},
    .spans = kSpans,
    .open = open};

}  // namespace hotlap
