// What holds a GPU down: power, heat, clocks, its link to the machine; and whether it failed.
#include <algorithm>
#include <array>
#include <map>
#include <type_traits>

#include "analysis/gpu_board_power.h"
#include "analysis/minutes.h"
#include "analysis/node_analyzer.h"
#include "analysis/steady_window.h"
#include "analysis/time_profile.h"
#include "base/text.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::array kLimitFields{
    FactField{"steps_only", "1", "1: during typical steps; 0: nobody saw a step, during all that was recorded"},
    FactField{"power_w", "W", "mean"},
    FactField{"power_first_w", "W", "mean of the first quarter"},
    FactField{"power_last_w", "W", "mean of the last quarter"},
    FactField{"power_limit_w", "W", "limit that is enforced"},
    FactField{"power_default_w", "W", "limit with which the board starts"},
    FactField{"power_board_w", "W", "limit with which boards of its name start; where its own default was not read"},
    FactField{"power_requested_w", "W", "limit that was asked for"},
    FactField{"clock_mhz", "MHz", "clock of the compute units, mean"},
    FactField{"clock_max_mhz", "MHz", "the highest that it has"},
    FactField{"clock_pct", "%", "mean of the highest"},
    FactField{"clock_first_mhz", "MHz", "mean of the first quarter"},
    FactField{"clock_last_mhz", "MHz", "mean of the last quarter"},
    FactField{"temperature_c", "Cel", "mean"},
    FactField{"temperature_first_c", "Cel", "mean of the first quarter"},
    FactField{"temperature_last_c", "Cel", "mean of the last quarter"},
    FactField{"temperature_slowdown_c", "Cel", "at which the hardware slows itself down"},
    FactField{"power_cap_pct", "%", "share of time with clocks lowered to stay within the power limit"},
    FactField{"thermal_pct", "%", "share of time with clocks lowered because of heat"},
    FactField{"power_brake_pct", "%", "share of time with clocks lowered because the power supply asks for it"},
    FactField{"sync_boost_pct", "%", "share of time with clocks held to those of the slowest GPU of a group"},
    FactField{"application_clocks_pct", "%", "share of time with clocks limited by what a user set"},
    FactField{"pcie_generation", "1", "highest that was used"},
    FactField{"pcie_generation_max", "1", "that GPU and slot can use"},
    FactField{"pcie_width", "{lane}", "most lanes that were used"},
    FactField{"pcie_width_max", "{lane}", "that GPU and slot can use"},
    FactField{"pcie_bytes_per_s", "By/s", "received over PCIe, mean"},
    FactField{"pcie_replays", "{event}", "packets sent again"},
};
constexpr std::array kHealthFields{
    FactField{"lost", "{event}", "times that it was lost"},
    FactField{"back", "{event}", "times that it came back"},
    FactField{"lost_at_s", "s", "when it was lost first, on the recording's clock"},
    FactField{"lost_for_s", "s", "time for which it was gone, up to the end if it did not come back"},
    FactField{"why", "text", "what the driver said"},
    FactField{"xids", "{event}", "error reports of the driver"},
    FactField{"xid", "1", "number of the last one"},
    FactField{"xid_numbers", "text", "their numbers in the order of their first: 79, 45"},
    FactField{"xid_at_s", "s", "when the first one came, on the recording's clock"},
    FactField{"xid_boot_s", "s", "the same since the machine was started, where nothing else is known of when"},
    FactField{"xid_process", "text", "program on whose behalf the first one came, where the kernel said it"},
    FactField{"xid_pid", "1", "its number"},
    FactField{"ecc_uncorrected", "{error}", "memory errors that could not be corrected, during the recording"},
    FactField{"rows_pending", "1", "1: a row of memory waits to be replaced at the next reset"},
    FactField{"rows_failed", "1", "1: a row of memory could not be replaced"},
    FactField{"recovery_action", "1", "what the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 and 4 drain"},
    FactField{"unreadable", "text", "figures that the driver said it could not read, in most samples"},
    FactField{"frozen_busy_pct", "%", "its use, where that never changed although hardly any memory is taken"},
    FactField{"ended_s", "s", "of a capture: so long before those of the other GPUs its samples end"},
};
constexpr std::array kSchemas{FactSchema{"gpu.limits", "what limits one GPU", kLimitFields},
                              FactSchema{"gpu.health", "failures of one GPU", kHealthFields}};
