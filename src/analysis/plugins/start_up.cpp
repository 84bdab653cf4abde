// From the job's start to its first step: what it waited for, and what was downloaded meanwhile.
#include <algorithm>
#include <array>

#include "analysis/node_analyzer.h"
#include "analysis/time_profile.h"
#include "base/clock.h"

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
    FactField{"read_bytes", "By", "from disks before the first step"},
    FactField{"busy_cores", "{core}", "before the first step, mean"},
};
constexpr std::array kSchemas{FactSchema{"start_up.summary", "the job up to its first step", kFields}};
constexpr std::array<std::string_view, 3> kMetrics{"network.total.receive.bytes", "disk.total.read.bytes",
                                                   "cpu.busy.seconds"};
constexpr double kReceivingBytesPerS = 1e6;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

class StartUpAnalyzer final : public NodeAnalyzer<StartUpAnalyzer> {
 public:
  explicit StartUpAnalyzer(const RunDescription& run)
      : NodeAnalyzer(run), is_capture_(run.recording != nullptr && run.recording->attributes.contains("source.file")) {
    on_processes(run.processes);
  }

  void on_processes(std::span<const ProcessInfo> processes) override {
    NodeAnalyzer::on_processes(processes);
    for (const ProcessInfo& process : processes) {
      if (process.role == ProcessRole::kLoader || process.role == ProcessRole::kRecorder ||
          process.role == ProcessRole::kWatcher || process.start_ns < 0)
        continue;
      start_ns_ = std::min(start_ns_, process.start_ns);
    }
  }

  void on_step(const Step& step) override {
    NodeAnalyzer::on_step(step);
    last_ns_ = std::max(last_ns_, step.start_ns + step.duration_ns);
    if (step.start_ns >= first_step_ns_) return;
    first_step_ns_ = step.start_ns;
    first_step_duration_ns_ = step.duration_ns;
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override {
    if (points.empty()) return;
    last_ns_ = std::max(last_ns_, points.back().t_ns);
    first_ns_ = std::min(first_ns_, points.front().t_ns);
    RateProfile& profile = series.metric == kMetrics[0] ? received_ : series.metric == kMetrics[1] ? read_ : busy_;
    profile.add(points, series.scale);
  }

  void on_event(const Event& event) override {
    last_ns_ = std::max(last_ns_, event.t_ns);
    if (event.kind == EventKind::kTransfer) {
      transfers_ += 1;
      if (event.value > 0) transfer_bytes_ += static_cast<double>(event.value);
    }
    if (event.kind != EventKind::kPhase) return;
    if (downloading_since_ns_ >= 0) download_ns_ += event.t_ns - downloading_since_ns_;
    downloading_since_ns_ = event.text == to_string(Phase::kDownloading) ? event.t_ns : -1;
  }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    // A capture without steps begins anywhere: it is no start.
    if (is_capture_ && first_step_ns_ == INT64_MAX) return;
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
    if (read_.rate(start_ns, end_ns)) fact.set("read_bytes", read_.amount(start_ns, end_ns));
    fact.set("busy_cores", busy_.rate(start_ns, end_ns));
    out.add(std::move(fact));
  }

 private:
  bool is_capture_ = false;  // imported: nobody saw the job begin
  void set_network(std::int64_t start_ns, std::int64_t end_ns, Fact& fact) const {
    if (!received_.rate(start_ns, end_ns)) return;
    fact.set("received_bytes", received_.amount(start_ns, end_ns));
    const std::int64_t width_ns = received_.observed().width_ns();
    double receiving_s = 0;
    double bytes = 0;
    for (std::int64_t t = start_ns; t < end_ns; t += width_ns) {
      const std::int64_t to_ns = std::min(t + width_ns, end_ns);
      const double observed = received_.observed().sum(t, to_ns);
      const double amount = received_.amount(t, to_ns);
      if (observed <= 0 || amount / observed < kReceivingBytesPerS) continue;
      receiving_s += observed;
      bytes += amount;
    }
    fact.set("receive_s", receiving_s);
    if (receiving_s > 0) fact.set("receive_bytes_per_s", bytes / receiving_s);
  }

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
                                                      .open = open};

}  // namespace hotlap
