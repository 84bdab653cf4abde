// Calls in which the host waits for the device, by the operator that makes them: .item(), .cpu(), nonzero().
#include <array>
#include <map>

#include "analysis/analyzer.h"
#include "analysis/trace_tables.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::size_t kCallersShown = 20;
constexpr std::size_t kThreadsMax = 4096;

constexpr std::array kSummaryFields{
    FactField{"calls", "{call}", "that waited for the device"},
    FactField{"total_ms", "ms", "their time"},
    FactField{"in_operators_ms", "ms", "of it inside operators: the program asked for a value"},
};
constexpr std::array kCallerFields{
    FactField{"name", "text", "the outermost operator around the call; empty: none"},
    FactField{"calls", "{call}", ""},
    FactField{"total_ms", "ms", ""},
};
constexpr std::array kSchemas{FactSchema{"sync.summary", "waits of the host for the device", kSummaryFields},
                              FactSchema{"sync.caller", "by operator; those that take most", kCallerFields}};
constexpr std::array kSpans{SpanKind::kRuntime, SpanKind::kOperator, SpanKind::kDataWait, SpanKind::kOptimizer};

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }

struct Row {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  bool empty() const { return calls == 0; }
  void add(const Row& other) {
    calls += other.calls;
    total_ns += other.total_ns;
  }
};

class HostSyncAnalyzer final : public Analyzer {
 public:
  explicit HostSyncAnalyzer(const RunDescription& run)
      : callers_(run.name_of), is_sync_(run.name_of, &names_synchronisation) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      if (span.kind != SpanKind::kRuntime) {
        NestingStack* const stack = stack_of(span);
        if (stack == nullptr) continue;
        stack->advance(span.start_ns, [](const NestingStack::Frame&) {});
        stack->push(span.name, span.start_ns, span.duration_ns);
        continue;
      }
      has_runtime_ = true;
      if (!is_sync_(span.name)) continue;
      NestingStack* const stack = stack_of(span);
      std::uint32_t caller = 0;
      if (stack != nullptr) {
        stack->advance(span.start_ns, [](const NestingStack::Frame&) {});
        if (!stack->frames().empty()) caller = stack->frames().front().name;
      }
      Row& row = callers_.at(caller);
      ++row.calls;
      row.total_ns += span.duration_ns;
    }
  }

  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const HostSyncAnalyzer&>(other);
    callers_.merge(that.callers_);
    has_runtime_ = has_runtime_ || that.has_runtime_;
  }

  void snapshot(FactTable& out) const override {
    if (!has_runtime_) return;
    Row sum;
    Row inside;
    for (const auto& [name, row] : callers_.all()) {
      sum.add(row);
      if (!name.empty()) inside.add(row);
    }
    Fact summary{.kind = "sync.summary"};
    summary.set("calls", static_cast<double>(sum.calls)).set("total_ms", ms(sum.total_ns));
    summary.set("in_operators_ms", ms(inside.total_ns));
    out.add(std::move(summary));
    for (const auto& [name, row] : callers_.top(kCallersShown, [](const Row& r) { return r.total_ns; })) {
      Fact fact{.kind = "sync.caller"};
      fact.set_text("name", name).set("calls", static_cast<double>(row.calls)).set("total_ms", ms(row.total_ns));
      out.add(std::move(fact));
    }
  }

 private:
  NestingStack* stack_of(const Span& span) {
    const auto key = std::pair(span.process, span.thread);
    auto found = threads_.find(key);
    if (found == threads_.end()) {
      if (threads_.size() >= kThreadsMax) return nullptr;
      found = threads_.emplace(key, NestingStack{}).first;
    }
    return &found->second;
  }

  NamedRows<Row> callers_;
  NameTest is_sync_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, NestingStack> threads_;
  bool has_runtime_ = false;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<HostSyncAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_host_sync{.id = "host_sync",
                                                       .summary = "Waits of the host for the device, by operator.",
                                                       .produces = kSchemas,
                                                       .metrics = {},
                                                       .spans = kSpans,
                                                       .open = open};

}  // namespace hotlap
