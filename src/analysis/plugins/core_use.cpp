// How the cores that the job may use were used during its typical steps: overall, by role, by core and by thread,
// since a single full core hides behind a low average.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/time_profile.h"
#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::array kSummaryFields{
    FactField{"window_s", "s", "length of the window: typical steps, or the whole recording without steps"},
    FactField{"steps_only", "1", "1: the window is that of typical steps"},
    FactField{"host_cores", "{core}", "cores online"},
    FactField{"usable_cores", "{core}", "what affinity and quota leave to the job"},
    FactField{"host_busy_cores", "{core}", "cores busy on the machine, mean"},
    FactField{"busy_cores", "{core}",
              "of the usable cores, those in use, mean; with a limit, by the job and its group"},
    FactField{"job_cores", "{core}", "of them, used by the job"},
    FactField{"outside_cores", "{core}", "of the usable cores, those that others take"},
    FactField{"main_cores", "{core}", "used by the training processes"},
    FactField{"loader_cores", "{core}", "used by loader workers"},
    FactField{"other_cores", "{core}", "used by other processes of the job"},
    FactField{"busy_pct", "%", "busy cores of usable cores"},
    FactField{"full_share_pct", "%", "share of time in which at least 95 % of the usable cores was busy"},
    FactField{"runnable", "{task}", "tasks that run or wait for a core, mean"},
    FactField{"iowait_cores", "{core}", "cores idle while I/O was awaited"},
    FactField{"steal_pct", "%", "of the cores' time, taken by the hypervisor for others"},
    FactField{"quota_cores", "{core}", "CPU quota of the control group, where it has one"},
    FactField{"throttled_pct", "%", "share of the quota's periods in which it held the job up"},
    FactField{"hottest_core", "text", "missing where the job may use some cores only: it may be another's"},
    FactField{"hottest_core_pct", "%", "mean use of that core"},
    FactField{"hot_share_pct", "%", "share of time in which a core was at least 95 % busy and the average below half"},
    FactField{"next_core_pct", "%", "mean use of the core after it"},
    FactField{"main_wait_pct", "%", "share of time in which the main thread could run, but had no core"},
};
constexpr std::array kProcessFields{
    FactField{"process", "text", "label"},
    FactField{"role", "text", ""},
    FactField{"cores", "{core}", "mean use"},
    FactField{"main_thread_cores", "{core}", "of its main thread"},
    FactField{"main_wait_pct", "%", "share of time in which its main thread could run, but had no core"},
};
constexpr std::array kThreadFields{
    FactField{"process", "text", "label of its process"},
    FactField{"thread", "text", "name of the thread"},
    FactField{"busy_pct", "%", "mean use of one core"},
    FactField{"hot_share_pct", "%", "share of time in which it filled a core"},
};
constexpr std::array kSchemas{
    FactSchema{"core_use.summary", "use of the cores", kSummaryFields},
    FactSchema{"core_use.process", "one process of the job", kProcessFields},
    FactSchema{"core_use.thread", "one of the hottest threads", kThreadFields},
};
constexpr std::array<std::string_view, 16> kMetrics{
    "cpu.busy.seconds",
    "cpu.iowait.seconds",
    "cpu.steal.seconds",
    "cpu.count",
    "cpu.usable.cores",
    "cpu.runnable",
    "cpu.core.busy.seconds",
    "cgroup.cpu.limit.cores",
    "cgroup.cpu.usage.seconds",
    "cgroup.cpu.throttled.seconds",
    "cgroup.cpu.throttled.periods",
    "cgroup.cpu.periods",
    "process.cpu.seconds",
    "process.main_thread.cpu.seconds",
    "process.main_thread.wait.seconds",
    "process.thread.cpu.seconds",
};

constexpr std::size_t kSeriesMax = 4096;
constexpr std::size_t kProcessFactsMax = 64;
constexpr std::size_t kThreadFactsMax = 5;
constexpr double kFullShare = 0.95;
constexpr double kLowAverage = 0.5;
constexpr double kThreadBusyMin = 0.2;
constexpr double kLookedShareMin = 0.1;  // of a stretch of time, to speak for all of it
constexpr double kMinWindowS = 1;
constexpr double kGroupSlack = 1.1;  // counters of group, machine and processes are read at different moments

struct Window {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  bool is_of_steps = false;
  double seconds() const { return static_cast<double>(to_ns - from_ns) / static_cast<double>(kNsPerS); }
};

