// Kernels, as the device ran them.
#include "query/trace_rows.h"

namespace hotlap {
namespace {

constexpr std::array kOwn{
    ColumnDesc{"sort", ColumnType::kText, "by its name: 'matrix product', 'convolution', 'communication' … 'other'"},
    ColumnDesc{"type", ColumnType::kText, "that it computes in, by its name: 'fp32', 'bf16' …; NULL: not known"},
    ColumnDesc{"matrix_units", ColumnType::kInteger,
               "of matrix products, convolutions, attention: 1: runs on tensor or matrix cores; NULL: not known"},
    ColumnDesc{"arguments", ColumnType::kText, "that were kept (hotlap import --keep-args), a JSON object; NULL: none"},
};
constexpr auto kColumns = device_columns(kOwn);

class Rows final : public DeviceRows {
 public:
  Rows(QueriedRun& run, const RowFilter& filter) : DeviceRows(run, filter, {SpanKind::kKernel}, kColumns.size()) {}

 private:
  void on_span(const Span& span) override {
    if (span.kind != SpanKind::kKernel) return;
    const KernelTraits& traits = traits_of(span.name);
    Values own{std::string(to_string(traits.sort)), text_or_null(std::string(to_string(traits.type)))};
    own.push_back(traits.on_matrix_units ? ListedRows::Value(std::int64_t{*traits.on_matrix_units})
                                         : ListedRows::Value());
    own.push_back(text_or_null(span.detail == 0 ? std::string() : recording().reader->name(span.detail)));
    add(span, with_device(span, std::move(own)), place_of_work(span));
  }
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  return std::unique_ptr<RowSource>(new Rows(run, filter));
}

}  // namespace

extern constinit const TableSpec table_kernel{
    .name = "kernel",
    .help = "kernels as a device ran them, of imported traces, profiled windows and --observe kernels",
    .columns = kColumns,
    .open = open};

}  // namespace hotlap
