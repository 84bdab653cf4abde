// Memory of the machine and of each process of the job: what is left under the limit that binds, and whether it grows:
// a leak, a pool, one step, stairs at each epoch. Page cache is no use of memory: it is given back.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/growth.h"
#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"
#include "analysis/time_profile.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::array kSummaryFields{
    FactField{"limit_bytes", "By", "what the job may use: its group's limit, or the machine's memory"},
    FactField{"limited_by", "text", "group or machine"},
    FactField{"used_bytes", "By",
              "working set at the window's end: without page cache not used lately; else total minus available"},
    FactField{"peak_bytes", "By", "the most of it"},
    FactField{"peak_pct", "%", "the same, of the limit"},
    FactField{"headroom_bytes", "By", "limit minus peak"},
    FactField{"steps_only", "1", "1: growth is that during typical steps"},
    FactField{"window_s", "s", "time over which growth was judged"},
    FactField{"shape", "text", "flat, leak, stairs, step, pool or spikes; absent: too short to say"},
    FactField{"growth_bytes_per_s", "By/s", "slope of the floor, of a leak or stairs"},
    FactField{"growth_half_width", "By/s", "half of its 95 % interval"},
    FactField{"rises", "{rise}", "of steps and stairs"},
    FactField{"rise_bytes", "By", "size of one"},
    FactField{"first_bytes", "By", "its floor at the window's begin"},
    FactField{"last_bytes", "By", "and at its end"},
    FactField{"to_limit_s", "s", "time until the limit is reached, if it goes on like this"},
    FactField{"swap_in_pages_per_s", "{page}/s", "read from swap"},
    FactField{"memory_pressure_pct", "%", "share of time in which some task waited for memory"},
    FactField{"full_pressure_pct", "%", "share of time in which all tasks that had work waited for memory"},
    FactField{"held_bytes", "By", "of the group at the window's end, what cannot be given back: anonymous and shared"},
    FactField{"held_pct", "%", "the same, of the limit"},
    FactField{"available_pct", "%", "of the machine's memory, what can still be had, mean"},
    FactField{"oom_kills", "{process}", "processes killed because memory ran out"},
    FactField{"group_kills", "{process}", "of them, those told by the control group: its limit was reached"},
    FactField{"kill_s", "s", "when the first was, from the first sample"},
    FactField{"kill_before_bytes", "By", "the most in use in the 15 s before it"},
    FactField{"kill_after_bytes", "By", "in use in the 10 s after it, mean"},
};
constexpr std::array kProcessFields{
    FactField{"process", "text", "label, or \"loader workers\": all of them together"},
    FactField{"role", "text", ""},
    FactField{"processes", "{process}", "that it stands for"},
    FactField{"measure", "text", "PSS (shared pages divided) or RSS (counted in full)"},
    FactField{"used_bytes", "By", "now"},
    FactField{"peak_bytes", "By", ""},
    FactField{"shape", "text", "as of host_memory.summary"},
    FactField{"growth_bytes_per_s", "By/s", "slope of the floor, of a leak or stairs"},
    FactField{"growth_half_width", "By/s", "half of its 95 % interval"},
    FactField{"growth_bytes_per_step", "By", "the same per step"},
    FactField{"growth_from_s", "s", "when it began, or the step was, from the window's begin"},
    FactField{"rises", "{rise}", "of steps and stairs"},
    FactField{"rise_bytes", "By", "size of one"},
};
constexpr std::array kSchemas{
    FactSchema{"host_memory.summary", "memory that the job may use", kSummaryFields},
    FactSchema{"host_memory.process", "memory of one process of the job, or of its loader workers", kProcessFields},
};
constexpr std::array<std::string_view, 14> kMetrics{
    "memory.total.bytes",
    "memory.working_set.bytes",
    "memory.available.bytes",
    "cgroup.memory.limit.bytes",
    "cgroup.memory.working_set.bytes",
    "process.memory.rss.bytes",
    "process.memory.pss.bytes",
    "memory.swap_in.pages",
    "pressure.memory.some.seconds",
    "pressure.memory.full.seconds",
    "cgroup.memory.anon.bytes",
    "cgroup.memory.shmem.bytes",
    "cgroup.pressure.memory.some.seconds",
    "cgroup.pressure.memory.full.seconds",
};
constexpr std::size_t kProcessesMax = 512;
constexpr double kNoiseMin = 64 * 1024 * 1024.0;
constexpr double kNoiseShare = 0.005;
constexpr std::string_view kLoaders = "loader workers";
constexpr std::int64_t kBeforeKillNs = 15 * kNsPerS;
constexpr std::int64_t kAfterKillNs = 10 * kNsPerS;

