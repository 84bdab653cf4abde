// Network interfaces, disks and NFS mounts at their ceiling: how fast they were, how flat at the top, and what their
// operations waited.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"
#include "analysis/time_profile.h"

namespace hotlap {
namespace {

constexpr std::array kNetworkFields{
    FactField{"receive_bytes_per_s", "By/s", "mean"},
    FactField{"receive_p95_bytes_per_s", "By/s", "of stretches of half a second or more"},
    FactField{"receive_flat_pct", "%", "share of time within 10 % of that: a ceiling is flat"},
    FactField{"transmit_bytes_per_s", "By/s", "mean"},
    FactField{"transmit_p95_bytes_per_s", "By/s", ""},
    FactField{"transmit_flat_pct", "%", ""},
    FactField{"link_bytes_per_s", "By/s", "speed that the link was set to; absent where it does not say"},
    FactField{"receive_link_pct", "%", "p95 of the link"},
    FactField{"transmit_link_pct", "%", "p95 of the link"},
    FactField{"steps_only", "1", "1: during typical steps"},
};
constexpr std::array kDiskFields{
    FactField{"busy_pct", "%", "share of time with an operation in flight"},
    FactField{"full_pct", "%", "share of time in which it was busy for 95 % or more"},
    FactField{"queue", "{operation}", "operations in flight, mean"},
    FactField{"read_bytes_per_s", "By/s", "mean"},
    FactField{"read_p95_bytes_per_s", "By/s", "of stretches of half a second or more"},
    FactField{"read_flat_pct", "%", "share of time within 10 % of that"},
    FactField{"reads_per_s", "1/s", ""},
    FactField{"read_ms", "ms", "mean time of a read"},
    FactField{"read_bytes", "By", "mean size of a read"},
    FactField{"write_bytes_per_s", "By/s", "mean"},
    FactField{"writes_per_s", "1/s", ""},
    FactField{"write_ms", "ms", "mean time of a write"},
    FactField{"steps_only", "1", "1: during typical steps"},
};
constexpr std::array kMountFields{
    FactField{"mount", "text", "where"},
    FactField{"type", "text", "file system"},
    FactField{"source", "text", "server and path"},
    FactField{"read_bytes_per_s", "By/s", "from the server, mean"},
    FactField{"read_p95_bytes_per_s", "By/s", "of stretches of half a second or more"},
    FactField{"read_flat_pct", "%", "share of time within 10 % of that"},
    FactField{"write_bytes_per_s", "By/s", "to the server, mean"},
    FactField{"reads_per_s", "1/s", "READ requests"},
    FactField{"operations_per_s", "1/s", "requests of all kinds"},
    FactField{"read_ms", "ms", "mean time of a READ, waiting to be sent included"},
    FactField{"read_rtt_ms", "ms", "of it, from sending to answer"},
    FactField{"rtt_ms", "ms", "of all requests"},
    FactField{"retransmissions", "{operation}", "requests sent again"},
    FactField{"stuck", "{event}", "times that it did not answer at all"},
    FactField{"steps_only", "1", "1: during typical steps"},
};
constexpr std::array kSchemas{
    FactSchema{"ceilings.network", "one network interface", kNetworkFields},
    FactSchema{"ceilings.disk", "one disk", kDiskFields},
    FactSchema{"ceilings.mount", "one NFS mount", kMountFields},
};
constexpr std::array<std::string_view, 19> kMetrics{
    "network.receive.bytes", "network.transmit.bytes",
    "network.link.speed",    "disk.busy.seconds",
    "disk.weighted.seconds", "disk.reads",
    "disk.read.bytes",       "disk.read.seconds",
    "disk.writes",           "disk.write.bytes",
    "disk.write.seconds",    "nfs.read.bytes",
    "nfs.write.bytes",       "nfs.reads",
    "nfs.read.seconds",      "nfs.read.rtt.seconds",
    "nfs.operations",        "nfs.rtt.seconds",
    "nfs.retransmissions",
};
constexpr std::size_t kSeriesMax = 1024;
constexpr std::size_t kFactsMax = 32;
constexpr double kFlatBelow = 0.9;
constexpr double kFullBusy = 0.95;
constexpr double kQuietBytesPerS = 1000;  // what carries less is no fact

// A rate in stretches of the same length: how high it went, and how flat it was there.
struct Top {
  std::optional<double> p95;
  std::optional<double> flat_pct;
};

Top top_of(const RateProfile& profile, const SteadyWindow& window) {
  std::vector<double> rates;
  const std::int64_t width_ns = std::max<std::int64_t>(profile.width_ns(), 1);
  for (std::int64_t t = window.from_ns; t < window.to_ns; t += width_ns) {
    const double observed = profile.observed_s(t, t + width_ns);
    if (observed > 0) rates.push_back(profile.amount(t, t + width_ns) / observed);
  }
  if (rates.size() < 4) return {};
  std::ranges::sort(rates);
  const double p95 = rates[static_cast<std::size_t>(0.95 * static_cast<double>(rates.size() - 1))];
  const auto flat = std::ranges::count_if(rates, [&](double rate) { return rate >= kFlatBelow * p95; });
  return {p95, 100 * static_cast<double>(flat) / static_cast<double>(rates.size())};
}

class CeilingsAnalyzer final : public NodeAnalyzer<CeilingsAnalyzer> {
 public:
  explicit CeilingsAnalyzer(const RunDescription& run) : NodeAnalyzer(run) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  void on_event(const Event& event) override {
    if (event.kind == EventKind::kMountStuck && stuck_.size() < kSeriesMax) stuck_[event.text] += 1;
    // "mount /data: nfs4 server:/export"
    if (event.kind != EventKind::kNote || !event.text.starts_with("mount ")) return;
    const std::size_t colon = event.text.find(": ");
    if (colon == std::string::npos || types_.size() >= kSeriesMax) return;
    types_[event.text.substr(6, colon - 6)] = event.text.substr(colon + 2);
  }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto window = steady_or_observed(*table_, first_ns_, last_ns_);
    if (!window) return;
    std::vector<Fact> networks;
    std::vector<Fact> disks;
    std::vector<Fact> mounts;
    for (const auto& [instance, metrics] : profiles_) {
      const View view{metrics, *window};
      if (metrics.contains("network.receive.bytes")) networks.push_back(network(instance, view));
      if (metrics.contains("disk.busy.seconds")) disks.push_back(disk(instance, view));
      if (metrics.contains("nfs.operations")) mounts.push_back(mount(instance, view));
    }
    add_busiest(networks, "receive_p95_bytes_per_s", "transmit_p95_bytes_per_s", node, *window, out);
    add_busiest(disks, "read_bytes_per_s", "write_bytes_per_s", node, *window, out);
    add_busiest(mounts, "read_bytes_per_s", "operations_per_s", node, *window, out);
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty()) return;
    first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    last_ns_ = std::max(last_ns_, end_ns(points.back()));
    if (series.metric == "network.link.speed") {
      for (const Point& point : points) {
        if (const auto bits = last_value(point); bits && *bits > 0) links_[series.instance] = *bits * series.scale / 8;
      }
      return;
    }
    const auto known = profiles_.find(series.instance);
    const bool is_new = known == profiles_.end() || !known->second.contains(series.metric);
    if (is_new && seen_ >= kSeriesMax) return;
    if (is_new) ++seen_;
    profiles_[series.instance].try_emplace(series.metric, kFullBusy).first->second.add(points, series.scale);
  }

