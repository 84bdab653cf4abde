// Operators of the framework, as its profiler saw them on the host.
#include <optional>
#include <unordered_map>

#include "analysis/operator_detail.h"
#include "base/json_writer.h"
#include "query/trace_rows.h"

namespace hotlap {
namespace {

constexpr std::array kOwn{
    ColumnDesc{"self_ms", ColumnType::kReal, "of duration_ms, without the operators it called"},
    ColumnDesc{"device_ms", ColumnType::kReal,
               "of the kernels and copies that it launched itself; NULL: not known, or nothing ran on a device"},
    ColumnDesc{"device_calls", ColumnType::kInteger, "how many these are"},
    ColumnDesc{"caller", ColumnType::kText, "the operator around it; NULL: none"},
    ColumnDesc{"operator_id", ColumnType::kInteger, "ties it to its kernels and copies; NULL: the trace has none"},
    ColumnDesc{"sequence", ColumnType::kInteger, "autograd's number: equal in a forward operator and its backward one"},
    ColumnDesc{"thread", ColumnType::kInteger, ""},
    ColumnDesc{"shapes", ColumnType::kText, "of its inputs, '[[64, 3], [3]]'; NULL here and below: the trace has none"},
    ColumnDesc{"types", ColumnType::kText, "of its inputs, a JSON list"},
    ColumnDesc{"stack", ColumnType::kText, "Python's, as the profiler has it"},
    ColumnDesc{"gflop", ColumnType::kReal,
               "billions of floating-point operations, computed from the shapes; NULL: of this operator not known"},
    ColumnDesc{"arguments", ColumnType::kText, "all that were kept (hotlap import --keep-args), a JSON object"},
};
constexpr auto kColumns = trace_columns(kOwn);

constexpr std::size_t kDetailsMax = 20'000;       // kept at once
constexpr std::size_t kOperatorsMax = 2'000'000;  // whose device time is added up, in memory

class Rows final : public TraceRows {
 public:
  Rows(QueriedRun& run, const RowFilter& filter)
      : TraceRows(run, filter, {SpanKind::kOperator, SpanKind::kOptimizer, SpanKind::kDataWait}, kColumns.size()) {}

 private:
  struct Open {
    Span span;
    std::int64_t end_ns;
    std::int64_t inside_ns = 0;
    std::uint32_t caller = 0;  // name
  };
  struct Device {
    std::int64_t ns = 0;
    std::int64_t calls = 0;
  };

  // Kernels run after the operator that launched them has ended: their time is added up before.
  Result<void> begin() override {
    threads_.clear();
    details_.clear();
    device_.clear();
    has_device_ = is_full_ = false;
    LaunchLinks links;
    return recording().reader->read_spans(std::array{SpanKind::kOperator, SpanKind::kOptimizer, SpanKind::kRuntime,
                                                     SpanKind::kKernel, SpanKind::kTransfer},
                                          {}, [&](std::span<const Span> spans) {
                                            for (const Span& span : spans) {
                                              if (span.kind != SpanKind::kKernel && span.kind != SpanKind::kTransfer) {
                                                links.add(span);
                                                continue;
                                              }
                                              has_device_ = true;
                                              const LaunchLinks::Operator* const by = links.operator_of(span);
                                              if (by == nullptr || by->id < 0 || span.duration_ns < 0) continue;
                                              auto found = device_.find(by->id);
                                              if (found == device_.end()) {
                                                is_full_ = device_.size() >= kOperatorsMax;
                                                if (is_full_) continue;
                                                found = device_.emplace(by->id, Device{}).first;
                                              }
                                              found->second.ns += span.duration_ns;
                                              ++found->second.calls;
                                            }
                                          });
  }

