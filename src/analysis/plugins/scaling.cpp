// Throughput by number of GPUs, as a table tells it: each row is a run of its own.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "analysis/analyzer.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"count", "1", "GPUs, nodes or workers"},
    FactField{"of", "text", "what is counted"},
    FactField{"figure", "text", "title of the column"},
    FactField{"rate", "1", "as the table has it"},
    FactField{"is_time", "1", "1: less is better"},
    FactField{"is_of_whole_work", "1", "1: the time of an epoch, of which more units should take less"},
    FactField{"gain", "1", "times the throughput of the smallest run"},
    FactField{"efficiency_pct", "%", "throughput per unit, of that of the smallest run"},
};
constexpr std::array kTopologyFields{
    FactField{"pairs", "1", "of GPUs"},
    FactField{"nvlink_pairs", "1", "connected by NVLink"},
    FactField{"worst", "text", "the slowest way between two: SYS, NODE, PHB, PXB, PIX"},
};
constexpr std::array kSchemas{
    FactSchema{"scaling.point", "one row of a table of throughput by number of GPUs", kFields},
    FactSchema{"machine.topology", "how the GPUs of a machine are connected", kTopologyFields},
};
constexpr std::array<std::string_view, 1> kMetrics{"scaling."};
constexpr std::size_t kPointsMax = 4096;

class ScalingAnalyzer final : public Analyzer {
 public:
  explicit ScalingAnalyzer(const RunDescription& run) : run_(run) {}

  // "scaling.images_per_s" of "8 gpus".
  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    if (series.metric == "scaling.efficiency.percent" || points.empty() || tables_.size() >= kPointsMax) return;
    std::string_view words = series.instance;
    const auto count = parse_f64(next_word(words));
    const auto value = points.back().value.number();
    if (!count || *count <= 0 || !value || *value <= 0) return;
    Table& table = tables_[series.metric.substr(sizeof("scaling.") - 1)];
    table.of = std::string(trim(words));
    table.is_time = series.unit == "s" || series.unit == "ms" || series.unit == "min";
    table.is_of_whole_work = table.is_time && is_of_whole_work(series.metric);
    if (table.rates.size() < kPointsMax) table.rates[*count] = *value * series.scale;
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const ScalingAnalyzer&>(other);
    tables_.insert(from.tables_.begin(), from.tables_.end());
    if (!topology_) topology_ = from.topology();
  }

  void snapshot(FactTable& out) const override {
    for (const auto& [figure, table] : tables_) add(figure, table, out);
    if (auto topology = this->topology()) out.add(std::move(*topology));
  }

 private:
  // As the importer names the time of an epoch or of all of the training.
  static bool is_of_whole_work(std::string_view metric) {
    return metric.find("epoch") != std::string_view::npos || metric.find("total") != std::string_view::npos ||
           metric.find("training_time") != std::string_view::npos || metric.find("wall_time") != std::string_view::npos;
  }

  struct Table {
    std::string of;
    bool is_time = false;
    bool is_of_whole_work = false;
    std::map<double, double> rates;  // by count
  };

  static void add(const std::string& figure, const Table& table, FactTable& out) {
    const auto& [base_count, base] = *table.rates.begin();
    for (const auto& [count, rate] : table.rates) {
      Fact fact{.kind = "scaling.point"};
      fact.set("count", count).set_text("of", table.of).set_text("figure", figure).set("rate", rate);
      // The time of a step says how many of them there are in a second, each with a batch of every unit.
      const double gain = !table.is_time           ? rate / base
                          : table.is_of_whole_work ? base / rate
                                                   : base / rate * (count / base_count);
      fact.set("is_time", table.is_time ? 1 : 0)
          .set("is_of_whole_work", table.is_of_whole_work ? 1 : 0)
          .set("gain", gain)
          .set("efficiency_pct", 100 * gain / (count / base_count));
      out.add(std::move(fact));
    }
  }

  // Attributes "topology.gpu0.gpu1" = "NV12", as the matrix of nvidia-smi topo has them.
  std::optional<Fact> topology() const {
    if (topology_) return topology_;
    if (run_.recording == nullptr) return std::nullopt;
    constexpr std::array kWays{std::string_view{"PIX"}, std::string_view{"PXB"}, std::string_view{"PHB"},
                               std::string_view{"NODE"}, std::string_view{"SYS"}};
    double pairs = 0;
    double by_link = 0;
    std::ptrdiff_t worst = -1;
    for (const auto& [key, way] : run_.recording->attributes) {
      if (!key.starts_with("topology.gpu")) continue;
      pairs += 1;
      by_link += way.starts_with("NV") ? 1 : 0;
      const auto* const known = std::ranges::find(kWays, std::string_view(way));
      if (known != kWays.end()) worst = std::max(worst, known - kWays.begin());
    }
    if (pairs < 1) return std::nullopt;
    Fact fact{.kind = "machine.topology"};
    fact.set("pairs", pairs).set("nvlink_pairs", by_link);
    if (worst >= 0) fact.set_text("worst", std::string(kWays[static_cast<std::size_t>(worst)]));
    return fact;
  }

  const RunDescription& run_;
  std::map<std::string, Table> tables_;
  std::optional<Fact> topology_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ScalingAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_scaling{.id = "scaling",
                                                     .summary = "Throughput by number of GPUs, as a table tells it.",
                                                     .produces = kSchemas,
                                                     .metrics = kMetrics,
                                                     .spans = {},
                                                     .open = open};

}  // namespace hotlap
