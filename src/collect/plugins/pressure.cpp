// Pressure stall information of the machine: how long tasks waited for CPU, I/O and memory, from /proc/pressure.
#include <array>

#include "collect/collector.h"
#include "collect/pressure_file.h"
#include "collect/sample.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = 1'000'000'000;  // each read adds up all cores under a lock

constexpr MetricDesc stall(std::string_view name, std::string_view help, std::string_view prometheus) {
  return {.name = name,
          .unit = "s",
          .kind = MetricKind::kCounter,
          .help = help,
          .min_period_ns = kPeriodNs,
          .aliases = {"", "", prometheus},
          .scale = 1e-6};
}

// CPU has no "full" for a machine (the kernel always says 0), interrupts have no "some".
constexpr std::array kMetrics{
    stall("pressure.cpu.some.seconds", "Time in which at least one task waited for a core.",
          "node_pressure_cpu_waiting_seconds_total"),
    stall("pressure.io.some.seconds", "Time in which at least one task waited for I/O.",
          "node_pressure_io_waiting_seconds_total"),
    stall("pressure.io.full.seconds", "Time in which every task that had work waited for I/O.",
          "node_pressure_io_stalled_seconds_total"),
    stall("pressure.memory.some.seconds", "Time in which at least one task waited for memory.",
          "node_pressure_memory_waiting_seconds_total"),
    stall("pressure.memory.full.seconds", "Time in which every task that had work waited for memory.",
          "node_pressure_memory_stalled_seconds_total"),
    stall("pressure.irq.full.seconds", "Time in which interrupts kept tasks from running.",
          "node_pressure_irq_stalled_seconds_total"),
};

struct Source {
  std::string_view path;
  std::int16_t some;  // index of the metric; −1: not recorded
  std::int16_t full;
};
constexpr std::array kSources{Source{"/proc/pressure/cpu", 0, -1}, Source{"/proc/pressure/io", 1, 2},
                              Source{"/proc/pressure/memory", 3, 4}, Source{"/proc/pressure/irq", -1, 5}};

class PressureCollector final : public Collector {
 public:
  explicit PressureCollector(std::array<KeptFile, kSources.size()> files) : files_(std::move(files)) {}

  Result<Outcome> sample(const TickInfo&, SampleSink& out) override {
    for (std::size_t i = 0; i < kSources.size(); ++i) {
      if (!files_[i].is_open()) continue;
      const Result<std::string_view> text = files_[i].read_record();
      const PressureTotals totals = text.ok() ? read_pressure(*text) : PressureTotals{};
      const MissingReason reason = text.ok() ? MissingReason::kNotSupported : missing_reason(text.error());
      add(kSources[i].some, totals.some_us, reason, out);
      add(kSources[i].full, totals.full_us, reason, out);
    }
    return Outcome::kSampled;
  }

 private:
  void add(std::int16_t metric, std::optional<std::uint64_t> total_us, MissingReason reason, SampleSink& out) {
    if (metric < 0) return;
    SeriesHandle& series = series_[static_cast<std::size_t>(metric)];
    if (!series.valid()) series = out.series(static_cast<std::uint16_t>(metric), {});
    out.add(series, value_or_missing(total_us, reason));
  }

  std::array<KeptFile, kSources.size()> files_;
  std::array<SeriesHandle, kMetrics.size()> series_{};
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  std::array<KeptFile, kSources.size()> files;
  bool has_any = false;
  for (std::size_t i = 0; i < kSources.size(); ++i) {
    Result<KeptFile> file = KeptFile::open(host, kSources[i].path);
    // A kernel with PSI switched off has the files, but refuses to read them.
    if (!file.ok() || !file->read_record().ok()) continue;
    files[i] = std::move(file).value();
    has_any = true;
  }
  if (!has_any)
    return Error{ErrorCode::kUnsupported, "/proc/pressure: this kernel does not measure pressure (psi=1 turns it on)"};
  return std::unique_ptr<Collector>(std::make_unique<PressureCollector>(std::move(files)));
}

}  // namespace

extern constinit const CollectorSpec collector_pressure{
    .name = "pressure",
    .summary = "How long tasks waited for CPU, I/O and memory (pressure stall information).",
    .metrics = kMetrics,
    .min_period_ns = kPeriodNs,
    .open = open};

}  // namespace hotlap
