// Load averages and the number of tasks from /proc/loadavg.
#include <array>
#include <cmath>

#include "base/text.h"
#include "collect/collector.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = 5'000'000'000;  // the kernel recomputes the averages every 5 s

enum Metric : std::uint16_t { kLoad1, kLoad5, kLoad15, kTasks };
constexpr std::array kMetrics{
    MetricDesc{.name = "load.1min",
               .unit = "1",
               .help = "Tasks running or in uninterruptible sleep, 1 min average.",
               .window_ns = 60'000'000'000,
               .min_period_ns = kPeriodNs,
               .aliases = {.otel = "system.cpu.load_average.1m", .prometheus = "node_load1"}},
    MetricDesc{.name = "load.5min",
               .unit = "1",
               .help = "Tasks running or in uninterruptible sleep, 5 min average.",
               .window_ns = 300'000'000'000,
               .min_period_ns = kPeriodNs,
               .aliases = {.otel = "system.cpu.load_average.5m", .prometheus = "node_load5"}},
    MetricDesc{.name = "load.15min",
               .unit = "1",
               .help = "Tasks running or in uninterruptible sleep, 15 min average.",
               .window_ns = 900'000'000'000,
               .min_period_ns = kPeriodNs,
               .aliases = {.otel = "system.cpu.load_average.15m", .prometheus = "node_load15"}},
    MetricDesc{.name = "load.tasks",
               .unit = "{task}",
               .help = "Processes and threads that exist.",
               .min_period_ns = kPeriodNs},
};

class LoadCollector final : public Collector {
 public:
  explicit LoadCollector(KeptFile file) : file_(std::move(file)) {}

  Result<Outcome> sample(const TickInfo&, SampleSink& out) override {
    if (!series_[0].valid()) {
      for (std::uint16_t m = 0; m < kMetrics.size(); ++m) series_[m] = out.series(m, {});
    }
    HOTLAP_TRY_ASSIGN(std::string_view text, file_.read_record());
    for (const Metric m : {kLoad1, kLoad5, kLoad15}) {
      const auto number = parse_f64(next_word(text));
      const bool is_load = number && std::isfinite(*number) && *number >= 0;
      out.add(series_[m], is_load ? Value::of(*number) : Value::missing(MissingReason::kReadFailed));
    }
    // "2/345": runnable / all; the first is sampled by the cpu collector.
    const std::string_view tasks = next_word(text);
    const std::size_t slash = tasks.find('/');
    const auto count = slash == std::string_view::npos ? std::nullopt : parse_u64(tasks.substr(slash + 1));
    out.add(series_[kTasks], count ? Value::of(*count) : Value::missing(MissingReason::kReadFailed));
    return Outcome::kSampled;
  }

 private:
  KeptFile file_;
  std::array<SeriesHandle, kMetrics.size()> series_{};
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY_ASSIGN(KeptFile file, KeptFile::open(host, "/proc/loadavg"));
  return std::unique_ptr<Collector>(std::make_unique<LoadCollector>(std::move(file)));
}

}  // namespace

extern constinit const CollectorSpec collector_load{.name = "load",
                                                    .summary = "Load averages and the number of tasks.",
                                                    .metrics = kMetrics,
                                                    .min_period_ns = kPeriodNs,
                                                    .open = open};

}  // namespace hotlap