constexpr std::array<std::string_view, 33> kMetrics{
    "gpu.power.watts",
    "gpu.power.limit.watts",
    "gpu.power.limit_default.watts",
    "gpu.power.limit_requested.watts",
    "gpu.clock.sm.mhz",
    "gpu.clock.sm_max.mhz",
    "gpu.temperature.celsius",
    "gpu.temperature.slowdown.celsius",
    "gpu.clock_event.power_cap",
    "gpu.clock_event.thermal_sw",
    "gpu.clock_event.thermal_hw",
    "gpu.clock_event.power_brake",
    "gpu.clock_event.sync_boost",
    "gpu.clock_event.application_clocks",
    "gpu.clock_event.power_cap.seconds",
    "gpu.clock_event.thermal_sw.seconds",
    "gpu.clock_event.thermal_hw.seconds",
    "gpu.clock_event.power_brake.seconds",
    "gpu.clock_event.sync_boost.seconds",
    "gpu.pcie.generation",
    "gpu.pcie.generation_max",
    "gpu.pcie.width",
    "gpu.pcie.width_max",
    "gpu.pcie.receive.bytes",
    "gpu.pcie.receive.rate",
    "gpu.pcie.replays",
    "gpu.ecc.uncorrected",
    "gpu.remapped_rows.pending",
    "gpu.remapped_rows.failed",
    "gpu.recovery_action",
    "gpu.busy.percent",
    "gpu.fan.percent",
    "gpu.memory.used.bytes",
};
constexpr std::size_t kGpusMax = 128;
constexpr double kReadsMin = 30;
constexpr double kFrozenBusyPct = 10;
constexpr double kHardlyAnyBytes = 64 * 1024 * 1024.0;  // no context of CUDA takes so little
constexpr std::int64_t kEndedNs = 30 * kNsPerS;

// How often a figure was asked for, and could not be read.
struct Reads {
  double all = 0;
  double failed = 0;
};
struct Gpu {
  std::map<std::string, GaugeProfile, std::less<>> gauges;
  std::map<std::string, RateProfile, std::less<>> rates;
  std::map<std::string, double, std::less<>> highest;
  std::map<std::string, double, std::less<>> lowest;
  std::map<std::string, Reads, std::less<>> reads;
  std::int64_t last_ns = INT64_MIN;
};
struct Health {
  double lost = 0;
  double back = 0;
  double xids = 0;
  std::optional<double> xid;
  std::vector<std::int64_t> xid_numbers;  // different ones
  Event first_xid;
  std::int64_t first_lost_ns = -1;
  std::int64_t lost_since_ns = -1;
  std::int64_t lost_ns = 0;
  std::string why;
};

class GpuLimitsAnalyzer final : public NodeAnalyzer<GpuLimitsAnalyzer> {
 public:
  explicit GpuLimitsAnalyzer(const RunDescription& run)
      : NodeAnalyzer(run),
        attributes_(run.recording == nullptr ? nullptr : &run.recording->attributes),
        is_capture_(attributes_ != nullptr && attributes_->contains("source.file")) {}

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  void on_event(const Event& event) override {
    if (event.kind != EventKind::kGpuLost && event.kind != EventKind::kGpuBack && event.kind != EventKind::kGpuXid)
      return;
    const std::size_t colon = event.text.find(": ");
    const std::string device = event.text.substr(0, colon);
    if (health_.size() >= kGpusMax && !health_.contains(device)) return;
    Health& health = health_[device];
    // The kernel's log may reach back for weeks.
    if (event.kind == EventKind::kGpuXid) return take_xid(event, health);
    last_ns_ = std::max(last_ns_, event.t_ns);
    if (event.kind == EventKind::kGpuLost) {
      health.lost += 1;
      if (health.first_lost_ns < 0) health.first_lost_ns = event.t_ns;
      health.lost_since_ns = event.t_ns;
      if (colon != std::string::npos) health.why = std::string(trim(std::string_view(event.text).substr(colon + 2)));
    } else {
      health.back += 1;
      if (health.lost_since_ns >= 0) health.lost_ns += event.t_ns - health.lost_since_ns;
      health.lost_since_ns = -1;
    }
  }

  std::int64_t seen_ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

