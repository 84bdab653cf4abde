// What the framework knows of its devices: memory of its allocator, GPU time of the parts of a step, what goes there.
#include <array>
#include <set>

#include "analysis/analyzer.h"
#include "analysis/figure_table.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::array kMemoryFields{
    FactField{"allocated_bytes", "By", "held by tensors, as last seen"},
    FactField{"allocated_max_bytes", "By", "the most that they held"},
    FactField{"reserved_bytes", "By", "taken from the driver, as last seen"},
    FactField{"reserved_max_bytes", "By", "the most that was taken"},
    FactField{"total_bytes", "By", "size of the device memory"},
    FactField{"retries", "{retry}", "allocations that had to give cached memory back first, in the whole program"},
    FactField{"ooms", "{error}", "allocations that failed, in the whole program"},
};
constexpr std::array kTimeFields{
    FactField{"forward_ms", "ms", "from the start of forward to that of backward, mean of sampled steps"},
    FactField{"backward_ms", "ms", "one backward pass, mean of sampled steps"},
    FactField{"optimizer_ms", "ms", "one optimizer.step(), mean of sampled steps"},
    FactField{"samples", "{step}", "steps in which forward and backward were sampled"},
};
constexpr std::array kTransferFields{
    FactField{"bytes_per_batch", "By", "mean of sampled batches of the loader that went to the device"},
    FactField{"pinned_share", "1", "the part of it that lay in pinned memory"},
};
constexpr std::array kSchemas{
    FactSchema{"device.memory", "memory of the framework's allocator on one device", kMemoryFields},
    FactSchema{"device.parts", "time on the GPU of the parts of a step, by events", kTimeFields},
    FactSchema{"device.transfer", "copies from the host to one device", kTransferFields},
};
constexpr std::array<std::string_view, 3> kMetrics{"allocator.", "gpu_time.", "transfer."};

class DeviceAnalyzer final : public Analyzer {
 public:
  explicit DeviceAnalyzer(const RunDescription& run) : run_(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    figures_.add(series, points);
  }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override {
    figures_.add(series, minutes);
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const DeviceAnalyzer&>(other);
    // A recorder that was started again after the first steps was told no totals.
    from.each_device([&](const std::string& instance) {
      if (const auto total = from.total_bytes(instance)) totals_.insert_or_assign(instance, *total);
    });
    figures_.merge(from.figures_);
  }

  void snapshot(FactTable& out) const override {
    each_device([&](const std::string& instance) { add_device(instance, out); });
  }

 private:
  template <class Function>
  void each_device(Function function) const {
    std::set<std::string> instances;
    for (const char* metric :
         {"allocator.allocated.bytes", "gpu_time.forward.ms", "gpu_time.optimizer.ms", "transfer.to_device.bytes"}) {
      for (std::string& instance : figures_.instances(metric)) instances.insert(std::move(instance));
    }
    for (const std::string& instance : instances) function(instance);
  }

  // "rank 0/cuda:1": which process, and which device as it numbers them.
  static Fact fact_of(std::string_view kind, const std::string& instance) {
    Fact fact{.kind = kind};
    const std::size_t slash = instance.find('/');
    fact.where.process = instance.substr(0, slash);
    if (slash != std::string::npos) fact.where.device = instance.substr(slash + 1);
    if (fact.where.process.starts_with("rank ")) {
      if (const auto rank = parse_u64(std::string_view(fact.where.process).substr(5)); rank && *rank < 1'000'000) {
        fact.where.rank = static_cast<std::int32_t>(*rank);
      }
    }
    return fact;
  }

  void add_device(const std::string& instance, FactTable& out) const {
    const auto sums = [&](std::string_view metric) { return figures_.find(metric, instance); };
    Fact memory = fact_of("device.memory", instance);
    memory.set("allocated_bytes", last_of(sums("allocator.allocated.bytes")));
    memory.set("allocated_max_bytes", largest_of(sums("allocator.allocated_max.bytes")));
    memory.set("reserved_bytes", last_of(sums("allocator.reserved.bytes")));
    memory.set("reserved_max_bytes", largest_of(sums("allocator.reserved_max.bytes")));
    memory.set("retries", largest_of(sums("allocator.retries")));
    memory.set("ooms", largest_of(sums("allocator.ooms")));
    if (!memory.fields.empty()) {
      memory.set("total_bytes", total_bytes(instance));
      out.add(std::move(memory));
    }

    Fact time = fact_of("device.parts", instance);
    time.set("forward_ms", settled_mean_of(sums("gpu_time.forward.ms")));
    time.set("backward_ms", settled_mean_of(sums("gpu_time.backward.ms")));
    time.set("optimizer_ms", settled_mean_of(sums("gpu_time.optimizer.ms")));
    if (const FigureSums* forward = sums("gpu_time.forward.ms"))
      time.set("samples", static_cast<double>(forward->count));
    if (!time.fields.empty()) out.add(std::move(time));

    Fact transfer = fact_of("device.transfer", instance);
    const FigureSums* bytes = sums("transfer.to_device.bytes");
    const FigureSums* pinned = sums("transfer.to_device.pinned.bytes");
    if (bytes == nullptr) return;
    transfer.set("bytes_per_batch", bytes->mean());
    if (pinned != nullptr && bytes->sum > 0) transfer.set("pinned_share", pinned->sum / bytes->sum);
    out.add(std::move(transfer));
  }

  // As the framework said when the first steps were over; JAX says a limit with each sample.
  std::optional<double> total_bytes(const std::string& instance) const {
    if (const auto merged = totals_.find(instance); merged != totals_.end()) return merged->second;
    if (const FigureSums* limit = figures_.find("allocator.limit.bytes", instance)) return limit->last;
    const std::size_t slash = instance.find('/');
    const std::size_t colon = instance.rfind(':');
    if (slash == std::string::npos || colon == std::string::npos || colon < slash) return std::nullopt;
    const auto number = parse_u64(std::string_view(instance).substr(colon + 1));
    const auto said = run_.recording->attributes.find(format("process.{}.accelerator", instance.substr(0, slash)));
    if (!number || said == run_.recording->attributes.end()) return std::nullopt;
    const Result<JsonDocument> document = JsonDocument::parse(said->second);
    if (!document.ok()) return std::nullopt;
    const std::vector<JsonValue> sizes = document->root()["memory_bytes"].items();
    return *number < sizes.size() ? sizes[*number].number() : std::nullopt;
  }

  RunDescription run_;
  FigureTable figures_;
  std::map<std::string, double> totals_;  // of merged recordings
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<DeviceAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_device{.id = "device",
                                                    .summary = "What the framework knows of its devices.",
                                                    .produces = kSchemas,
                                                    .metrics = kMetrics,
                                                    .spans = {},
                                                    .takes_minutes = true,
                                                    .open = open};

}  // namespace hotlap