  using Metrics = std::map<std::string, RateProfile, std::less<>>;
  struct View {
    const Metrics& metrics;
    const SteadyWindow& window;
    std::optional<double> rate(std::string_view metric) const {
      const auto found = metrics.find(metric);
      return found == metrics.end() ? std::nullopt : found->second.rate(window.from_ns, window.to_ns);
    }
    Top top(std::string_view metric) const {
      const auto found = metrics.find(metric);
      return found == metrics.end() ? Top{} : top_of(found->second, window);
    }
    // Mean of `of` per `each`.
    std::optional<double> per(std::string_view of, std::string_view each) const {
      const auto amount = rate(of);
      const auto count = rate(each);
      return amount && count && *count > 0 ? std::optional(*amount / *count) : std::nullopt;
    }
    std::optional<double> ms_per(std::string_view of, std::string_view each) const {
      const auto seconds = per(of, each);
      return seconds ? std::optional(1000 * *seconds) : std::nullopt;
    }
  };

  Fact network(const std::string& name, const View& view) const {
    Fact fact{.kind = "ceilings.network"};
    fact.where.device = name;
    const Top received = view.top("network.receive.bytes");
    const Top sent = view.top("network.transmit.bytes");
    fact.set("receive_bytes_per_s", view.rate("network.receive.bytes"));
    fact.set("receive_p95_bytes_per_s", received.p95).set("receive_flat_pct", received.flat_pct);
    fact.set("transmit_bytes_per_s", view.rate("network.transmit.bytes"));
    fact.set("transmit_p95_bytes_per_s", sent.p95).set("transmit_flat_pct", sent.flat_pct);
    const auto link = links_.find(name);
    if (link == links_.end()) return fact;
    fact.set("link_bytes_per_s", link->second);
    if (received.p95) fact.set("receive_link_pct", 100 * *received.p95 / link->second);
    if (sent.p95) fact.set("transmit_link_pct", 100 * *sent.p95 / link->second);
    return fact;
  }