  void snapshot_node(const std::string& node, FactTable& out) const {
    const auto window = steady_or_observed(*table_, first_ns_, last_ns_);
    for (const auto& [name, gpu] : gpus_) {
      if (!window) break;
      Fact fact{.kind = "gpu.limits"};
      fact.where.node = node;
      fact.where.device = name;
      fill(gpu, *window, fact);
      if (!fact.number("power_default_w")) fact.set("power_board_w", board_power(name));
      if (fact.fields.size() > 1) out.add(std::move(fact));
    }
    const std::map<std::string, Health> all = health_by_label();
    for (const auto& [name, gpu] : gpus_) {
      const auto known = all.find(name);
      Fact fact{.kind = "gpu.health"};
      fact.where.node = node;
      fact.where.device = name;
      fact.set("lost", 0).set("xids", 0);
      if (known != all.end()) fill(known->second, fact);
      fill_errors(gpu, fact);
      out.add(std::move(fact));
    }
    for (const auto& [name, health] : all) {
      if (gpus_.contains(name)) continue;
      Fact fact{.kind = "gpu.health"};
      fact.where.node = node;
      fact.where.device = name;
      fill(health, fact);
      out.add(std::move(fact));
    }
  }

 private:
  static void take_xid(const Event& event, Health& health) {
    constexpr std::size_t kNumbersMax = 16;
    if (health.xids == 0) health.first_xid = event;
    health.xids += 1;
    health.xid = static_cast<double>(event.value);
    const bool is_known = std::ranges::find(health.xid_numbers, event.value) != health.xid_numbers.end();
    if (!is_known && health.xid_numbers.size() < kNumbersMax) health.xid_numbers.push_back(event.value);
  }

