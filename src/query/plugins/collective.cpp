// Collective communication: calls that the hook or a timeline saw on the host, kernels that a device ran, and
// operations that NCCL told a plugin of.
#include <algorithm>

#include "analysis/operator_detail.h"
#include "query/trace_rows.h"

namespace hotlap {
namespace {

constexpr std::array kOwn{
    ColumnDesc{"side", ColumnType::kText,
               "'host': the call; 'device': the kernel; 'nccl': as NCCL told it to --observe nccl"},
    ColumnDesc{"collective", ColumnType::kText, "'allreduce' …; NULL here and below: the trace does not say"},
    ColumnDesc{"process_group", ColumnType::kText, "as the program numbers or calls it"},
    ColumnDesc{"group_description", ColumnType::kText, ""},
    ColumnDesc{"group_size", ColumnType::kInteger, "ranks in it"},
    ColumnDesc{"group_ranks", ColumnType::kText, "'[0, 1]'"},
    ColumnDesc{"sequence", ColumnType::kInteger, "number within the group: the same on every rank"},
    ColumnDesc{"dtype", ColumnType::kText, "'BFloat16' …"},
    ColumnDesc{"in_elements", ColumnType::kInteger, "that the rank handed in"},
    ColumnDesc{"out_elements", ColumnType::kInteger, "that it got"},
    ColumnDesc{"bytes", ColumnType::kInteger, "that the rank handed in; NULL: not known"},
    ColumnDesc{"exposed_ms", ColumnType::kReal,
               "of a kernel: while nothing else was computed on the device; NULL: not known"},
};
constexpr auto kColumns = device_columns(kOwn);

class Rows final : public DeviceRows {
 public:
  Rows(QueriedRun& run, const RowFilter& filter)
      : DeviceRows(run, filter, {SpanKind::kKernel, SpanKind::kCollective, SpanKind::kUser}, kColumns.size()) {}

 private:
  // A collective on a device goes on, and what was computed meanwhile is counted.
  struct Open {
    Span span;
    Values device;
    CollectiveDetail told;
    Place place;
    std::int64_t hidden_to_ns;
    std::int64_t hidden_ns = 0;
  };
  struct Device {
    std::int64_t computed_to_ns = INT64_MIN;
    std::vector<Open> open;
  };

  Result<void> begin() override {
    devices_.clear();
    return {};
  }

  void on_span(const Span& span) override {
    if (span.kind == SpanKind::kCollective) return add_of_host(span, "host");
    if (span.kind == SpanKind::kUser) {
      if (recording().reader->name(span.name).starts_with("nccl:")) add_of_host(span, "nccl");
      return;
    }
    if (span.kind != SpanKind::kKernel || span.duration_ns < 0) return;
    Device& device = devices_[span.process];
    const std::int64_t end_ns = span.start_ns + span.duration_ns;
    give_ended(device, span.start_ns);
    if (traits_of(span.name).sort == KernelSort::kCommunication) {
      Open open{span, with_device(span, {}), told_of(span), place_of_work(span), span.start_ns};
      hide(open, span.start_ns, device.computed_to_ns);
      device.open.push_back(std::move(open));
      return;
    }
    for (Open& open : device.open) hide(open, span.start_ns, end_ns);
    device.computed_to_ns = std::max(device.computed_to_ns, end_ns);
  }

  void end() override {
    for (auto& [process, device] : devices_) give_ended(device, INT64_MAX);
  }

  // What is told from the host's side, without any of the device's figures.
  void add_of_host(const Span& span, std::string side) {
    Values own{std::move(side)};
    add_told({}, own);
    own.push_back(known_or_null(span.value_a));
    own.emplace_back();
    own.resize(own.size() + kDeviceWork.size());
    add(span, std::move(own), {span.process, span.start_ns});
  }

  // The kernel's own arguments, else those of the operator that launched it (record_param_comms).
  CollectiveDetail told_of(const Span& kernel) const {
    std::uint32_t detail = kernel.detail;
    if (detail == 0) {
      if (const LaunchLinks::Operator* const by = links().operator_of(kernel)) detail = by->detail;
    }
    return detail == 0 ? CollectiveDetail() : parse_collective_detail(recording().reader->name(detail));
  }

  static void add_told(const CollectiveDetail& told, Values& own) {
    own.push_back(text_or_null(told.name));
    own.push_back(text_or_null(told.process_group));
    own.push_back(text_or_null(told.description));
    own.push_back(known_or_null(told.group_size));
    own.push_back(text_or_null(told.ranks));
    own.push_back(known_or_null(told.sequence));
    own.push_back(text_or_null(told.dtype));
    own.push_back(known_or_null(told.in_elements));
    own.push_back(known_or_null(told.out_elements));
  }

  static void hide(Open& open, std::int64_t from_ns, std::int64_t to_ns) {
    from_ns = std::max(from_ns, open.hidden_to_ns);
    to_ns = std::min(to_ns, open.span.start_ns + open.span.duration_ns);
    if (to_ns <= from_ns) return;
    open.hidden_ns += to_ns - from_ns;
    open.hidden_to_ns = to_ns;
  }

  void give_ended(Device& device, std::int64_t now_ns) {
    std::erase_if(device.open, [&](Open& open) {
      if (open.span.start_ns + open.span.duration_ns > now_ns) return false;
      Values own{std::string("device")};
      add_told(open.told, own);
      own.push_back(known_or_null(open.told.bytes()));
      own.emplace_back(ms_of_ns(open.span.duration_ns - open.hidden_ns));
      std::ranges::move(open.device, std::back_inserter(own));
      add(open.span, std::move(own), open.place);
      return true;
    });
  }

  std::map<std::uint32_t, Device> devices_;
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  return std::unique_ptr<RowSource>(new Rows(run, filter));
}

}  // namespace

extern constinit const TableSpec table_collective{
    .name = "collective",
    .help = "collective communication: calls on the host, and kernels as a device ran them",
    .columns = kColumns,
    .open = open};

}  // namespace hotlap
