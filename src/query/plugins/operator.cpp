// Operators of the framework, as its profiler saw them on the host.
#include <unordered_map>

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
};
constexpr auto kColumns = trace_columns(kOwn);

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
    if (span.kind != SpanKind::kOperator && span.kind != SpanKind::kOptimizer) return;
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
    add(span, std::move(own), {span.process, span.start_ns});
  }

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