  // The kernel names a GPU by its place on the bus; where another file tells which one that is, they are one.
  std::map<std::string, Health> health_by_label() const {
    constexpr std::string_view kPlace = "PCI ";
    std::map<std::string, Health> out;
    for (const auto& [name, health] : health_) {
      const std::string label = name.starts_with(kPlace) ? label_at(name.substr(kPlace.size())) : name;
      out.try_emplace(label.empty() ? name : label, health);
    }
    return out;
  }
  // "0000:3b:00" of "00000000:3B:00.0"; empty: nobody says it.
  std::string label_at(std::string place) const {
    if (attributes_ == nullptr) return {};
    constexpr std::string_view kKey = ".pci";
    for (const auto& [key, text] : *attributes_) {
      if (!key.starts_with("gpu") || !key.ends_with(kKey) || text.size() < place.size()) continue;
      std::string known = text.substr(0, text.rfind('.'));
      const auto low = [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; };
      std::ranges::transform(known, known.begin(), low);
      std::ranges::transform(place, place.begin(), low);
      if (known.ends_with(place)) return key.substr(0, key.size() - kKey.size());
    }
    return {};
  }

  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty() || (gpus_.size() >= kGpusMax && !gpus_.contains(series.instance))) return;
    first_ns_ = std::min(first_ns_, begin_ns(points.front()));
    last_ns_ = std::max(last_ns_, end_ns(points.back()));
    Gpu& gpu = gpus_[series.instance];
    if (series.kind == MetricKind::kCounter) {
      gpu.rates[series.metric].add(points, series.scale);
      return;
    }
    gpu.gauges[series.metric].add(points, series.scale);
    gpu.last_ns = std::max(gpu.last_ns, end_ns(points.back()));
    if constexpr (std::is_same_v<Point, SamplePoint>) count(gpu.reads[series.metric], points);
    std::optional<double> least;
    std::optional<double> most;
    for (const Point& point : points) {
      const auto smallest = smallest_value(point);
      if (!smallest) continue;
      least = std::min(least.value_or(*smallest), *smallest);
      const auto largest = largest_value(point);
      most = std::max(most.value_or(*largest), *largest);
    }
    if (!least) return;
    double& lowest = gpu.lowest.try_emplace(series.metric, *least * series.scale).first->second;
    lowest = std::min(lowest, *least * series.scale);
    double& highest = gpu.highest.try_emplace(series.metric, *most * series.scale).first->second;
    highest = std::max(highest, *most * series.scale);
  }

  // Of minutes it is not known why a value is missing: a share is one of the samples that were looked at.
  static void count(Reads& reads, std::span<const SamplePoint> points) {
    for (const SamplePoint& point : points) {
      reads.all += 1;
      const bool is_failed = point.value.is_missing() && point.value.reason() == MissingReason::kReadFailed;
      reads.failed += is_failed ? 1 : 0;
    }
  }

  std::optional<double> board_power(const std::string& device) const {
    if (attributes_ == nullptr) return std::nullopt;
    const auto found = attributes_->find(device + ".name");
    return found == attributes_->end() ? std::nullopt : board_power_w(found->second);
  }

  static std::optional<double> mean(const Gpu& gpu, std::string_view metric, std::int64_t from_ns, std::int64_t to_ns) {
    const auto found = gpu.gauges.find(metric);
    return found == gpu.gauges.end() ? std::nullopt : found->second.mean(from_ns, to_ns);
  }
  static std::optional<double> last(const Gpu& gpu, std::string_view metric) {
    const auto found = gpu.gauges.find(metric);
    return found == gpu.gauges.end() ? std::nullopt : found->second.last();
  }
  static std::optional<double> highest(const Gpu& gpu, std::string_view metric) {
    const auto found = gpu.highest.find(metric);
    return found == gpu.highest.end() ? std::nullopt : std::optional(found->second);
  }
  static std::optional<double> rate(const Gpu& gpu, std::string_view metric, const SteadyWindow& window) {
    const auto found = gpu.rates.find(metric);
    return found == gpu.rates.end() ? std::nullopt : found->second.rate(window.from_ns, window.to_ns);
  }

  // What is enforced, else what was asked for: a query may have asked for that one only.
  static std::optional<double> power_limit(const Gpu& gpu) {
    const auto enforced = last(gpu, "gpu.power.limit.watts");
    return enforced ? enforced : last(gpu, "gpu.power.limit_requested.watts");
  }

  // Of the driver's count of time, which misses nothing; else of the samples that showed it.
  static std::optional<double> share_pct(const Gpu& gpu, const std::string& event, const SteadyWindow& window) {
    if (const auto counted = rate(gpu, event + ".seconds", window)) return std::min(100 * *counted, 100.0);
    if (const auto seen = mean(gpu, event, window.from_ns, window.to_ns)) return std::min(100 * *seen, 100.0);
    return std::nullopt;
  }

  static void fill(const Gpu& gpu, const SteadyWindow& window, Fact& fact) {
    const std::int64_t from = window.from_ns;
    const std::int64_t to = window.to_ns;
    const std::int64_t quarter = (to - from) / 4;
    fact.set("steps_only", window.is_of_steps ? 1 : 0);
    fact.set("power_w", mean(gpu, "gpu.power.watts", from, to)).set("power_limit_w", power_limit(gpu));
    fact.set("power_first_w", mean(gpu, "gpu.power.watts", from, from + quarter));
    fact.set("power_last_w", mean(gpu, "gpu.power.watts", to - quarter, to));
    fact.set("power_default_w", last(gpu, "gpu.power.limit_default.watts"));
    fact.set("power_requested_w", last(gpu, "gpu.power.limit_requested.watts"));
    const auto clock = mean(gpu, "gpu.clock.sm.mhz", from, to);
    const auto clock_max = last(gpu, "gpu.clock.sm_max.mhz");
    fact.set("clock_mhz", clock).set("clock_max_mhz", clock_max);
    if (clock && clock_max && *clock_max > 0) fact.set("clock_pct", std::min(100 * *clock / *clock_max, 100.0));
    fact.set("clock_first_mhz", mean(gpu, "gpu.clock.sm.mhz", from, from + quarter));
    fact.set("clock_last_mhz", mean(gpu, "gpu.clock.sm.mhz", to - quarter, to));
    fact.set("temperature_c", mean(gpu, "gpu.temperature.celsius", from, to));
    fact.set("temperature_first_c", mean(gpu, "gpu.temperature.celsius", from, from + quarter));
    fact.set("temperature_last_c", mean(gpu, "gpu.temperature.celsius", to - quarter, to));
    fact.set("temperature_slowdown_c", last(gpu, "gpu.temperature.slowdown.celsius"));
    fact.set("power_cap_pct", share_pct(gpu, "gpu.clock_event.power_cap", window));
    const auto by_driver = share_pct(gpu, "gpu.clock_event.thermal_sw", window);
    const auto by_hardware = share_pct(gpu, "gpu.clock_event.thermal_hw", window);
    if (by_driver || by_hardware) fact.set("thermal_pct", std::max(by_driver.value_or(0), by_hardware.value_or(0)));
    fact.set("power_brake_pct", share_pct(gpu, "gpu.clock_event.power_brake", window));
    fact.set("sync_boost_pct", share_pct(gpu, "gpu.clock_event.sync_boost", window));
    fact.set("application_clocks_pct", share_pct(gpu, "gpu.clock_event.application_clocks", window));
    // An idle GPU lowers its link: what counts is the best that it had.
    fact.set("pcie_generation", highest(gpu, "gpu.pcie.generation"));
    fact.set("pcie_generation_max", highest(gpu, "gpu.pcie.generation_max"));
    fact.set("pcie_width", highest(gpu, "gpu.pcie.width")).set("pcie_width_max", highest(gpu, "gpu.pcie.width_max"));
    const auto received = rate(gpu, "gpu.pcie.receive.bytes", window);
    fact.set("pcie_bytes_per_s", received ? received : mean(gpu, "gpu.pcie.receive.rate", from, to));
    if (const auto found = gpu.rates.find("gpu.pcie.replays"); found != gpu.rates.end())
      fact.set("pcie_replays", found->second.amount(from, to));
  }

  void fill(const Health& health, Fact& fact) const {
    if (health.lost > 0) {
      const std::int64_t open_ns = health.lost_since_ns >= 0 ? last_ns_ - health.lost_since_ns : 0;
      fact.set("lost", health.lost)
          .set("back", health.back)
          .set("lost_at_s", static_cast<double>(health.first_lost_ns) / static_cast<double>(kNsPerS))
          .set("lost_for_s", static_cast<double>(health.lost_ns + open_ns) / static_cast<double>(kNsPerS));
      if (!health.why.empty()) fact.set_text("why", health.why);
    }
    if (health.xids > 0) fill_xids(health, fact);
  }

  static void fill_xids(const Health& health, Fact& fact) {
    fact.set("xids", health.xids).set("xid", health.xid);
    std::string numbers;
    for (const std::int64_t number : health.xid_numbers)
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
    fact.set_text("xid_numbers", numbers);
    const std::string& text = health.first_xid.text;
    const auto boot_s = parse_f64(message_word(text, "boot_s"));
    fact.set("xid_boot_s", boot_s).set("xid_pid", parse_f64(message_word(text, "pid")));
    if (!boot_s) fact.set("xid_at_s", static_cast<double>(health.first_xid.t_ns) / static_cast<double>(kNsPerS));
    if (const std::string_view process = message_word(text, "process"); !process.empty())
      fact.set_text("xid_process", std::string(process));
  }

  void fill_errors(const Gpu& gpu, Fact& fact) const {
    const auto positive = [&](std::string_view field, std::optional<double> value) {
      if (value.value_or(0) > 0) fact.set(field, value);
    };
    if (const auto found = gpu.rates.find("gpu.ecc.uncorrected"); found != gpu.rates.end())
      positive("ecc_uncorrected", found->second.amount(first_ns_, last_ns_));
    positive("rows_pending", last(gpu, "gpu.remapped_rows.pending"));
    positive("rows_failed", last(gpu, "gpu.remapped_rows.failed"));
    positive("recovery_action", last(gpu, "gpu.recovery_action"));
    std::string unreadable;
    for (const auto& [metric, reads] : gpu.reads) {
      if (reads.all < kReadsMin || reads.failed < 0.5 * reads.all) continue;
      unreadable += (unreadable.empty() ? "" : ", ") + metric;
    }
    if (!unreadable.empty()) fact.set_text("unreadable", unreadable);
    set_frozen(gpu, fact);
    // Those that stop together were no longer asked.
    if (is_capture_ && gpu.last_ns != INT64_MIN && last_ns_ - gpu.last_ns >= kEndedNs) {
      fact.set("ended_s", static_cast<double>(last_ns_ - gpu.last_ns) / static_cast<double>(kNsPerS));
    }
  }

  // A figure of use that stands still while nothing is on the card was not measured any more.
  static void set_frozen(const Gpu& gpu, Fact& fact) {
    const auto most = highest(gpu, "gpu.busy.percent");
    const auto least = gpu.lowest.find("gpu.busy.percent");
    const auto memory = highest(gpu, "gpu.memory.used.bytes");
    const auto reads = gpu.reads.find("gpu.busy.percent");
    if (!most || least == gpu.lowest.end() || !memory || reads->second.all < kReadsMin) return;
    if (*most == least->second && *most >= kFrozenBusyPct && *memory < kHardlyAnyBytes)
      fact.set("frozen_busy_pct", *most);
  }

  const std::map<std::string, std::string>* attributes_;
  bool is_capture_ = false;  // imported: nothing tells of a GPU that is gone but its samples
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, Health> health_;
  std::int64_t first_ns_ = INT64_MAX;
  std::int64_t last_ns_ = INT64_MIN;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<GpuLimitsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_gpu_limits{
    .id = "gpu_limits",
    .summary = "Power, heat, clocks, link and failures of each GPU.",
    .produces = kSchemas,
    .metrics = kMetrics,
    .spans = {},
    .takes_minutes = true,
    .open = open};

}  // namespace hotlap
