// Operators of a trace: how often, how long with and without what they call, and what they had the device do.
#include <array>
#include <map>

#include "analysis/analyzer.h"
#include "analysis/detailed_operators.h"
#include "analysis/kernel_names.h"
#include "analysis/launch_links.h"
#include "analysis/trace_tables.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::size_t kOperatorsMax = 2000;  // rows; answers show fewer
constexpr std::size_t kThreadsMax = 4096;

constexpr std::array kSummaryFields{
    FactField{"calls", "{call}", "all calls of operators"},
    FactField{"operators", "{operator}", "different ones"},
    FactField{"self_ms", "ms", "time of all of them on the CPU"},
    FactField{"device_ms", "ms", "time of the kernels and copies that they launched"},
};
constexpr std::array kOperatorFields{
    FactField{"name", "text", ""},
    FactField{"calls", "{call}", ""},
    FactField{"total_ms", "ms", "on the CPU, with what it calls; of a call inside itself the outer one counts"},
    FactField{"self_ms", "ms", "without what it calls"},
    FactField{"self_pct", "%", "of the time of all operators"},
    FactField{"device_ms", "ms", "kernels and copies that it launched itself"},
    FactField{"device_calls", "{kernel}", "how many"},
};
constexpr std::array kSchemas{
    FactSchema{"operators.summary", "operators of a trace together", kSummaryFields},
    FactSchema{"operators.operator", "one operator; those that take most", kOperatorFields},
    FactSchema{"operators.shape", "one operator with one set of shapes", kOperatorShapeFields},
    FactSchema{"operators.stack", "one operator with one call stack", kOperatorStackFields},
    FactSchema{"operators.flops", "what was computed, by type", kOperatorFlopsFields}};
constexpr std::array kSpans{SpanKind::kOperator, SpanKind::kDataWait, SpanKind::kOptimizer,
                            SpanKind::kKernel,   SpanKind::kTransfer, SpanKind::kRuntime};

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }

using Row = OperatorRow;

// The model of the GPUs, as the trace has it; empty: unknown, or they differ.
std::string device_model(const RunDescription& run) {
  std::string model;
  if (run.recording == nullptr) return model;
  for (const auto& [key, text] : run.recording->attributes) {
    if (!key.starts_with("gpu") || !key.ends_with(".name")) continue;
    if (!model.empty() && model != text) return {};
    model = text;
  }
  return model;
}

class OperatorsAnalyzer final : public Analyzer {
 public:
  explicit OperatorsAnalyzer(const RunDescription& run)
      : rows_(run.name_of), detailed_(run.name_of, device_model(run)), is_tf32_(run.name_of, [](std::string_view name) {
          const KernelTraits traits = traits_of_kernel(name);
          return is_matrix_work(traits.sort) && traits.type == KernelType::kTf32;
        }) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      switch (span.kind) {
        case SpanKind::kKernel:
        case SpanKind::kTransfer: on_device(span); break;
        case SpanKind::kRuntime: links_.add(span); break;
        case SpanKind::kOperator: has_operators_ = true; [[fallthrough]];
        default: on_operator(span); break;
      }
    }
  }

  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const OperatorsAnalyzer&>(other);
    Tables closed{that.rows_, that.detailed_};
    that.close(closed);
    rows_.merge(closed.rows);
    detailed_.merge(closed.detailed);
    has_operators_ |= that.has_operators_;
  }

  void snapshot(FactTable& out) const override {
    if (!has_operators_) return;  // the hook's waits and optimizer steps alone are no look inside the step
    Tables closed{rows_, detailed_};
    close(closed);
    Row sum;
    const auto all = closed.rows.all();
    for (const auto& [name, row] : all) sum.add(row);
    if (sum.calls == 0) return;
    Fact summary{.kind = "operators.summary"};
    summary.set("calls", static_cast<double>(sum.calls)).set("operators", static_cast<double>(all.size()));
    summary.set("self_ms", ms(sum.self_ns));
    if (sum.device_calls > 0) summary.set("device_ms", ms(sum.device_ns));
    out.add(std::move(summary));
    // By what they take of either: an operator that costs the CPU little may cost the device much.
    const auto weight = [](const Row& row) { return std::max(row.self_ns, row.device_ns); };
    for (const auto& [name, row] : closed.rows.top(kOperatorsMax, weight)) {
      Fact fact{.kind = "operators.operator"};
      fact.set_text("name", name).set("calls", static_cast<double>(row.calls));
      fact.set("total_ms", ms(row.total_ns)).set("self_ms", ms(row.self_ns));
      if (sum.self_ns > 0)
        fact.set("self_pct", 100 * static_cast<double>(row.self_ns) / static_cast<double>(sum.self_ns));
      if (sum.device_calls > 0) {
        fact.set("device_ms", ms(row.device_ns)).set("device_calls", static_cast<double>(row.device_calls));
      }
      out.add(std::move(fact));
    }
    closed.detailed.snapshot(out);
  }

 private:
  struct Tables {
    NamedRows<Row> rows;
    DetailedOperators detailed;
  };

  void on_operator(const Span& span) {
    if (span.duration_ns < 0) return;
    links_.add(span);
    const auto key = std::pair(span.process, span.thread);
    auto found = threads_.find(key);
    if (found == threads_.end()) {
      if (threads_.size() >= kThreadsMax) return;
      found = threads_.emplace(key, NestingStack{}).first;
    }
    NestingStack& stack = found->second;
    stack.advance(span.start_ns, [this](const NestingStack::Frame& frame) { done(frame, rows_, detailed_); });
    Row& row = rows_.at(span.name);
    ++row.calls;
    const bool is_outermost = !stack.holds(span.name);
    if (is_outermost) row.total_ns += span.duration_ns;
    if (Row* const detailed = detailed_.at(span.name, span.detail)) {
      ++detailed->calls;
      if (is_outermost) detailed->total_ns += span.duration_ns;
    }
    stack.push(span.name, span.start_ns, span.duration_ns, span.detail);
  }

  void on_device(const Span& span) {
    if (span.duration_ns < 0) return;
    const LaunchLinks::Operator* const by = links_.operator_of(span);
    if (by == nullptr) return;
    Row& row = rows_.at(by->name);
    row.device_ns += span.duration_ns;
    ++row.device_calls;
    if (Row* const detailed = detailed_.at(by->name, by->detail)) {
      detailed->device_ns += span.duration_ns;
      ++detailed->device_calls;
      if (span.kind == SpanKind::kKernel && is_tf32_(span.name)) detailed_.set_tf32();
    }
  }

  static void done(const NestingStack::Frame& frame, NamedRows<Row>& rows, DetailedOperators& detailed) {
    const std::int64_t self_ns = std::max<std::int64_t>(0, frame.duration_ns - frame.inside_ns);
    rows.at(frame.name).self_ns += self_ns;
    if (Row* const row = detailed.at(frame.name, frame.detail)) row->self_ns += self_ns;
  }
  // What has not ended yet counts as far as it is known.
  void close(Tables& tables) const {
    for (const auto& [key, stack] : threads_) {
      for (const NestingStack::Frame& frame : stack.frames()) done(frame, tables.rows, tables.detailed);
    }
  }

  NamedRows<Row> rows_;
  DetailedOperators detailed_;
  NameTest is_tf32_;
  bool has_operators_ = false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, NestingStack> threads_;
  LaunchLinks links_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<OperatorsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_operators{.id = "operators",
                                                       .summary = "What operators of a trace cost.",
                                                       .produces = kSchemas,
                                                       .metrics = {},
                                                       .spans = kSpans,
                                                       .open = open};

}  // namespace hotlap
