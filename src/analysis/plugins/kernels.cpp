// Kernels and copies of a trace: device time as the union per stream, so that it is never above the wall.
#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "analysis/analyzer.h"
#include "analysis/kernel_names.h"
#include "analysis/log_histogram.h"
#include "analysis/trace_tables.h"
#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::size_t kKernelsMax = 2000;  // rows; answers show fewer
constexpr std::size_t kStreamsMax = 4096;
constexpr std::int64_t kShortNs = 10'000;  // about what launching one costs the host

constexpr std::array kSummaryFields{
    FactField{"calls", "{kernel}", "kernels that ran"},
    FactField{"kernels", "{kernel}", "different ones"},
    FactField{"total_ms", "ms", "their time, per stream without what overlaps"},
    FactField{"median_us", "us", "of one"},
    FactField{"short_pct", "%", "of them that ran less than 10 us"},
};
constexpr std::array kKernelFields{
    FactField{"name", "text", ""},
    FactField{"calls", "{kernel}", ""},
    FactField{"total_ms", "ms", "per stream without what overlaps"},
    FactField{"share_pct", "%", "of the time of all kernels"},
    FactField{"mean_us", "us", ""},
    FactField{"min_us", "us", ""},
    FactField{"max_us", "us", ""},
    FactField{"sort", "text", "of work, by its name"},
    FactField{"type", "text", "that it computes in, by its name; absent: not known"},
    FactField{"matrix_units", "1", "of matrix work: 1: on tensor or matrix cores, by its name; absent: not known"},
};
constexpr std::array kCopyFields{
    FactField{"name", "text", "direction and kinds of memory, as the trace names them"},
    FactField{"calls", "{copy}", ""},
    FactField{"total_ms", "ms", ""},
    FactField{"bytes", "By", ""},
    FactField{"bytes_per_s", "By/s", ""},
    FactField{"direction", "text", "host to device, device to host, device to device, fill; absent: not known"},
    FactField{"pageable", "1", "1: from or to host memory that is not pinned; absent: not known, or no host memory"},
};
constexpr std::array kSortFields{
    FactField{"name", "text", "matrix product, convolution, communication …, by the kernels' names"},
    FactField{"calls", "{kernel}", ""},
    FactField{"total_ms", "ms", "per stream without what overlaps"},
    FactField{"share_pct", "%", "of the time of all kernels"},
};
constexpr std::array kMatrixFields{
    FactField{"total_ms", "ms", "kernels of matrix products, convolutions and attention"},
    FactField{"share_pct", "%", "of the time of all kernels"},
    FactField{"on_units_ms", "ms", "of it on tensor or matrix cores, by the kernels' names"},
    FactField{"off_units_ms", "ms", "of it not on them"},
    FactField{"unknown_ms", "ms", "of it: the names do not tell"},
    FactField{"fp32_off_units_ms", "ms", "of it in fp32 and not on them: what a narrower type would put there"},
    FactField{"types", "text", "types that it computes in and their time, most first"},
    FactField{"generation", "text", "of the GPU, by the kernels' names; absent: not known"},
};
constexpr std::array kSchemas{
    FactSchema{"kernels.summary", "kernels of a trace together", kSummaryFields},
    FactSchema{"kernels.kernel", "one kernel; those that take most", kKernelFields},
    FactSchema{"kernels.sort", "kernels of one sort of work together", kSortFields},
    FactSchema{"kernels.matrix", "matrix work, and whether it is where it is fast", kMatrixFields},
    FactSchema{"copies.copy", "copies and fills of one sort", kCopyFields}};
constexpr std::array kSpans{SpanKind::kKernel, SpanKind::kTransfer};

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }
double us(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerUs); }

struct Row {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;  // clipped
  std::int64_t sum_ns = 0;
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = 0;
  std::int64_t bytes = 0;
  std::uint64_t with_bytes = 0;
  bool empty() const { return calls == 0; }
  void add(const Row& other) {
    calls += other.calls;
    total_ns += other.total_ns;
    sum_ns += other.sum_ns;
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
    bytes += other.bytes;
    with_bytes += other.with_bytes;
  }
};

