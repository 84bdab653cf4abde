// How the machine's resources were used over the typical steps, each as lowest, median, high quantiles and highest: the
// table that tells at a glance which of them is short and which lies idle.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"
#include "analysis/time_profile.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"resource", "text", "cpu, iowait, group_cpu, memory, gpu, gpu_memory, network"},
    FactField{"cores", "{core}", "of cpu and group_cpu: what they are shares of, the machine or the group's quota"},
    FactField{"unit", "text", "% of what there is, or By/s"},
    FactField{"min", "1", "lowest, of stretches of half a second or more"},
    FactField{"p50", "1", "median"},
    FactField{"p95", "1", ""},
    FactField{"p99", "1", ""},
    FactField{"max", "1", "highest"},
    FactField{"steps_only", "1", "1: during typical steps"},
};
constexpr std::array kSchemas{FactSchema{"system.use", "use of one resource of one machine", kFields}};
constexpr std::array<std::string_view, 12> kMetrics{
    "cgroup.cpu.limit.cores",
    "cgroup.cpu.usage.seconds",
    "cpu.busy.seconds",
    "cpu.iowait.seconds",
    "cpu.count",
    "memory.total.bytes",
    "memory.working_set.bytes",
    "gpu.busy.percent",
    "gpu.memory.used.bytes",
    "gpu.memory.total.bytes",
    "network.total.receive.bytes",
    "network.total.transmit.bytes",
};
constexpr std::size_t kBuckets = 1024;
constexpr std::size_t kGpusMax = 64;

