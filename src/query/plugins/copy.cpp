// Copies between host and devices, and fills of device memory.
#include "analysis/kernel_names.h"
#include "query/trace_rows.h"

namespace hotlap {
namespace {

constexpr std::array kOwn{
    ColumnDesc{"direction", ColumnType::kText,
               "'host to device', 'device to host', 'device to device', 'fill'; NULL: not known"},
    ColumnDesc{"bytes", ColumnType::kInteger, "NULL: not known"},
    ColumnDesc{"pinned", ColumnType::kInteger,
               "1: host memory was page-locked; 0: pageable; NULL: not known, or no host memory"},
};
constexpr auto kColumns = device_columns(kOwn);

class Rows final : public DeviceRows {
 public:
  Rows(QueriedRun& run, const RowFilter& filter) : DeviceRows(run, filter, {SpanKind::kTransfer}, kColumns.size()) {}

 private:
  void on_span(const Span& span) override {
    if (span.kind != SpanKind::kTransfer) return;
    const CopyTraits traits = traits_of_copy(recording().reader->name(span.name));
    Values own{text_or_null(std::string(traits.direction)), known_or_null(span.value_b)};
    own.push_back(traits.is_pageable ? ListedRows::Value(std::int64_t{!*traits.is_pageable}) : ListedRows::Value());
    add(span, with_device(span, std::move(own)), place_of_work(span));
  }
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  return std::unique_ptr<RowSource>(new Rows(run, filter));
}

}  // namespace

extern constinit const TableSpec table_copy{
    .name = "copy",
    .help =
        "copies and fills of memory as a device ran them, of imported traces, profiled windows and --observe "
        "kernels",
    .columns = kColumns,
    .open = open};

}  // namespace hotlap