class KernelsAnalyzer final : public Analyzer {
 public:
  explicit KernelsAnalyzer(const RunDescription& run) : kernels_(run.name_of), copies_(run.name_of) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      const bool is_kernel = span.kind == SpanKind::kKernel;
      Row& row = (is_kernel ? kernels_ : copies_).at(span.name);
      ++row.calls;
      row.total_ns += clipped(span);
      row.sum_ns += span.duration_ns;
      row.min_ns = std::min(row.min_ns, span.duration_ns);
      row.max_ns = std::max(row.max_ns, span.duration_ns);
      if (!is_kernel && span.value_b >= 0) {
        row.bytes += span.value_b;
        ++row.with_bytes;
      }
      if (is_kernel) {
        durations_ns_.add(static_cast<double>(span.duration_ns));
        if (span.duration_ns < kShortNs) ++short_;
      }
    }
  }

  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const KernelsAnalyzer&>(other);
    kernels_.merge(that.kernels_);
    copies_.merge(that.copies_);
    durations_ns_.merge(that.durations_ns_);
    short_ += that.short_;
  }

  void snapshot(FactTable& out) const override {
    add_kernels(out);
    for (const auto& [name, row] : copies_.top(kKernelsMax, [](const Row& r) { return r.total_ns; })) {
      Fact fact{.kind = "copies.copy"};
      fact.set_text("name", name).set("calls", static_cast<double>(row.calls)).set("total_ms", ms(row.total_ns));
      if (row.with_bytes == row.calls) {
        fact.set("bytes", static_cast<double>(row.bytes));
        if (row.sum_ns > 0) {
          fact.set("bytes_per_s",
                   static_cast<double>(row.bytes) * static_cast<double>(kNsPerS) / static_cast<double>(row.sum_ns));
        }
      }
      const CopyTraits traits = traits_of_copy(name);
      if (!traits.direction.empty()) fact.set_text("direction", std::string(traits.direction));
      if (traits.is_pageable) fact.set("pageable", *traits.is_pageable ? 1 : 0);
      out.add(std::move(fact));
    }
  }

 private:
  void add_kernels(FactTable& out) const {
    Row sum;
    const auto all = kernels_.all();
    for (const auto& [name, row] : all) sum.add(row);
    if (sum.calls == 0) return;
    Fact summary{.kind = "kernels.summary"};
    summary.set("calls", static_cast<double>(sum.calls)).set("kernels", static_cast<double>(all.size()));
    summary.set("total_ms", ms(sum.total_ns));
    if (const auto median = durations_ns_.quantile(0.5))
      summary.set("median_us", *median / static_cast<double>(kNsPerUs));
    summary.set("short_pct", 100 * static_cast<double>(short_) / static_cast<double>(sum.calls));
    out.add(std::move(summary));
    for (const auto& [name, row] : kernels_.top(kKernelsMax, [](const Row& r) { return r.total_ns; })) {
      Fact fact{.kind = "kernels.kernel"};
      fact.set_text("name", name).set("calls", static_cast<double>(row.calls)).set("total_ms", ms(row.total_ns));
      if (sum.total_ns > 0) {
        fact.set("share_pct", 100 * static_cast<double>(row.total_ns) / static_cast<double>(sum.total_ns));
      }
      fact.set("mean_us", us(row.sum_ns) / static_cast<double>(row.calls));
      fact.set("min_us", us(row.min_ns)).set("max_us", us(row.max_ns));
      const KernelTraits traits = traits_of_kernel(name);
      fact.set_text("sort", std::string(to_string(traits.sort)));
      if (traits.type != KernelType::kUnknown) fact.set_text("type", std::string(to_string(traits.type)));
      if (traits.on_matrix_units) fact.set("matrix_units", *traits.on_matrix_units ? 1 : 0);
      out.add(std::move(fact));
    }
    add_sorts(all, sum.total_ns, out);
  }

  static void add_sorts(const std::map<std::string, Row>& kernels, std::int64_t total_ns, FactTable& out) {
    std::array<Row, kKernelSortCount> sorts;
    std::array<std::int64_t, kKernelTypeCount> types_ns{};
    std::int64_t on_ns = 0;
    std::int64_t off_ns = 0;
    std::int64_t matrix_ns = 0;
    std::int64_t fp32_off_ns = 0;
    GpuGeneration generation = GpuGeneration::kUnknown;
    for (const auto& [name, row] : kernels) {
      const KernelTraits traits = traits_of_kernel(name);
      sorts[static_cast<std::size_t>(traits.sort)].add(row);
      generation = std::max(generation, generation_of_kernel(name));
      if (!is_matrix_work(traits.sort)) continue;
      matrix_ns += row.total_ns;
      types_ns[static_cast<std::size_t>(traits.type)] += row.total_ns;
      if (traits.on_matrix_units == true) on_ns += row.total_ns;
      if (traits.on_matrix_units == false) off_ns += row.total_ns;
      if (traits.on_matrix_units == false && traits.type == KernelType::kFp32) fp32_off_ns += row.total_ns;
    }
    const auto share = [&](std::int64_t ns) {
      return total_ns > 0 ? std::optional(100 * static_cast<double>(ns) / static_cast<double>(total_ns)) : std::nullopt;
    };
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < sorts.size(); ++i) {
      if (!sorts[i].empty()) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return sorts[i].total_ns; });
    for (const std::size_t i : order) {
      Fact fact{.kind = "kernels.sort"};
      fact.set_text("name", std::string(to_string(static_cast<KernelSort>(i))));
      fact.set("calls", static_cast<double>(sorts[i].calls)).set("total_ms", ms(sorts[i].total_ns));
      out.add(std::move(fact.set("share_pct", share(sorts[i].total_ns))));
    }
    if (matrix_ns == 0) return;
    Fact fact{.kind = "kernels.matrix"};
    fact.set("total_ms", ms(matrix_ns)).set("share_pct", share(matrix_ns)).set("on_units_ms", ms(on_ns));
    fact.set("off_units_ms", ms(off_ns)).set("unknown_ms", ms(matrix_ns - on_ns - off_ns));
    fact.set("fp32_off_units_ms", ms(fp32_off_ns));
    if (generation != GpuGeneration::kUnknown) fact.set_text("generation", std::string(to_string(generation)));
    fact.set_text("types", types_words(types_ns));
    out.add(std::move(fact));
  }

  // "fp32 62.0 ms, fp16 3.1 ms"
  static std::string types_words(const std::array<std::int64_t, kKernelTypeCount>& types_ns) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < types_ns.size(); ++i) {
      if (types_ns[i] > 0) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return types_ns[i]; });
    std::string words;
    for (const std::size_t i : order) {
      const std::string_view type = to_string(static_cast<KernelType>(i));
      words += format("{}{} {:.1f} ms", words.empty() ? "" : ", ", type.empty() ? "not known" : type, ms(types_ns[i]));
    }
    return words;
  }

  // The part of it that nothing before it on its stream has covered.
  std::int64_t clipped(const Span& span) {
    const auto key = std::pair(span.process, span.thread);
    auto found = stream_end_ns_.find(key);
    if (found == stream_end_ns_.end()) {
      if (stream_end_ns_.size() >= kStreamsMax) return 0;
      found = stream_end_ns_.emplace(key, INT64_MIN).first;
    }
    const std::int64_t end_ns = span.start_ns + span.duration_ns;
    const std::int64_t from_ns = std::max(span.start_ns, found->second);
    found->second = std::max(found->second, end_ns);
    return std::max<std::int64_t>(0, end_ns - from_ns);
  }

  NamedRows<Row> kernels_;
  NamedRows<Row> copies_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> stream_end_ns_;
  LogHistogram durations_ns_;
  std::uint64_t short_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<KernelsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_kernels{.id = "kernels",
                                                     .summary = "What kernels and copies of a trace cost.",
                                                     .produces = kSchemas,
                                                     .metrics = {},
                                                     .spans = kSpans,
                                                     .version = 2,
                                                     .open = open};

}  // namespace hotlap