class HostMemoryAnalyzer final : public NodeAnalyzer<HostMemoryAnalyzer> {
 public:
  explicit HostMemoryAnalyzer(const RunDescription& run) : NodeAnalyzer(run) { on_processes(run.processes); }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) roles_[slot_label(process)] = process.role;
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  void on_event(const Event& event) override {
    if (event.kind != EventKind::kOomKill || event.value <= 0) return;
    (event.text == "cgroup" ? group_kills_ : host_kills_) += static_cast<double>(event.value);
    kill_ns_ = std::min(kill_ns_, event.t_ns);
  }

  std::int64_t seen_ns() const {
    const LevelTrack& of_machine = machine_.is_empty() ? available_ : machine_;
    const LevelTrack& seen = of_machine.is_empty() ? group_ : of_machine;
    return seen.end_ns() - seen.begin_ns();
  }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const LevelTrack machine = machine_used();
    const LevelTrack& seen = machine.is_empty() ? group_ : machine;  // a container's files know nothing of the machine
    std::int64_t from_ns = seen.is_empty() ? INT64_MAX : seen.begin_ns();
    std::int64_t to_ns = seen.is_empty() ? INT64_MIN : seen.end_ns();
    for (const auto& [label, process] : processes_) {
      if (process.rss.is_empty()) continue;
      from_ns = std::min(from_ns, process.rss.begin_ns());
      to_ns = std::max(to_ns, process.rss.end_ns());
    }
    const auto window = steady_or_observed(*table_, from_ns, to_ns);
    if (!window) return;
    if (machine.is_empty() && group_.is_empty() && !processes_.empty()) {
      // Nothing but processes was seen: how much there is is not known, but whether it grows is.
      Fact fact{.kind = "host_memory.summary"};
      fact.where.node = node;
      fact.set("steps_only", window->is_of_steps ? 1 : 0).set("window_s", window->seconds());
      out.add(std::move(fact));
    }
    add_summary(node, machine, *window, out);
    add_processes(node, *window, out);
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (!points.empty()) first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    if (series.kind == MetricKind::kCounter) {
      if (rates_.size() < kMetrics.size() || rates_.contains(series.metric))
        rates_[series.metric].add(points, series.scale);
      return;
    }
    const bool is_pss = series.metric == "process.memory.pss.bytes";
    const bool is_process = is_pss || series.metric == "process.memory.rss.bytes";
    if (is_process && processes_.size() >= kProcessesMax && !processes_.contains(series.instance)) return;
    for (const Point& point : points) {
      const auto number = last_value(point);
      if (!number) continue;
      if (is_process) {
        Process& process = processes_[series.instance];
        (is_pss ? process.pss : process.rss).add(point, series.scale);
      } else if (series.metric == "memory.working_set.bytes") {
        machine_.add(point, series.scale);
      } else if (series.metric == "memory.available.bytes") {
        available_.add(point, series.scale);
      } else if (series.metric == "cgroup.memory.working_set.bytes") {
        group_.add(point, series.scale);
      } else if (series.metric == "cgroup.memory.anon.bytes") {
        anon_.add(point, series.scale);
      } else if (series.metric == "cgroup.memory.shmem.bytes") {
        shared_.add(point, series.scale);
      } else {
        (series.metric == "memory.total.bytes" ? total_ : limit_) = *number * series.scale;
      }
    }
  }

  struct Process {
    LevelTrack rss;
    LevelTrack pss;
  };

  double noise() const { return std::max(kNoiseMin, kNoiseShare * limit_.value_or(total_.value_or(0))); }

  // A capture may lack the page cache by age (Inactive(file)): then what the kernel says can still be had is left.
  LevelTrack machine_used() const { return machine_.is_empty() && total_ ? available_.taken_of(*total_) : machine_; }

  void add_summary(const std::string& node, const LevelTrack& machine, const SteadyWindow& window,
                   FactTable& out) const {
    // A limit above what the machine has binds nobody.
    const bool by_group = limit_ && !group_.is_empty() && (!total_ || *limit_ < *total_);
    const LevelTrack& used = by_group ? group_ : machine;
    const auto limit = by_group ? limit_ : total_;
    if (used.is_empty()) return;
    Fact fact{.kind = "host_memory.summary"};
    fact.where.node = node;
    const auto peak = used.peak(INT64_MIN / 2, INT64_MAX);
    fact.set("limit_bytes", limit).set("used_bytes", level_at_end(used, window)).set("peak_bytes", peak);
    fact.set_text("limited_by", by_group ? "group" : "machine");
    set_kills(used, fact);
    fact.set("steps_only", window.is_of_steps ? 1 : 0).set("window_s", window.seconds());
    if (limit && peak && *limit > 0)
      fact.set("peak_pct", 100 * *peak / *limit).set("headroom_bytes", std::max(*limit - *peak, 0.0));
    fact.set("swap_in_pages_per_s", rate("memory.swap_in.pages", window));
    set_shortage(by_group, limit, window, fact);
    if (const auto growth = used.growth(window.from_ns, window.to_ns, noise())) {
      fact.set_text("shape", std::string(to_string(growth->shape)));
      if (growth->rises > 0) fact.set("rises", static_cast<double>(growth->rises)).set("rise_bytes", growth->rise);
      fact.set("first_bytes", growth->first).set("last_bytes", growth->last);
      if (growth->per_s > 0) {
        fact.set("growth_bytes_per_s", growth->per_s).set("growth_half_width", growth->half_width);
        if (limit) fact.set("to_limit_s", std::max(*limit - growth->last, 0.0) / growth->per_s);
      }
    }
    out.add(std::move(fact));
  }

  std::optional<double> rate(std::string_view metric, const SteadyWindow& window) const {
    const auto found = rates_.find(metric);
    return found == rates_.end() ? std::nullopt : found->second.rate(window.from_ns, window.to_ns);
  }

  // A kill by the group's limit may be told by the machine's counter, too.
  void set_kills(const LevelTrack& used, Fact& fact) const {
    fact.set("oom_kills", std::max(group_kills_, host_kills_));
    if (kill_ns_ == INT64_MAX || first_ns_ > kill_ns_) return;
    fact.set("group_kills", group_kills_);
    fact.set("kill_s", static_cast<double>(kill_ns_ - first_ns_) / static_cast<double>(kNsPerS));
    fact.set("kill_before_bytes", used.peak(kill_ns_ - kBeforeKillNs, kill_ns_));
    fact.set("kill_after_bytes", used.mean(kill_ns_, kill_ns_ + kAfterKillNs));
  }

  void set_shortage(bool by_group, std::optional<double> limit, const SteadyWindow& window, Fact& fact) const {
    const auto percent = [](std::optional<double> share) {
      return share ? std::optional(std::min(100 * *share, 100.0)) : std::nullopt;
    };
    const bool has_own = by_group && rates_.contains("cgroup.pressure.memory.some.seconds");
    const std::string from = has_own ? "cgroup.pressure.memory" : "pressure.memory";
    fact.set("memory_pressure_pct", percent(rate(from + ".some.seconds", window)));
    fact.set("full_pressure_pct", percent(rate(from + ".full.seconds", window)));
    if (const auto left = available_.mean(window.from_ns, window.to_ns); left && total_ && *total_ > 0)
      fact.set("available_pct", 100 * *left / *total_);
    if (!by_group || anon_.is_empty() || !limit || *limit <= 0) return;
    const double held = level_at_end(anon_, window).value_or(0) + level_at_end(shared_, window).value_or(0);
    fact.set("held_bytes", held).set("held_pct", 100 * held / *limit);
  }

  // At the window's end: after it the job may be over.
  static std::optional<double> level_at_end(const LevelTrack& track, const SteadyWindow& window) {
    const auto level = track.mean(window.to_ns - kNsPerS, window.to_ns);
    return level ? level : track.last();
  }

  void add_processes(const std::string& node, const SteadyWindow& window, FactTable& out) const {
    const auto entries = table_->entries();
    const double steps_per_s =
        entries.empty() ? 0 : static_cast<double>(entries.front().steps->steady().sums.steps) / window.seconds();
    std::vector<const LevelTrack*> rss;
    std::vector<const LevelTrack*> pss;
    for (const auto& [label, process] : processes_) {
      const auto role = roles_.find(label);
      const ProcessRole is = role == roles_.end() ? ProcessRole::kOther : role->second;
      if (is == ProcessRole::kRecorder || is == ProcessRole::kWatcher || is == ProcessRole::kSupervisor) continue;
      if (is == ProcessRole::kLoader) {
        if (!process.rss.is_empty()) rss.push_back(&process.rss);
        if (!process.pss.is_empty()) pss.push_back(&process.pss);
        continue;
      }
      // What a process shares with its workers is not twice there. It is looked at rarely: in a short run RSS tells
      // more.
      const bool by_pss =
          !process.pss.is_empty() && (process.rss.is_empty() || process.pss.growth(window.from_ns, window.to_ns, 0));
      add_process(label, is, 1, by_pss ? process.pss : process.rss, by_pss, node, window, steps_per_s, out);
    }
    if (rss.empty()) return;
    // Copies that workers make of shared pages show in PSS; RSS counts those pages from the beginning on.
    const bool by_pss = pss.size() == rss.size();
    const LevelTrack sum = LevelTrack::sum(by_pss ? pss : rss);
    add_process(std::string(kLoaders), ProcessRole::kLoader, rss.size(), sum, by_pss, node, window, steps_per_s, out);
  }

  void add_process(const std::string& label, ProcessRole role, std::size_t count, const LevelTrack& track, bool by_pss,
                   const std::string& node, const SteadyWindow& window, double steps_per_s, FactTable& out) const {
    if (track.is_empty()) return;
    Fact fact{.kind = "host_memory.process"};
    fact.where.node = node;
    fact.set_text("process", label).set_text("role", std::string(to_string(role)));
    fact.set("processes", static_cast<double>(count)).set_text("measure", by_pss ? "PSS" : "RSS");
    fact.set("used_bytes", track.last()).set("peak_bytes", track.peak(INT64_MIN / 2, INT64_MAX));
    if (const auto growth = track.growth(window.from_ns, window.to_ns, noise() / 2)) {
      fact.set_text("shape", std::string(to_string(growth->shape))).set("growth_from_s", growth->from_s);
      if (growth->rises > 0) fact.set("rises", static_cast<double>(growth->rises)).set("rise_bytes", growth->rise);
      if (growth->per_s > 0) {
        fact.set("growth_bytes_per_s", growth->per_s).set("growth_half_width", growth->half_width);
        if (steps_per_s > 0) fact.set("growth_bytes_per_step", growth->per_s / steps_per_s);
      }
    }
    out.add(std::move(fact));
  }

  std::map<std::string, ProcessRole> roles_;
  std::map<std::string, Process> processes_;
  LevelTrack machine_;
  LevelTrack available_;
  LevelTrack group_;
  std::optional<double> total_;
  std::optional<double> limit_;
  LevelTrack anon_;  // of the group
  LevelTrack shared_;
  std::map<std::string, RateProfile, std::less<>> rates_;
  double group_kills_ = 0;
  double host_kills_ = 0;
  std::int64_t kill_ns_ = INT64_MAX;  // of the first
  std::int64_t first_ns_ = INT64_MAX;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<HostMemoryAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_host_memory{.id = "host_memory",
                                                         .summary = "Memory of the job, and whether it grows.",
                                                         .produces = kSchemas,
                                                         .metrics = kMetrics,
                                                         .spans = {},
                                                         .takes_minutes = true,
                                                         .open = open};

}  // namespace hotlap
