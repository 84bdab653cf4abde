// Whether a trace that shows calls which start work on a device shows that work, too.
#include <array>

#include "analysis/analyzer.h"
#include "analysis/trace_tables.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"launches", "{call}", "that start a kernel or a graph of them"},
    FactField{"kernels", "{kernel}", "that the trace shows"},
};
constexpr std::array kSchemas{FactSchema{"device.work", "launches of a trace, and what they launched", kFields}};
constexpr std::array kSpans{SpanKind::kRuntime, SpanKind::kKernel};

// cudaLaunchKernel, cuLaunchKernelEx, cudaGraphLaunch, hipExtModuleLaunchKernel, musaLaunchKernel …
bool starts_kernels(std::string_view call) {
  return call.find("LaunchKernel") != std::string_view::npos || call.find("GraphLaunch") != std::string_view::npos ||
         call.find("LaunchCooperativeKernel") != std::string_view::npos;
}

class DeviceWorkAnalyzer final : public Analyzer {
 public:
  explicit DeviceWorkAnalyzer(const RunDescription& run) : is_launch_(run.name_of, &starts_kernels) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.kind == SpanKind::kKernel) {
        ++kernels_;
      } else if (is_launch_(span.name)) {
        ++launches_;
      }
    }
  }

  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const DeviceWorkAnalyzer&>(other);
    launches_ += that.launches_;
    kernels_ += that.kernels_;
  }

  void snapshot(FactTable& out) const override {
    if (launches_ == 0) return;
    Fact fact{.kind = "device.work"};
    fact.set("launches", static_cast<double>(launches_)).set("kernels", static_cast<double>(kernels_));
    out.add(std::move(fact));
  }

 private:
  NameTest is_launch_;
  std::uint64_t launches_ = 0;
  std::uint64_t kernels_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<DeviceWorkAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_device_work{
    .id = "device_work",
    .summary = "Whether a trace shows what its calls launched on a device.",
    .produces = kSchemas,
    .metrics = {},
    .spans = kSpans,
    .open = open};

}  // namespace hotlap
