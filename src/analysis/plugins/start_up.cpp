// From the job's start to its first step: what it waited for, and what was downloaded meanwhile.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/time_profile.h"
#include "base/clock.h"
#include "model/trace_source.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"has_step", "1", "1: a step was seen"},
    FactField{"before_step_s", "s", "from the job's start to its first step; without one, up to now"},
    FactField{"first_step_s", "s", "time of the first step"},
    FactField{"download_s", "s", "in the phase of downloading"},
    FactField{"transfers", "{transfer}", "downloads and uploads that ended"},
    FactField{"transfer_bytes", "By", "that they moved, as far as it is known"},
    FactField{"received_bytes", "By", "over the network before the first step"},
    FactField{"receive_s", "s", "time of it with more than 1 MB/s"},
    FactField{"receive_bytes_per_s", "By/s", "mean over that time"},
    FactField{"init_receive_s", "s", "of it, outside the phase of downloading: downloads inside initialisation"},
    FactField{"init_received_bytes", "By", "received in that time"},
    FactField{"init_receive_longest_s", "s", "the longest stretch of it"},
    FactField{"read_bytes", "By", "from disks before the first step"},
    FactField{"busy_cores", "{core}", "before the first step, mean"},
};
constexpr std::array kSchemas{FactSchema{"start_up.summary", "the job up to its first step", kFields}};
constexpr std::array<std::string_view, 3> kMetrics{"network.total.receive.bytes", "disk.total.read.bytes",
                                                   "cpu.busy.seconds"};
constexpr double kReceivingBytesPerS = 1e6;
constexpr std::size_t kDownloadsMax = 256;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

