#include "record/self_metrics.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = 5 * kNsPerS;
constexpr std::int64_t kFirstClassNs = kNsPerUs;

enum Metric : std::uint16_t {
  kCpu,
  kRss,
  kLatenessP50,
  kLatenessP99,
  kTicks,
  kTicksLate,
  kTicksSkipped,
  kSamplesDropped,
  kSpansDropped,
  kBytesWritten,
  kWriteTime,
  kCollectorTime,
  kCollectorErrors,
  kCollectorSkipped,
};
constexpr std::array kMetrics{
    MetricDesc{.name = "self.cpu.ns",
               .unit = "ns",
               .kind = MetricKind::kCounter,
               .help = "CPU time of the recorder, all threads.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.memory.rss_bytes",
               .unit = "By",
               .help = "Resident memory of the recorder.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.tick.lateness_p50_ns",
               .unit = "ns",
               .help = "How late half of the ticks were at most, since the last sample.",
               .window_ns = kPeriodNs,
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.tick.lateness_p99_ns",
               .unit = "ns",
               .help = "How late 99 % of the ticks were at most, since the last sample.",
               .window_ns = kPeriodNs,
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.ticks",
               .unit = "{tick}",
               .kind = MetricKind::kCounter,
               .help = "Ticks taken.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.ticks.late",
               .unit = "{tick}",
               .kind = MetricKind::kCounter,
               .help = "Ticks taken more than half an interval late.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.ticks.skipped",
               .unit = "{tick}",
               .kind = MetricKind::kCounter,
               .help = "Ticks left out because the recorder did not get to run.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.samples.dropped",
               .unit = "{sample}",
               .kind = MetricKind::kCounter,
               .help = "Samples dropped because the writer could not keep up.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.spans.dropped",
               .unit = "{span}",
               .kind = MetricKind::kCounter,
               .help = "Spans dropped because the writer could not keep up.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.written.bytes",
               .unit = "By",
               .help = "Size of the recording on disk, with its log.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.write_time.ns",
               .unit = "ns",
               .kind = MetricKind::kCounter,
               .help = "Time spent in writing the recording.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.collector.time.ns",
               .unit = "ns",
               .kind = MetricKind::kCounter,
               .help = "Time spent in a collector, by its name.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.collector.errors",
               .unit = "{error}",
               .kind = MetricKind::kCounter,
               .help = "Failures of a collector, by its name.",
               .min_period_ns = kPeriodNs},
    MetricDesc{.name = "self.collector.skipped",
               .unit = "{period}",
               .kind = MetricKind::kCounter,
               .help = "Periods that a failing collector was left out, by its name.",
               .min_period_ns = kPeriodNs},
};

Value duration_or_missing(std::int64_t ns) {
  return ns < 0 ? Value::missing(MissingReason::kNotSampled) : Value::of(ns);
}

class SelfCollector final : public Collector {
 public:
  SelfCollector(const Host& host, SelfSources sources) : host_(host), sources_(std::move(sources)) {}

  Result<Outcome> sample(const TickInfo&, SampleSink& out) override {
    if (!series_[kCpu].valid()) {
      for (std::uint16_t m = kCpu; m <= kWriteTime; ++m) series_[m] = out.series(m, {});
    }
    const Result<std::uint64_t> cpu_ns = host_.process_cpu_ns(0);
    out.add(series_[kCpu], cpu_ns.ok() ? Value::of(*cpu_ns) : Value::missing(MissingReason::kReadFailed));
    add_memory(out);

    RecorderCounters& counters = *sources_.counters;
    out.add(series_[kLatenessP50], duration_or_missing(counters.lateness.quantile_ns(0.50)));
    out.add(series_[kLatenessP99], duration_or_missing(counters.lateness.quantile_ns(0.99)));
    counters.lateness.restart();
    out.add(series_[kTicks], Value::of(counters.ticks.load(std::memory_order_relaxed)));
    out.add(series_[kTicksLate], Value::of(counters.ticks_late.load(std::memory_order_relaxed)));
    out.add(series_[kTicksSkipped], Value::of(counters.ticks_skipped.load(std::memory_order_relaxed)));
    out.add(series_[kSamplesDropped], Value::of(counters.samples_dropped.load(std::memory_order_relaxed)));
    out.add(series_[kSpansDropped], Value::of(counters.spans_dropped.load(std::memory_order_relaxed)));
    out.add(series_[kBytesWritten], Value::of(sources_.bytes_written()));
    out.add(series_[kWriteTime], Value::of(sources_.write_time_ns()));
    for (const CollectorUse& use : sources_.collectors()) {
      out.add(out.series(kCollectorTime, use.name), Value::of(use.time_ns));
      if (use.errors == 0) continue;  // a series of zeros for each collector says nothing
      out.add(out.series(kCollectorErrors, use.name), Value::of(use.errors));
      out.add(out.series(kCollectorSkipped, use.name), Value::of(use.skipped));
    }
    return Outcome::kSampled;
  }

 private:
  void add_memory(SampleSink& out) {
    const Result<std::string> text = host_.read_text("/proc/self/statm");
    std::optional<std::uint64_t> pages;
    if (text.ok()) {
      std::string_view rest(*text);
      next_word(rest);
      pages = parse_u64(next_word(rest));
    }
    out.add(series_[kRss], pages ? Value::of(*pages * host_.page_bytes()) : Value::missing(MissingReason::kReadFailed));
  }

  const Host& host_;
  SelfSources sources_;
  std::array<SeriesHandle, kWriteTime + 1> series_{};
};

}  // namespace

constinit const CollectorSpec kSelfSpec{.name = "self",
                                        .summary = "What the recorder costs and how well it keeps time.",
                                        .metrics = kMetrics,
                                        .min_period_ns = kPeriodNs};

std::size_t LatenessHistogram::class_of(std::int64_t ns) {
  if (ns <= kFirstClassNs) return 0;
  const auto units = static_cast<std::uint64_t>(ns / (kFirstClassNs / 4));  // quarters of a microsecond: at least 4
  const auto octave = static_cast<std::size_t>(std::bit_width(units)) - 3;  // 4 … 7 → 0
  const std::size_t quarter = (units >> octave) & 3U;
  return std::min(kClasses - 1, octave * 4 + quarter);
}

std::int64_t LatenessHistogram::upper_edge_ns(std::size_t index) {
  const auto quarter = static_cast<std::int64_t>(index % 4);
  return (kFirstClassNs / 4) * ((5 + quarter) << (index / 4));
}

void LatenessHistogram::add(std::int64_t late_ns) {
  counts_[class_of(late_ns)].fetch_add(1, std::memory_order_relaxed);
}

std::int64_t LatenessHistogram::quantile_ns(double share) const {
  std::uint64_t total = 0;
  for (const auto& count : counts_) total += count.load(std::memory_order_relaxed);
  if (total == 0) return -1;
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total));
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i < kClasses; ++i) {
    passed += counts_[i].load(std::memory_order_relaxed);
    if (passed > wanted || passed == total) return upper_edge_ns(i);
  }
  return -1;
}

void LatenessHistogram::restart() {
  for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
}

std::unique_ptr<Collector> make_self_collector(const Host& host, SelfSources sources) {
  return std::make_unique<SelfCollector>(host, std::move(sources));
}

}  // namespace hotlap
