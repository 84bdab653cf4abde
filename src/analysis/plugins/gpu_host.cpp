// What the machine did while a GPU was idle and while it was busy: second by second, since an average over minutes puts
// a full core and an idle GPU together that never met.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/counter_track.h"
#include "analysis/node_analyzer.h"
#include "analysis/second_join.h"
#include "analysis/steady_window.h"
#include "analysis/widening_buckets.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"seconds", "s", "time in which both were seen"},
    FactField{"steps_only", "1", "1: during typical steps"},
    FactField{"idle_s", "s", "of it, with the GPU below 10 %"},
    FactField{"core_joint", "text",
              "shares of time in percent, \"g:c=share …\": g tenth of GPU use, c tenth of the hottest core's use"},
    FactField{"iowait_joint", "text", "the same with the I/O wait of the core that has most of it"},
    FactField{"idle_core_pct", "%", "hottest core while the GPU is idle, mean"},
    FactField{"busy_core_pct", "%", "hottest core while it works"},
    FactField{"idle_busy_cores", "{core}", "cores busy while the GPU is idle"},
    FactField{"busy_busy_cores", "{core}", "cores busy while it works"},
    FactField{"idle_iowait_cores", "{core}", "cores that wait for I/O while the GPU is idle"},
    FactField{"idle_read_bytes_per_s", "By/s", "read from disks while the GPU is idle"},
    FactField{"busy_read_bytes_per_s", "By/s", "while it works"},
    FactField{"idle_write_bytes_per_s", "By/s", "written to disks while the GPU is idle"},
    FactField{"busy_write_bytes_per_s", "By/s", "while it works"},
    FactField{"idle_receive_bytes_per_s", "By/s", "received while the GPU is idle"},
    FactField{"busy_receive_bytes_per_s", "By/s", "while it works"},
};
constexpr std::array kSchemas{
    FactSchema{"gpu.host", "the machine while one GPU was idle, and while it was busy", kFields}};
constexpr std::array<std::string_view, 8> kMetrics{
    "gpu.busy.percent",   "cpu.core.busy.seconds", "cpu.core.iowait.seconds", "cpu.busy.seconds",
    "cpu.iowait.seconds", "disk.total.read.bytes", "disk.total.write.bytes",  "network.total.receive.bytes",
};

constexpr std::array<std::string_view, 1> kInFull{"gpu.busy.percent"};
constexpr std::size_t kGpusMax = 16;
constexpr std::size_t kTenths = 10;
constexpr std::size_t kBucketsMax = 32;
constexpr std::size_t kStretchesMax = 1024;
constexpr double kIdleBelow = 10;

enum Amount : std::size_t { kCore, kCores, kIowait, kRead, kWrite, kReceive, kAmounts };
struct Mean {
  double sum = 0;
  double seconds = 0;
  void add(std::optional<double> value) {
    if (!value) return;
    sum += *value;
    seconds += 1;
  }
  void add(const Mean& other) {
    sum += other.sum;
    seconds += other.seconds;
  }
  std::optional<double> value() const { return seconds > 0 ? std::optional(sum / seconds) : std::nullopt; }
};
using Joint = std::array<float, kTenths * kTenths>;

// Of one stretch of time.
struct Meeting {
  Joint core{};
  Joint iowait{};
  std::array<Mean, kAmounts> idle{};
  std::array<Mean, kAmounts> busy{};
  double seconds = 0;
  double idle_s = 0;
  Meeting& operator+=(const Meeting& other) {
    for (std::size_t i = 0; i < core.size(); ++i) {
      core[i] += other.core[i];
      iowait[i] += other.iowait[i];
    }
    for (std::size_t i = 0; i < kAmounts; ++i) {
      idle[i].add(other.idle[i]);
      busy[i].add(other.busy[i]);
    }
    seconds += other.seconds;
    idle_s += other.idle_s;
    return *this;
  }
};

std::size_t tenth(double percent) {
  return static_cast<std::size_t>(std::clamp(percent / 10, 0.0, static_cast<double>(kTenths) - 1));
}