class CoreUseAnalyzer final : public NodeAnalyzer<CoreUseAnalyzer> {
 public:
  explicit CoreUseAnalyzer(const RunDescription& run) : NodeAnalyzer(run) { on_processes(run.processes); }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) roles_[slot_label(process)] = process.role;
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto found = window();
    if (!found) return;
    Fact fact{.kind = "core_use.summary"};
    fact.where.node = node;
    fact.set("window_s", found->seconds()).set("steps_only", found->is_of_steps ? 1 : 0);
    add_processes(*found, fact, out);
    const Cores cores = cores_of(*found, fact.number("job_cores"));
    set_totals(*found, cores, fact);
    if (!cores.is_limited) set_hottest_core(*found, cores, fact);
    add_threads(*found, fact.where, out);
    out.add(std::move(fact));
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty()) return;
    first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    last_ns_ = std::max(last_ns_, end_ns(points.back()));
    if (series.kind == MetricKind::kCounter) {
      const auto key = std::pair(series.metric, series.instance);
      if (rates_.size() >= kSeriesMax && !rates_.contains(key)) return;
      rates_[key].add(points, series.scale);
    } else if (series.instance.empty()) {
      gauges_[series.metric].add(points, series.scale);
    }
  }

  const RateProfile* rate_of(std::string_view metric, std::string_view instance = {}) const {
    const auto found = rates_.find(std::pair(std::string(metric), std::string(instance)));
    return found == rates_.end() ? nullptr : &found->second;
  }
  std::optional<double> rate(std::string_view metric, const Window& window, std::string_view instance = {}) const {
    const RateProfile* profile = rate_of(metric, instance);
    return profile == nullptr ? std::nullopt : profile->rate(window.from_ns, window.to_ns);
  }
  std::optional<double> gauge(std::string_view metric, const Window& window) const {
    const auto found = gauges_.find(metric);
    if (found == gauges_.end()) return std::nullopt;
    const auto mean = found->second.mean(window.from_ns, window.to_ns);
    return mean ? mean : found->second.last();
  }

  std::optional<Window> window() const {
    for (const StepTable::Entry& entry : table_->entries()) {
      const SteadySteps& steady = entry.steps->steady();
      const Window window{steady.from_ns, steady.to_ns, true};
      if (window.seconds() >= kMinWindowS) return window;
      break;
    }
    const RateProfile* busy = rate_of("cpu.busy.seconds");
    if (busy == nullptr || busy->end_ns() <= busy->begin_ns()) return std::nullopt;
    return Window{busy->begin_ns(), busy->end_ns(), false};
  }

  // What the job may use, and who uses it.
  struct Cores {
    std::optional<double> host;
    std::optional<double> usable;
    std::optional<double> host_busy;
    std::optional<double> busy;
    std::optional<double> outside;
    std::vector<const RateProfile*> used_by;  // whose amounts make up `busy` over time
    bool is_limited = false;                  // to some of the machine's cores, by quota or affinity
  };

  Cores cores_of(const Window& window, std::optional<double> job) const {
    Cores cores{.host = gauge("cpu.count", window),
                .usable = gauge("cpu.usable.cores", window),
                .host_busy = rate("cpu.busy.seconds", window)};
    if (!cores.usable) cores.usable = cores.host;
    cores.is_limited = cores.host && cores.usable && *cores.usable < *cores.host - 0.01;
    if (!cores.is_limited) {
      cores.busy = cores.host_busy;
      if (cores.busy && job) cores.outside = std::max(*cores.busy - *job, 0.0);
      if (const RateProfile* busy = rate_of("cpu.busy.seconds")) cores.used_by.push_back(busy);
      return cores;
    }
    // A group that holds more than the job may use is not the one that limits it (affinity inside a large group).
    const RateProfile* group = rate_of("cgroup.cpu.usage.seconds");
    const auto in_group = rate("cgroup.cpu.usage.seconds", window);
    if (in_group && *in_group <= *cores.usable * kGroupSlack && *in_group >= job.value_or(0) * (2 - kGroupSlack)) {
      cores.busy = in_group;
      cores.used_by.push_back(group);
    } else if (job) {
      cores.busy = job;
      cores.used_by = job_profiles();
    }
    if (!cores.busy || !job) return cores;
    // Others in the group take of its share; others on the machine only where they leave too little of it.
    double outside = std::max(*cores.busy - *job, 0.0);
    if (cores.host_busy) {
      const double left = *cores.host - std::max(*cores.host_busy - *job, 0.0);
      outside = std::max(outside, std::min(*cores.usable - left, *cores.usable));
    }
    cores.outside = outside;
    return cores;
  }

  std::vector<const RateProfile*> job_profiles() const {
    std::vector<const RateProfile*> all;
    for (const auto& [key, profile] : rates_) {
      if (key.first == "process.cpu.seconds" && is_of_job(role_of(key.second))) all.push_back(&profile);
    }
    return all;
  }

  void set_totals(const Window& window, const Cores& cores, Fact& fact) const {
    fact.set("host_cores", cores.host)
        .set("usable_cores", cores.usable)
        .set("host_busy_cores", cores.host_busy)
        .set("busy_cores", cores.busy)
        .set("outside_cores", cores.outside)
        .set("quota_cores", gauge("cgroup.cpu.limit.cores", window))
        .set("runnable", gauge("cpu.runnable", window))
        .set("iowait_cores", rate("cpu.iowait.seconds", window));
    if (const auto steal = rate("cpu.steal.seconds", window); steal && cores.host && *cores.host > 0) {
      fact.set("steal_pct", 100 * *steal / *cores.host);
    }
    const auto periods = rate("cgroup.cpu.periods", window);
    const auto throttled = rate("cgroup.cpu.throttled.periods", window);
    if (periods && throttled && *periods > 0) fact.set("throttled_pct", 100 * *throttled / *periods);
    if (!cores.busy || !cores.usable || *cores.usable <= 0) return;
    fact.set("busy_pct", std::min(100 * *cores.busy / *cores.usable, 100.0));
    fact.set("full_share_pct", full_share_pct(window, cores));
  }

  // By buckets, as the count of usable cores is known only now.
  double full_share_pct(const Window& window, const Cores& cores) const {
    const RateProfile& observed = *cores.used_by.front();
    const std::int64_t width_ns = observed.width_ns();
    double full_s = 0;
    double seen_s = 0;
    for (std::int64_t t = window.from_ns; t < window.to_ns; t += width_ns) {
      const std::int64_t end_ns = std::min(t + width_ns, window.to_ns);
      const double seen = observed.observed_s(t, end_ns);
      seen_s += seen;
      double used_s = 0;
      for (const RateProfile* profile : cores.used_by) used_s += profile->amount(t, end_ns);
      if (seen > 0 && used_s / seen >= kFullShare * *cores.usable) full_s += seen;
    }
    return seen_s > 0 ? 100 * full_s / seen_s : 0;
  }

  void set_hottest_core(const Window& window, const Cores& all, Fact& fact) const {
    std::vector<std::pair<double, std::string>> cores;
    for (const auto& [key, profile] : rates_) {
      if (key.first != "cpu.core.busy.seconds") continue;
      if (const auto use = profile.rate(window.from_ns, window.to_ns)) cores.emplace_back(*use, key.second);
    }
    if (cores.empty()) return;
    std::ranges::stable_sort(cores, std::greater{}, &std::pair<double, std::string>::first);
    fact.set_text("hottest_core", cores[0].second)
        .set("hottest_core_pct", std::min(100 * cores[0].first, 100.0))
        .set("hot_share_pct", hot_share_pct(window, all));
    if (cores.size() > 1) fact.set("next_core_pct", std::min(100 * cores[1].first, 100.0));
  }

  // A thread moves between cores: what counts is that any core is full while the average is low.
  double hot_share_pct(const Window& window, const Cores& all) const {
    const RateProfile* busy = rate_of("cpu.busy.seconds");
    if (!all.usable || busy == nullptr) return 0;
    std::vector<const RateProfile*> cores;
    for (const auto& [key, profile] : rates_) {
      if (key.first == "cpu.core.busy.seconds") cores.push_back(&profile);
    }
    const std::int64_t width_ns = busy->width_ns();
    double seen_s = 0;
    double low_s = 0;
    double looked_s = 0;  // of the time with a low average, what cores were looked at closely in
    double hot_s = 0;
    for (std::int64_t t = window.from_ns; t < window.to_ns; t += width_ns) {
      const std::int64_t end_ns = std::min(t + width_ns, window.to_ns);
      const double observed = busy->observed_s(t, end_ns);
      seen_s += observed;
      if (observed <= 0 || busy->amount(t, end_ns) / observed >= kLowAverage * *all.usable) continue;
      low_s += observed;
      const auto hottest = hottest_s(cores, t, end_ns);
      if (!hottest) continue;
      looked_s += observed;
      hot_s += std::min(*hottest, observed);
    }
    return looked_s > 0 ? 100 * hot_s / looked_s * (low_s / seen_s) : 0;
  }

  // For how long the core was full that was so the longest, from the time in which cores were looked at closely;
  // nothing where none was.
  static std::optional<double> hottest_s(const std::vector<const RateProfile*>& cores, std::int64_t from_ns,
                                         std::int64_t to_ns) {
    std::optional<double> hottest = cores.empty() ? std::optional(0.0) : std::nullopt;
    for (const RateProfile* core : cores) {
      const double observed = core->observed_s(from_ns, to_ns);
      const double looked = core->looked_s(from_ns, to_ns);
      if (observed > 0 && looked < kLookedShareMin * observed) continue;
      const double hot = looked > 0 ? core->hot_s(from_ns, to_ns) * (observed / looked) : 0;
      hottest = std::max(hottest.value_or(0), hot);
    }
    return hottest;
  }

  ProcessRole role_of(const std::string& label) const {
    const auto found = roles_.find(label);
    return found == roles_.end() ? ProcessRole::kOther : found->second;
  }

  static bool is_of_job(ProcessRole role) {
    return role != ProcessRole::kRecorder && role != ProcessRole::kWatcher && role != ProcessRole::kSupervisor;
  }

  void add_processes(const Window& window, Fact& summary, FactTable& out) const {
    double main = 0;
    double loader = 0;
    double other = 0;
    bool is_any = false;
    std::vector<Fact> facts;
    std::optional<double> main_wait;
    for (const auto& [key, profile] : rates_) {
      if (key.first != "process.cpu.seconds") continue;
      const ProcessRole role = role_of(key.second);
      if (!is_of_job(role)) continue;
      is_any = true;
      const double cores = profile.amount(window.from_ns, window.to_ns) / window.seconds();
      const bool is_training = role == ProcessRole::kMain || role == ProcessRole::kRank;
      (is_training ? main : role == ProcessRole::kLoader ? loader : other) += cores;
      Fact fact{.kind = "core_use.process", .where = summary.where};
      fact.set_text("process", key.second).set_text("role", std::string(to_string(role))).set("cores", cores);
      fact.set("main_thread_cores", rate("process.main_thread.cpu.seconds", window, key.second));
      if (const auto wait = rate("process.main_thread.wait.seconds", window, key.second)) {
        fact.set("main_wait_pct", 100 * *wait);
        if (is_training) main_wait = std::max(main_wait.value_or(0), *wait);
      }
      facts.push_back(std::move(fact));
    }
    std::ranges::stable_sort(facts, std::greater{}, [](const Fact& fact) { return fact.number("cores").value_or(0); });
    if (facts.size() > kProcessFactsMax) facts.resize(kProcessFactsMax);
    for (Fact& fact : facts) out.add(std::move(fact));
    if (!is_any) return;
    summary.set("main_cores", main).set("loader_cores", loader).set("other_cores", other);
    summary.set("job_cores", main + loader + other);
    if (main_wait) summary.set("main_wait_pct", 100 * *main_wait);
  }

  void add_threads(const Window& window, const Where& where, FactTable& out) const {
    std::vector<Fact> facts;
    for (const auto& [key, profile] : rates_) {
      if (key.first != "process.thread.cpu.seconds") continue;
      const auto use = profile.rate(window.from_ns, window.to_ns);
      if (!use || *use < kThreadBusyMin) continue;
      // "main/thread pt_data_pin"
      const std::size_t slash = key.second.find("/thread ");
      Fact fact{.kind = "core_use.thread", .where = where};
      fact.set_text("process", key.second.substr(0, slash))
          .set_text("thread", slash == std::string::npos ? key.second : key.second.substr(slash + 8))
          .set("busy_pct", std::min(100 * *use, 100.0));
      if (const auto hot = profile.hot_share(window.from_ns, window.to_ns)) fact.set("hot_share_pct", 100 * *hot);
      facts.push_back(std::move(fact));
    }
    std::ranges::stable_sort(facts, std::greater{},
                             [](const Fact& fact) { return fact.number("busy_pct").value_or(0); });
    if (facts.size() > kThreadFactsMax) facts.resize(kThreadFactsMax);
    for (Fact& fact : facts) out.add(std::move(fact));
  }

  std::map<std::string, ProcessRole> roles_;
  std::map<std::pair<std::string, std::string>, RateProfile> rates_;  // by metric and instance
  std::map<std::string, GaugeProfile, std::less<>> gauges_;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<CoreUseAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_core_use{.id = "core_use",
                                                      .summary = "How the cores were used: by role, core and thread.",
                                                      .produces = kSchemas,
                                                      .metrics = kMetrics,
                                                      .spans = {},
                                                      .takes_minutes = true,
                                                      .open = open};

}  // namespace hotlap
