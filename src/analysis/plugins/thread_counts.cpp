// How many threads the job has for the cores that it may use, and what it costs when they are too many: runnable tasks,
// switches, time in the kernel.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"
#include "analysis/time_profile.h"
#include "base/json_reader.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"steps_only", "1", "1: during typical steps"},
    FactField{"usable_cores", "{core}", "what affinity and quota leave to the job"},
    FactField{"job_threads", "{thread}", "of all processes of the job"},
    FactField{"host_threads", "{thread}", "of all programs on the machine"},
    FactField{"main_threads", "{thread}", "of the training process that has most"},
    FactField{"loader_threads", "{thread}", "of one loader worker, mean"},
    FactField{"loader_threads_max", "{thread}", "of the one that has most"},
    FactField{"loaders", "{process}", "loader workers"},
    FactField{"ranks", "{process}", "training processes"},
    FactField{"runnable", "{task}", "tasks that run or wait for a core, mean"},
    FactField{"runnable_per_core", "1", "of the machine's cores, which they are counted over"},
    FactField{"system_pct", "%", "share of the busy time in the kernel"},
    FactField{"switches_per_s", "1/s", "context switches on the machine"},
    FactField{"throttled_pct", "%", "share of the quota's periods in which the job was stopped"},
    FactField{"omp_num_threads", "text", "OMP_NUM_THREADS of the job"},
    FactField{"torch_threads", "{thread}", "threads of PyTorch's own arithmetic"},
};
constexpr std::array kSchemas{FactSchema{"threads.summary", "threads of the job against its cores", kFields}};
constexpr std::array<std::string_view, 10> kMetrics{
    "process.threads",      "cpu.usable.cores",   "cpu.count",
    "cpu.runnable",         "cpu.system.seconds", "cpu.busy.seconds",
    "cpu.context_switches", "cgroup.cpu.periods", "cgroup.cpu.throttled.periods",
    "load.tasks",
};
constexpr std::size_t kProcessesMax = 1024;

class ThreadCountsAnalyzer final : public NodeAnalyzer<ThreadCountsAnalyzer> {
 public:
  explicit ThreadCountsAnalyzer(const RunDescription& run)
      : NodeAnalyzer(run), run_(run.run), attributes_(run.recording == nullptr ? nullptr : &run.recording->attributes) {
    on_processes(run.processes);
  }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) roles_[slot_label(process)] = process.role;
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto window = steady_or_observed(*table_, first_ns_, last_ns_);
    if (!window || (threads_.empty() && !gauges_.contains("cpu.runnable"))) return;
    Fact fact{.kind = "threads.summary"};
    fact.where.node = node;
    fact.set("steps_only", window->is_of_steps ? 1 : 0);
    if (!threads_.empty()) set_threads(*window, fact);
    fact.set("host_threads", gauge("load.tasks", *window));
    auto usable = gauge("cpu.usable.cores", *window);
    if (!usable) usable = gauge("cpu.count", *window);
    const auto runnable = gauge("cpu.runnable", *window);
    fact.set("usable_cores", usable).set("runnable", runnable);
    const auto host = gauge("cpu.count", *window);
    if (host && runnable && *host > 0) fact.set("runnable_per_core", *runnable / *host);
    const auto system = rate("cpu.system.seconds", *window);
    const auto busy = rate("cpu.busy.seconds", *window);
    if (system && busy && *busy > 0) fact.set("system_pct", std::min(100 * *system / *busy, 100.0));
    fact.set("switches_per_s", rate("cpu.context_switches", *window));
    const auto periods = rate("cgroup.cpu.periods", *window);
    const auto throttled = rate("cgroup.cpu.throttled.periods", *window);
    if (periods && throttled && *periods > 0) fact.set("throttled_pct", std::min(100 * *throttled / *periods, 100.0));
    set_settings(fact);
    out.add(std::move(fact));
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty()) return;
    first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    last_ns_ = std::max(last_ns_, end_ns(points.back()));
    if (series.metric == "process.threads") {
      if (threads_.size() >= kProcessesMax && !threads_.contains(series.instance)) return;
      threads_[series.instance].add(points, series.scale);
    } else if (series.kind == MetricKind::kCounter) {
      rates_[series.metric].add(points, series.scale);
    } else {
      gauges_[series.metric].add(points, series.scale);
    }
  }

  std::optional<double> gauge(std::string_view metric, const SteadyWindow& window) const {
    const auto found = gauges_.find(metric);
    if (found == gauges_.end()) return std::nullopt;
    const auto mean = found->second.mean(window.from_ns, window.to_ns);
    return mean ? mean : found->second.last();
  }
  std::optional<double> rate(std::string_view metric, const SteadyWindow& window) const {
    const auto found = rates_.find(metric);
    return found == rates_.end() ? std::nullopt : found->second.rate(window.from_ns, window.to_ns);
  }

  void set_threads(const SteadyWindow& window, Fact& fact) const {
    double job = 0;
    double main = 0;
    double loaders = 0;
    double loader_threads = 0;
    double loader_most = 0;
    double ranks = 0;
    for (const auto& [label, profile] : threads_) {
      const auto mean = profile.mean(window.from_ns, window.to_ns);
      if (!mean) continue;
      const auto role = roles_.find(label);
      const ProcessRole is = role == roles_.end() ? ProcessRole::kOther : role->second;
      if (is == ProcessRole::kRecorder || is == ProcessRole::kWatcher || is == ProcessRole::kSupervisor) continue;
      job += *mean;
      if (is == ProcessRole::kMain || is == ProcessRole::kRank) {
        main = std::max(main, *mean);
        ranks += 1;
      } else if (is == ProcessRole::kLoader) {
        loaders += 1;
        loader_threads += *mean;
        loader_most = std::max(loader_most, *mean);
      }
    }
    fact.set("job_threads", job).set("loaders", loaders).set("ranks", ranks);
    if (ranks > 0) fact.set("main_threads", main);
    if (loaders > 0) fact.set("loader_threads", loader_threads / loaders).set("loader_threads_max", loader_most);
  }

  void set_settings(Fact& fact) const {
    if (run_ != nullptr) {
      if (const auto found = run_->environment.find("OMP_NUM_THREADS"); found != run_->environment.end())
        fact.set_text("omp_num_threads", found->second);
    }
    if (attributes_ == nullptr) return;
    for (const auto& [key, text] : *attributes_) {
      if (!key.starts_with("process.") || !key.ends_with(".torch") || key.find(".loader") != std::string::npos)
        continue;
      const Result<JsonDocument> document = JsonDocument::parse(text);
      if (document.ok()) fact.set("torch_threads", document->root()["threads"].number());
    }
  }

  const RunInfo* run_;
  const std::map<std::string, std::string>* attributes_;
  std::map<std::string, ProcessRole> roles_;
  std::map<std::string, GaugeProfile> threads_;
  std::map<std::string, GaugeProfile, std::less<>> gauges_;
  std::map<std::string, RateProfile, std::less<>> rates_;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ThreadCountsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_thread_counts{.id = "thread_counts",
                                                           .summary = "Threads of the job against its cores.",
                                                           .produces = kSchemas,
                                                           .metrics = kMetrics,
                                                           .spans = {},
                                                           .takes_minutes = true,
                                                           .open = open};

}  // namespace hotlap