  void on_span(const Span& span) override {
    std::vector<Open>& open = threads_[{span.process, span.thread}];
    while (!open.empty() && open.back().end_ns <= span.start_ns) close(open);
    const std::int64_t end_ns = span.start_ns + std::max<std::int64_t>(span.duration_ns, 0);
    std::uint32_t caller = 0;
    if (!open.empty()) {
      open.back().inside_ns += std::min(end_ns, open.back().end_ns) - span.start_ns;
      caller = open.back().span.name;
    }
    if (open.size() < LaunchLinks::kDepthMax) {
      open.push_back({span, end_ns, 0, caller});
    } else {
      give({span, end_ns, 0, caller}, false);
    }
  }

  void end() override {
    for (auto& [thread, open] : threads_) {
      while (!open.empty()) close(open);
    }
  }

  void close(std::vector<Open>& open) {
    give(open.back(), true);
    open.pop_back();
  }

  void give(const Open& one, bool is_self_known) {
    const Span& span = one.span;
    // The hook's own record of an update has no name; it is in `span` and in `step`.
    if (span.kind != SpanKind::kOperator && (span.kind != SpanKind::kOptimizer || span.name == 0)) return;
    Values own;
    own.push_back(is_self_known && span.duration_ns >= 0
                      ? ListedRows::Value(ms_of_ns(std::max<std::int64_t>(0, span.duration_ns - one.inside_ns)))
                      : ListedRows::Value());
    const auto device = device_.find(span.value_a);
    if (span.value_a >= 0 && device != device_.end()) {
      own.emplace_back(ms_of_ns(device->second.ns));
      own.emplace_back(device->second.calls);
    } else if (has_device_ && !is_full_ && span.value_a >= 0) {
      own.emplace_back(0.0);
      own.emplace_back(std::int64_t{0});
    } else {
      own.emplace_back();
      own.emplace_back();
    }
    own.push_back(text_or_null(one.caller == 0 ? std::string() : recording().reader->name(one.caller)));
    own.push_back(known_or_null(span.value_a));
    own.push_back(known_or_null(span.value_b));
    own.emplace_back(std::int64_t{span.thread});
    const Detail& detail = detail_of(span);
    own.push_back(text_or_null(detail.shapes));
    own.push_back(text_or_null(detail.types));
    own.push_back(text_or_null(detail.stack));
    own.push_back(detail.gflop ? ListedRows::Value(*detail.gflop) : ListedRows::Value());
    own.push_back(text_or_null(detail.arguments));
    add(span, std::move(own), {span.process, span.start_ns});
  }

  // Of one name and its arguments: few, and met again and again.
  struct Detail {
    std::string shapes;
    std::string types;
    std::string stack;
    std::optional<double> gflop;
    std::string arguments;
  };

  const Detail& detail_of(const Span& span) {
    static const Detail kNone{};
    if (span.detail == 0) return kNone;
    const auto key = std::pair(span.name, span.detail);
    if (const auto found = details_.find(key); found != details_.end()) return found->second;
    if (details_.size() >= kDetailsMax) details_.clear();
    const std::string text = recording().reader->name(span.detail);
    const OperatorDetail parsed = parse_operator_detail(text);
    Detail detail{.shapes = parsed.shapes_text, .types = {}, .stack = parsed.stack, .gflop = {}, .arguments = text};
    if (!parsed.types.empty()) {
      JsonWriter types;
      types.begin_array();
      for (const std::string& type : parsed.types) types.value(std::string_view(type));
      types.end_array();
      detail.types = types.take();
    }
    if (const auto flops = flops_of(recording().reader->name(span.name), parsed)) detail.gflop = *flops / 1e9;
    return details_.emplace(key, std::move(detail)).first->second;
  }

  std::map<std::pair<std::uint32_t, std::uint32_t>, Detail> details_;  // by name and arguments
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Open>> threads_;
  std::unordered_map<std::int64_t, Device> device_;  // by operator's id
  bool has_device_ = false;
  bool is_full_ = false;
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  return std::unique_ptr<RowSource>(new Rows(run, filter));
}

}  // namespace

extern constinit const TableSpec table_operator{
    .name = "operator",
    .help = "operators of the framework, of imported traces and profiled windows; in the order in which they end",
    .columns = kColumns,
    .open = open};

}  // namespace hotlap