class GpuHostAnalyzer final : public NodeAnalyzer<GpuHostAnalyzer> {
 public:
  explicit GpuHostAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    if (series.metric == "gpu.busy.percent") {
      auto known = std::ranges::find(gpus_, series.instance, &Gpu::name);
      if (known == gpus_.end()) {
        if (gpus_.size() >= kGpusMax) return;
        gpus_.push_back({.name = series.instance, .channel = new_channel()});
        known = gpus_.end() - 1;
      }
      const std::size_t channel = known->channel;
      for (const SamplePoint& point : points) {
        if (const auto value = point.value.number()) join_.add_level(channel, point.t_ns, *value * series.scale);
      }
    } else {
      add_counter(series, points);
    }
    if (points.empty()) return;
    first_ns_ = std::min(first_ns_, points.front().t_ns);
    last_ns_ = std::max(last_ns_, points.back().t_ns);
    join_.release([this](std::int64_t second, const SecondJoin::Row& row) { take(second, row, gpus_); });
  }

  // Of these times it is not known what was at the same second: they are left out.
  void on_minutes(const StoredSeries&, std::span<const TierPoint> minutes) override {
    if (minutes.empty()) return;
    last_ns_ = std::max(last_ns_, minutes.back().to_ns);
    const Stretch stretch{minutes.front().from_ns, minutes.back().to_ns};
    const bool goes_on = !left_out_.empty() && stretch.from_ns <= left_out_.back().to_ns + kNsPerS;
    if (!goes_on && left_out_.size() < kStretchesMax) left_out_.push_back(stretch);
    left_out_.back().to_ns = std::max(left_out_.back().to_ns, stretch.to_ns);
  }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto window = steady_or_observed(*table_, first_ns_, last_ns_);
    if (!window || gpus_.empty()) return;
    std::vector<Gpu> gpus = gpus_;
    join_.visit_waiting([&](std::int64_t second, const SecondJoin::Row& row) { take(second, row, gpus); });
    for (const Gpu& gpu : gpus) {
      Meeting sum;
      gpu.meetings.visit(window->from_ns, window->to_ns, [&](const Meeting& one) { sum += one; });
      if (sum.seconds < 1) continue;
      Fact fact{.kind = "gpu.host"};
      fact.where.node = node;
      fact.where.device = gpu.name;
      fact.set("seconds", sum.seconds).set("steps_only", window->is_of_steps ? 1 : 0).set("idle_s", sum.idle_s);
      if (!cores_.empty()) fact.set_text("core_joint", joint_text(sum.core, sum.seconds));
      if (!iowaits_.empty()) fact.set_text("iowait_joint", joint_text(sum.iowait, sum.seconds));
      fact.set("idle_core_pct", sum.idle[kCore].value()).set("busy_core_pct", sum.busy[kCore].value());
      fact.set("idle_busy_cores", sum.idle[kCores].value()).set("busy_busy_cores", sum.busy[kCores].value());
      fact.set("idle_iowait_cores", sum.idle[kIowait].value());
      fact.set("idle_read_bytes_per_s", sum.idle[kRead].value());
      fact.set("busy_read_bytes_per_s", sum.busy[kRead].value());
      fact.set("idle_write_bytes_per_s", sum.idle[kWrite].value());
      fact.set("busy_write_bytes_per_s", sum.busy[kWrite].value());
      fact.set("idle_receive_bytes_per_s", sum.idle[kReceive].value());
      fact.set("busy_receive_bytes_per_s", sum.busy[kReceive].value());
      out.add(std::move(fact));
    }
  }

 private:
  struct Gpu {
    std::string name;
    std::size_t channel = 0;
    WideningBuckets<Meeting> meetings{kBucketsMax};
  };
  struct Stretch {
    std::int64_t from_ns;
    std::int64_t to_ns;
  };
  struct Counter {
    std::size_t channel = 0;
    CounterTrack track;
  };

  std::size_t new_channel() { return channels_++; }

  void add_counter(const StoredSeries& series, std::span<const SamplePoint> points) {
    const auto key = std::pair(series.metric, series.instance);
    auto found = counters_.find(key);
    if (found == counters_.end()) {
      if (channels_ >= SecondJoin::kChannelsMax) return;
      found = counters_.emplace(key, Counter{.channel = new_channel()}).first;
      if (series.metric == "cpu.core.busy.seconds") cores_.push_back(found->second.channel);
      if (series.metric == "cpu.core.iowait.seconds") iowaits_.push_back(found->second.channel);
    }
    Counter& counter = found->second;
    counter.track.add(points, [&](std::int64_t from_ns, std::int64_t to_ns, double grown) {
      join_.add_amount(counter.channel, from_ns, to_ns, grown * series.scale);
    });
  }

  std::optional<double> of(std::string_view metric, const SecondJoin::Row& row) const {
    const auto found = counters_.find(std::pair(std::string(metric), std::string()));
    return found == counters_.end() ? std::nullopt : row.value(found->second.channel);
  }

  static std::optional<double> highest(const std::vector<std::size_t>& channels, const SecondJoin::Row& row) {
    std::optional<double> most;
    for (const std::size_t channel : channels) {
      if (const auto value = row.value(channel)) most = std::max(most.value_or(*value), *value);
    }
    return most;
  }

  bool is_left_out(std::int64_t t_ns) const {
    return std::ranges::any_of(left_out_, [&](const Stretch& one) { return t_ns >= one.from_ns && t_ns < one.to_ns; });
  }

  void take(std::int64_t second, const SecondJoin::Row& row, std::vector<Gpu>& gpus) const {
    if (is_left_out(second * kNsPerS)) return;
    const auto core = highest(cores_, row);
    const auto iowait = highest(iowaits_, row);
    const std::array<std::optional<double>, kAmounts> amounts{core ? std::optional(100 * *core) : std::nullopt,
                                                              of("cpu.busy.seconds", row),
                                                              of("cpu.iowait.seconds", row),
                                                              of("disk.total.read.bytes", row),
                                                              of("disk.total.write.bytes", row),
                                                              of("network.total.receive.bytes", row)};
    for (Gpu& gpu : gpus) {
      const auto busy = row.value(gpu.channel);
      if (!busy) continue;
      Meeting& meeting = gpu.meetings.at(second * kNsPerS);
      meeting.seconds += 1;
      const bool is_idle = *busy < kIdleBelow;
      if (is_idle) meeting.idle_s += 1;
      if (core) meeting.core[tenth(*busy) * kTenths + tenth(100 * *core)] += 1;
      if (iowait) meeting.iowait[tenth(*busy) * kTenths + tenth(100 * *iowait)] += 1;
      for (std::size_t i = 0; i < kAmounts; ++i) (is_idle ? meeting.idle : meeting.busy)[i].add(amounts[i]);
    }
  }

  static std::string joint_text(const Joint& joint, double seconds) {
    std::string text;
    for (std::size_t g = 0; g < kTenths; ++g) {
      for (std::size_t h = 0; h < kTenths; ++h) {
        const double share = 100 * static_cast<double>(joint[g * kTenths + h]) / seconds;
        if (share > 0) text += format("{}{}:{}={:.3g}", text.empty() ? "" : " ", g, h, share);
      }
    }
    return text;
  }

  SecondJoin join_;
  std::size_t channels_ = 0;
  std::vector<Gpu> gpus_;
  std::map<std::pair<std::string, std::string>, Counter> counters_;
  std::vector<Stretch> left_out_;  // in time
  std::vector<std::size_t> cores_;
  std::vector<std::size_t> iowaits_;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<GpuHostAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_gpu_host{.id = "gpu_host",
                                                      .summary = "What the machine did while a GPU was idle.",
                                                      .produces = kSchemas,
                                                      .metrics = kMetrics,
                                                      .spans = {},
                                                      .takes_minutes = true,
                                                      .in_full = kInFull,
                                                      .open = open};

}  // namespace hotlap