class StartUpAnalyzer final : public NodeAnalyzer<StartUpAnalyzer> {
 public:
  explicit StartUpAnalyzer(const RunDescription& run)
      : NodeAnalyzer(run),
        is_capture_(run.recording != nullptr && run.recording->attributes.contains("source.file")),
        is_trace_(run.recording != nullptr && is_of_trace(*run.recording)) {
    on_processes(run.processes);
  }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) {
      if (process.role == ProcessRole::kLoader || process.role == ProcessRole::kRecorder ||
          process.role == ProcessRole::kWatcher || process.start_ns < 0)
        continue;
      start_ns_ = std::min(start_ns_, process.start_ns);
    }
  }

  void on_step(const Step& step) override {
    last_ns_ = std::max(last_ns_, step.start_ns + step.duration_ns);
    if (step.start_ns >= first_step_ns_) return;
    first_step_ns_ = step.start_ns;
    first_step_duration_ns_ = step.duration_ns;
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  void on_event(const Event& event) override {
    last_ns_ = std::max(last_ns_, event.t_ns);
    if (event.kind == EventKind::kTransfer) {
      transfers_ += 1;
      if (event.value > 0) transfer_bytes_ += static_cast<double>(event.value);
    }
    if (event.kind != EventKind::kPhase) return;
    if (downloading_since_ns_ >= 0) add_download(downloading_since_ns_, event.t_ns);
    downloading_since_ns_ = event.text == to_string(Phase::kDownloading) ? event.t_ns : -1;
  }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    // A capture without steps begins anywhere, and a trace is of steps in mid-training: neither is a start.
    if (is_capture_ && (is_trace_ || first_step_ns_ == INT64_MAX)) return;
    const std::int64_t start_ns = start_ns_ != INT64_MAX ? start_ns_ : first_ns_;
    if (start_ns == INT64_MAX || last_ns_ == INT64_MIN) return;
    const bool has_step = first_step_ns_ != INT64_MAX;
    const std::int64_t end_ns = has_step ? first_step_ns_ : last_ns_;
    Fact fact{.kind = "start_up.summary"};
    fact.where.node = node;
    fact.set("has_step", has_step ? 1 : 0).set("before_step_s", seconds(std::max<std::int64_t>(end_ns - start_ns, 0)));
    if (has_step) fact.set("first_step_s", seconds(first_step_duration_ns_));
    const std::int64_t open_ns = downloading_since_ns_ >= 0 ? last_ns_ - downloading_since_ns_ : 0;
    fact.set("download_s", seconds(download_ns_ + open_ns)).set("transfers", transfers_);
    if (transfer_bytes_ > 0) fact.set("transfer_bytes", transfer_bytes_);
    set_network(start_ns, end_ns, fact);
    set_initialisation(start_ns, end_ns, fact);
    if (read_.rate(start_ns, end_ns)) fact.set("read_bytes", read_.amount(start_ns, end_ns));
    fact.set("busy_cores", busy_.rate(start_ns, end_ns));
    out.add(std::move(fact));
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty()) return;
    last_ns_ = std::max(last_ns_, end_ns(points.back()));
    first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    RateProfile& profile = series.metric == kMetrics[0] ? received_ : series.metric == kMetrics[1] ? read_ : busy_;
    profile.add(points, series.scale);
  }

  struct Received {
    double seconds = 0;  // with more than 1 MB/s
    double bytes = 0;    // in them
    double longest_s = 0;
    double current_s = 0;
    void add(double observed_s, double amount) {
      const bool is_receiving = observed_s > 0 && amount / observed_s >= kReceivingBytesPerS;
      current_s = is_receiving ? current_s + observed_s : 0;
      longest_s = std::max(longest_s, current_s);
      seconds += is_receiving ? observed_s : 0;
      bytes += is_receiving ? amount : 0;
    }
  };

  void add_download(std::int64_t from_ns, std::int64_t to_ns) {
    download_ns_ += to_ns - from_ns;
    if (downloads_.size() < kDownloadsMax) downloads_.emplace_back(from_ns, to_ns);
  }
  bool is_downloading(std::int64_t t_ns) const {
    if (downloading_since_ns_ >= 0 && t_ns >= downloading_since_ns_) return true;
    return std::ranges::any_of(downloads_, [&](const auto& one) { return t_ns >= one.first && t_ns < one.second; });
  }

  // Bucket by bucket; of the whole time, or of what lies outside the phase of downloading.
  Received received(std::int64_t start_ns, std::int64_t end_ns, bool with_downloading) const {
    Received sum;
    const std::int64_t width_ns = received_.width_ns();
    for (std::int64_t t = start_ns; t < end_ns; t += width_ns) {
      const std::int64_t to_ns = std::min(t + width_ns, end_ns);
      const bool counts = with_downloading || !is_downloading(t + (to_ns - t) / 2);
      sum.add(counts ? received_.observed_s(t, to_ns) : 0, received_.amount(t, to_ns));
    }
    return sum;
  }

  void set_network(std::int64_t start_ns, std::int64_t end_ns, Fact& fact) const {
    if (!received_.rate(start_ns, end_ns)) return;
    fact.set("received_bytes", received_.amount(start_ns, end_ns));
    const Received all = received(start_ns, end_ns, true);
    fact.set("receive_s", all.seconds);
    if (all.seconds > 0) fact.set("receive_bytes_per_s", all.bytes / all.seconds);
  }

  void set_initialisation(std::int64_t start_ns, std::int64_t end_ns, Fact& fact) const {
    if (!received_.rate(start_ns, end_ns)) return;
    const Received inside = received(start_ns, end_ns, false);
    fact.set("init_receive_s", inside.seconds).set("init_received_bytes", inside.bytes);
    fact.set("init_receive_longest_s", inside.longest_s);
  }

  bool is_capture_ = false;  // imported: nobody saw the job begin
  bool is_trace_ = false;    // alone, or beside other files
  RateProfile received_;
  RateProfile read_;
  RateProfile busy_;
  std::int64_t start_ns_ = INT64_MAX;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
  std::int64_t first_step_ns_ = INT64_MAX;
  std::int64_t first_step_duration_ns_ = 0;
  std::int64_t downloading_since_ns_ = -1;
  std::int64_t download_ns_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> downloads_;  // phases of downloading that ended
  double transfers_ = 0;
  double transfer_bytes_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<StartUpAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_start_up{.id = "start_up",
                                                      .summary = "From the job's start to its first step.",
                                                      .produces = kSchemas,
                                                      .metrics = kMetrics,
                                                      .spans = {},
                                                      .takes_minutes = true,
                                                      .open = open};

}  // namespace hotlap