class SystemUseAnalyzer final : public NodeAnalyzer<SystemUseAnalyzer> {
 public:
  explicit SystemUseAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto window = steady_or_observed(*table_, first_ns_, last_ns_);
    if (!window) return;
    const auto last = [&](std::string_view metric) -> std::optional<double> {
      const auto found = gauges_.find(std::pair(std::string(metric), std::string()));
      return found == gauges_.end() ? std::nullopt : found->second.last();
    };
    const auto host = last("cpu.count");
    if (host && *host > 0) {
      add("cpu", "%", rates("cpu.busy.seconds", *window, 100, "cpu.count"), node, *window, out, *host);
      add("iowait", "%", rates("cpu.iowait.seconds", *window, 100, "cpu.count"), node, *window, out);
    }
    // What a control group may use at most is what there is for it: beside the whole machine little is in use.
    const auto quota = last("cgroup.cpu.limit.cores");
    if (quota && *quota > 0 && (!host || *quota < *host)) {
      add("group_cpu", "%", rates("cgroup.cpu.usage.seconds", *window, 100, "cgroup.cpu.limit.cores"), node, *window,
          out, *quota);
    }
    if (const auto total = last("memory.total.bytes"); total && *total > 0) {
      add("memory", "%", levels("memory.working_set.bytes", {}, *window, 100 / *total), node, *window, out);
    }
    add_gpus(node, *window, out);
    std::vector<double> network = rates("network.total.receive.bytes", *window, 1);
    const std::vector<double> sent = rates("network.total.transmit.bytes", *window, 1);
    for (std::size_t i = 0; i < std::min(network.size(), sent.size()); ++i) network[i] += sent[i];
    add("network", "By/s", std::move(network), node, *window, out);
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty()) return;
    first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    last_ns_ = std::max(last_ns_, end_ns(points.back()));
    if (series.kind == MetricKind::kCounter) {
      rates_.try_emplace(series.metric, 0.95, kBuckets).first->second.add(points, series.scale);
      return;
    }
    if (series.metric == "gpu.memory.total.bytes") {
      for (const Point& point : points) {
        if (const auto number = last_value(point)) gpu_totals_[series.instance] = *number * series.scale;
      }
      return;
    }
    const auto key = std::pair(series.metric, series.instance);
    if (gauges_.size() >= kGpusMax && !gauges_.contains(key)) return;
    gauges_.try_emplace(key, kBuckets).first->second.add(points, series.scale);
  }

  // `of`: the gauge of which it is a share, as it was at that time: cores come and go.
  std::vector<double> rates(std::string_view metric, const SteadyWindow& window, double factor,
                            std::string_view of = {}) const {
    const auto whole = gauges_.find(std::pair(std::string(of), std::string()));
    std::vector<double> out;
    const auto found = rates_.find(metric);
    if (found == rates_.end()) return out;
    const std::int64_t width_ns = found->second.width_ns();
    std::optional<double> there;  // as told last
    for (std::int64_t t = window.from_ns; t < window.to_ns; t += width_ns) {
      if (whole != gauges_.end()) {
        if (const auto told = whole->second.mean(t, t + width_ns)) there = told;
        if (!there) there = whole->second.last();
      }
      const double observed = found->second.observed_s(t, t + width_ns);
      if (observed <= 0 || (there && *there <= 0)) continue;
      out.push_back(std::max(factor * found->second.amount(t, t + width_ns) / observed, 0.0) / there.value_or(1));
    }
    return out;
  }

  std::vector<double> levels(std::string_view metric, const std::string& instance, const SteadyWindow& window,
                             double factor) const {
    std::vector<double> out;
    const auto found = gauges_.find(std::pair(std::string(metric), instance));
    if (found == gauges_.end()) return out;
    const std::int64_t width_ns = found->second.width_ns();
    for (std::int64_t t = window.from_ns; t < window.to_ns; t += width_ns) {
      if (const auto mean = found->second.mean(t, t + width_ns)) out.push_back(factor * *mean);
    }
    return out;
  }

  // All GPUs of the machine together, as one figure: what each did is gpu.use.
  void add_gpus(const std::string& node, const SteadyWindow& window, FactTable& out) const {
    std::vector<double> busy;
    std::vector<double> memory;
    for (const auto& [key, profile] : gauges_) {
      if (key.second.find('/') != std::string::npos) continue;  // an instance of MIG is part of its GPU
      if (key.first == "gpu.busy.percent") {
        const auto of_one = levels(key.first, key.second, window, 1);
        busy.insert(busy.end(), of_one.begin(), of_one.end());
      }
      const auto total = gpu_totals_.find(key.second);
      if (key.first == "gpu.memory.used.bytes" && total != gpu_totals_.end() && total->second > 0) {
        const auto of_one = levels(key.first, key.second, window, 100 / total->second);
        memory.insert(memory.end(), of_one.begin(), of_one.end());
      }
    }
    add("gpu", "%", std::move(busy), node, window, out);
    add("gpu_memory", "%", std::move(memory), node, window, out);
  }

  static void add(std::string_view resource, std::string_view unit, std::vector<double> values, const std::string& node,
                  const SteadyWindow& window, FactTable& out, std::optional<double> cores = std::nullopt) {
    if (values.empty()) return;
    std::ranges::sort(values);
    const auto at = [&](double q) {
      return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
    };
    Fact fact{.kind = "system.use"};
    fact.where.node = node;
    fact.set_text("resource", std::string(resource)).set_text("unit", std::string(unit));
    fact.set("min", at(0)).set("p50", at(0.5)).set("p95", at(0.95)).set("p99", at(0.99)).set("max", at(1));
    fact.set("cores", cores);
    out.add(std::move(fact.set("steps_only", window.is_of_steps ? 1 : 0)));
  }

  std::map<std::string, RateProfile, std::less<>> rates_;
  std::map<std::pair<std::string, std::string>, GaugeProfile> gauges_;
  std::map<std::string, double> gpu_totals_;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<SystemUseAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_system_use{.id = "system_use",
                                                        .summary = "Use of each resource of the machine.",
                                                        .produces = kSchemas,
                                                        .metrics = kMetrics,
                                                        .spans = {},
                                                        .takes_minutes = true,
                                                        .open = open};

}  // namespace hotlap
