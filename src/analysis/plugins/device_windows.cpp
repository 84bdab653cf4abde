// How much of the time devices were watched by the observer of kernels: what is said of kernels and devices is of that
// time.
#include <array>
#include <map>
#include <string>
#include <utility>

#include "analysis/analyzer.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::size_t kDevicesMax = 256;

constexpr std::array kFields{
    FactField{"windows", "{window}", "of all devices"},
    FactField{"devices", "{device}", "that were watched"},
    FactField{"seen_ms", "ms", "that one of them was watched, on average"},
    FactField{"lost", "{record}", "of work in them that could not be kept"},
};
constexpr std::array kSchemas{FactSchema{"device.windows", "windows in which work on devices was watched", kFields}};
constexpr std::array kSpans{SpanKind::kDeviceWindow};

class DeviceWindowsAnalyzer final : public Analyzer {
 public:
  explicit DeviceWindowsAnalyzer(const RunDescription& run)
      : node_(run.recording == nullptr ? std::string() : run.recording->node) {
    on_processes(run.processes);
  }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) labels_[process.slot] = slot_label(process);
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      const auto label = labels_.find(span.process);
      const std::pair device(node_, label == labels_.end() ? std::string() : label->second);
      if (!seen_ns_.contains(device) && seen_ns_.size() >= kDevicesMax) continue;
      seen_ns_[device] += span.duration_ns;
      ++windows_;
      if (span.value_a > 0) lost_ += static_cast<std::uint64_t>(span.value_a);
    }
  }

  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const DeviceWindowsAnalyzer&>(other);
    for (const auto& [device, ns] : that.seen_ns_) seen_ns_[device] += ns;
    windows_ += that.windows_;
    lost_ += that.lost_;
  }

  void snapshot(FactTable& out) const override {
    if (windows_ == 0) return;
    std::int64_t sum_ns = 0;
    for (const auto& [device, ns] : seen_ns_) sum_ns += ns;
    const auto devices = static_cast<double>(seen_ns_.size());
    Fact fact{.kind = "device.windows"};
    fact.set("windows", static_cast<double>(windows_)).set("devices", devices);
    fact.set("seen_ms", static_cast<double>(sum_ns) / static_cast<double>(kNsPerMs) / devices);
    fact.set("lost", static_cast<double>(lost_));
    out.add(std::move(fact));
  }

 private:
  std::string node_;
  std::map<std::uint32_t, std::string> labels_;  // by slot
  std::map<std::pair<std::string, std::string>, std::int64_t> seen_ns_;
  std::uint64_t windows_ = 0;
  std::uint64_t lost_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<DeviceWindowsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_device_windows{
    .id = "device_windows",
    .summary = "How much of a job's time its devices were watched.",
    .produces = kSchemas,
    .metrics = {},
    .spans = kSpans,
    .open = open};

}  // namespace hotlap
