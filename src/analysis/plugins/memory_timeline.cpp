// Memory of the framework's allocator over a trace, by its own events: what was held, when most of it.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "analysis/analyzer.h"
#include "analysis/widening_buckets.h"
#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::string_view kAllocated = "torch.memory.allocated.bytes";
constexpr std::string_view kReserved = "torch.memory.reserved.bytes";
constexpr std::size_t kMomentsMax = 64;
constexpr std::int64_t kFirstWidthNs = kNsPerUs;
constexpr std::size_t kDevicesMax = 256;
constexpr double kBytesPerMB = 1e6;

constexpr std::array kFields{
    FactField{"events", "{event}", "allocations and releases"},
    FactField{"first_bytes", "By", "held by tensors at the first of them"},
    FactField{"last_bytes", "By", "and at the last"},
    FactField{"least_bytes", "By", "the least that was held"},
    FactField{"peak_bytes", "By", "the most"},
    FactField{"peak_ms", "ms", "when, from the first event"},
    FactField{"span_ms", "ms", "from the first event to the last"},
    FactField{"reserved_peak_bytes", "By", "the most that the allocator held"},
    FactField{"timeline_mb", "text", "most held in each of up to 64 equal stretches of that time, in MB; -: no event"},
};
constexpr std::array kSchemas{FactSchema{"memory.timeline", "allocator's memory on one device of a trace", kFields}};
constexpr std::array<std::string_view, 2> kMetrics{kAllocated, kReserved};

struct Most {
  double bytes = -1;  // -1: no event
  Most& operator+=(const Most& other) {
    bytes = std::max(bytes, other.bytes);
    return *this;
  }
};

struct Device {
  std::uint64_t events = 0;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t peak_ns = 0;
  double first_bytes = 0;
  double last_bytes = 0;
  double least_bytes = 0;
  double peak_bytes = -1;
  std::optional<double> reserved_peak_bytes;
  WideningBuckets<Most> moments{kMomentsMax, kFirstWidthNs};
};

class MemoryTimelineAnalyzer final : public Analyzer {
 public:
  explicit MemoryTimelineAnalyzer(const RunDescription&) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    auto found = devices_.find(series.instance);
    if (found == devices_.end()) {
      if (devices_.size() >= kDevicesMax) return;
      found = devices_.emplace(series.instance, Device{}).first;
    }
    for (const SamplePoint& point : points) {
      if (point.value.is_missing()) continue;
      const double bytes = point.value.number().value_or(0) * series.scale;
      if (series.metric == kReserved) {
        found->second.reserved_peak_bytes = std::max(found->second.reserved_peak_bytes.value_or(bytes), bytes);
      } else {
        add(found->second, point.t_ns, bytes);
      }
    }
  }

  // Ranks that were traced apart: each has its devices.
  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const MemoryTimelineAnalyzer&>(other);
    that.snapshot(merged_);
  }

  void snapshot(FactTable& out) const override {
    for (const auto& [instance, device] : devices_) {
      if (device.events > 0) out.add(fact_of(instance, device));
    }
    for (const Fact& fact : merged_.facts()) out.add(fact);
  }

 private:
  static void add(Device& device, std::int64_t t_ns, double bytes) {
    if (device.events++ == 0) {
      device.first_ns = t_ns;
      device.first_bytes = device.least_bytes = bytes;
    }
    device.last_ns = t_ns;
    device.last_bytes = bytes;
    device.least_bytes = std::min(device.least_bytes, bytes);
    if (bytes > device.peak_bytes) {
      device.peak_bytes = bytes;
      device.peak_ns = t_ns;
    }
    device.moments.at(t_ns - device.first_ns) += Most{bytes};
  }

  static Fact fact_of(const std::string& instance, const Device& device) {
    const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); };
    Fact fact{.kind = "memory.timeline", .where = {}, .fields = {}};
    fact.where.device = instance;
    fact.set("events", static_cast<double>(device.events)).set("first_bytes", device.first_bytes);
    fact.set("last_bytes", device.last_bytes).set("least_bytes", device.least_bytes);
    fact.set("peak_bytes", device.peak_bytes).set("peak_ms", ms(device.peak_ns - device.first_ns));
    fact.set("span_ms", ms(device.last_ns - device.first_ns)).set("reserved_peak_bytes", device.reserved_peak_bytes);
    std::string text;
    device.moments.visit(INT64_MIN, INT64_MAX, [&](const Most& most) {
      if (!text.empty()) text += ' ';
      text += most.bytes < 0 ? "-" : format("{:.1f}", most.bytes / kBytesPerMB);
    });
    fact.set_text("timeline_mb", std::move(text));
    return fact;
  }

  std::map<std::string, Device> devices_;
  FactTable merged_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<MemoryTimelineAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_memory_timeline{.id = "memory_timeline",
                                                             .summary = "The allocator's memory over a trace.",
                                                             .produces = kSchemas,
                                                             .metrics = kMetrics,
                                                             .spans = {},
                                                             .open = open};

}  // namespace hotlap
