// Skeleton of a collector: one source, read at each tick. Copy it to src/collect/plugins/<name>.cpp.
#include <array>

#include "base/text.h"
#include "collect/collector.h"

namespace hotlap {
namespace {

// Described here and nowhere else: docs, exporters and checks read it. One entry per metric, in the order of the enum.
enum Metric : std::uint16_t { kAvailable };
constexpr std::array kMetrics{
    MetricDesc{.name = "entropy.available.bits", .unit = "bit", .help = "Entropy that the kernel has gathered."},
};

class EntropyCollector final : public Collector {
 public:
  explicit EntropyCollector(KeptFile file) : file_(std::move(file)) {}

  Result<Outcome> sample(const TickInfo&, SampleSink& out) override {
    if (!available_.valid()) available_ = out.series(kAvailable, {});
    HOTLAP_TRY_ASSIGN(const std::string_view text, file_.read());
    // What cannot be read is missing with its reason, never 0.
    const auto bits = parse_u64(trim(text));
    out.add(available_, bits ? Value::of(*bits) : Value::missing(MissingReason::kReadFailed));
    return Outcome::kSampled;
  }

 private:
  KeptFile file_;  // kept open: a tick costs one pread
  SeriesHandle available_;
};

// An Error of kNotFound or kUnsupported means that this machine has none of it; nobody is bothered with that.
Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY_ASSIGN(KeptFile file, KeptFile::open(host, "/proc/sys/kernel/random/entropy_avail"));
  return std::unique_ptr<Collector>(std::make_unique<EntropyCollector>(std::move(file)));
}

}  // namespace

extern constinit const CollectorSpec collector_entropy{
    .name = "entropy", .summary = "Entropy of the kernel's random numbers.", .metrics = kMetrics, .open = open};

}  // namespace hotlap