  static Fact disk(const std::string& name, const View& view) {
    Fact fact{.kind = "ceilings.disk"};
    fact.where.device = name;
    if (const auto busy = view.rate("disk.busy.seconds")) fact.set("busy_pct", std::min(100 * *busy, 100.0));
    const auto found = view.metrics.find("disk.busy.seconds");
    if (const auto full = found->second.hot_share(view.window.from_ns, view.window.to_ns))
      fact.set("full_pct", 100 * *full);
    const Top read = view.top("disk.read.bytes");
    fact.set("queue", view.rate("disk.weighted.seconds")).set("read_bytes_per_s", view.rate("disk.read.bytes"));
    fact.set("read_p95_bytes_per_s", read.p95).set("read_flat_pct", read.flat_pct);
    fact.set("reads_per_s", view.rate("disk.reads")).set("read_ms", view.ms_per("disk.read.seconds", "disk.reads"));
    fact.set("read_bytes", view.per("disk.read.bytes", "disk.reads"));
    fact.set("write_bytes_per_s", view.rate("disk.write.bytes")).set("writes_per_s", view.rate("disk.writes"));
    return fact.set("write_ms", view.ms_per("disk.write.seconds", "disk.writes"));
  }

  Fact mount(const std::string& name, const View& view) const {
    Fact fact{.kind = "ceilings.mount"};
    fact.set_text("mount", name);
    if (const auto known = types_.find(name); known != types_.end()) {
      const std::size_t space = known->second.find(' ');
      fact.set_text("type", known->second.substr(0, space));
      if (space != std::string::npos) fact.set_text("source", known->second.substr(space + 1));
    }
    const Top read = view.top("nfs.read.bytes");
    fact.set("read_bytes_per_s", view.rate("nfs.read.bytes")).set("write_bytes_per_s", view.rate("nfs.write.bytes"));
    fact.set("read_p95_bytes_per_s", read.p95).set("read_flat_pct", read.flat_pct);
    fact.set("reads_per_s", view.rate("nfs.reads")).set("operations_per_s", view.rate("nfs.operations"));
    fact.set("read_ms", view.ms_per("nfs.read.seconds", "nfs.reads"));
    fact.set("read_rtt_ms", view.ms_per("nfs.read.rtt.seconds", "nfs.reads"));
    fact.set("rtt_ms", view.ms_per("nfs.rtt.seconds", "nfs.operations"));
    if (const auto found = view.metrics.find("nfs.retransmissions"); found != view.metrics.end())
      fact.set("retransmissions", found->second.amount(view.window.from_ns, view.window.to_ns));
    if (const auto stuck = stuck_.find(name); stuck != stuck_.end()) fact.set("stuck", stuck->second);
    return fact;
  }

  static void add_busiest(std::vector<Fact>& facts, std::string_view first, std::string_view second,
                          const std::string& node, const SteadyWindow& window, FactTable& out) {
    const auto use = [&](const Fact& fact) { return fact.number(first).value_or(0) + fact.number(second).value_or(0); };
    std::ranges::stable_sort(facts, std::greater{}, use);
    if (facts.size() > kFactsMax) facts.resize(kFactsMax);
    for (Fact& fact : facts) {
      if (use(fact) < (fact.kind == "ceilings.mount" ? 0.01 : kQuietBytesPerS)) continue;
      fact.where.node = node;
      fact.set("steps_only", window.is_of_steps ? 1 : 0);
      out.add(std::move(fact));
    }
  }

  std::map<std::string, Metrics> profiles_;  // by interface, disk or mount
  std::map<std::string, double> links_;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> stuck_;
  std::size_t seen_ = 0;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<CeilingsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_ceilings{.id = "ceilings",
                                                      .summary = "Networks, disks and mounts at their ceiling.",
                                                      .produces = kSchemas,
                                                      .metrics = kMetrics,
                                                      .spans = {},
                                                      .takes_minutes = true,
                                                      .open = open};

}  // namespace hotlap
