// Network interfaces from /proc/net/dev: each one that carried something, and the total of the physical ones.
//
// Bridges, bonds, veth pairs and tunnels pass on what physical interfaces carry; lo carries what stays inside. They
// are recorded but not in the total. Where no interface is physical (a container's eth0 is one end of a veth pair),
// all but lo and bridges count.
#include <array>

#include "collect/collector.h"
#include "collect/instances.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::size_t kInterfacesMax = 64;
constexpr std::int64_t kSpeedPeriodNs = 10'000'000'000;  // a driver is asked; it changes when a cable does
constexpr double kMegabit = 1e6;

enum Metric : std::uint16_t {
  kRxBytes,
  kRxPackets,
  kRxErrors,
  kRxDrops,
  kTxBytes,
  kTxPackets,
  kTxErrors,
  kTxDrops,
  kSpeed,
  kTotalRxBytes,
  kTotalTxBytes,
};
constexpr std::size_t kCounters = kTxDrops + 1;

constexpr MetricDesc count(std::string_view name, std::string_view unit, std::string_view help, MetricAliases aliases) {
  return {.name = name, .unit = unit, .kind = MetricKind::kCounter, .help = help, .aliases = aliases};
}
constexpr std::array kMetrics{
    count(
        "network.receive.bytes", "By", "Bytes received.",
        {"net_bytes_recv", "system.network.io{network.io.direction=\"receive\"}", "node_network_receive_bytes_total"}),
    count("network.receive.packets", "{packet}", "Packets received.",
          {"net_packets_recv", "system.network.packet.count{network.io.direction=\"receive\"}",
           "node_network_receive_packets_total"}),
    count("network.receive.errors", "{packet}", "Packets received damaged.",
          {"net_err_in", "system.network.errors{network.io.direction=\"receive\"}", "node_network_receive_errs_total"}),
    count("network.receive.drops", "{packet}", "Packets received and dropped for want of room.",
          {"net_drop_in", "system.network.packet.dropped{network.io.direction=\"receive\"}",
           "node_network_receive_drop_total"}),
    count("network.transmit.bytes", "By", "Bytes sent.",
          {"net_bytes_sent", "system.network.io{network.io.direction=\"transmit\"}",
           "node_network_transmit_bytes_total"}),
    count("network.transmit.packets", "{packet}", "Packets sent.",
          {"net_packets_sent", "system.network.packet.count{network.io.direction=\"transmit\"}",
           "node_network_transmit_packets_total"}),
    count("network.transmit.errors", "{packet}", "Packets that could not be sent.",
          {"net_err_out", "system.network.errors{network.io.direction=\"transmit\"}",
           "node_network_transmit_errs_total"}),
    count("network.transmit.drops", "{packet}", "Packets dropped before they were sent.",
          {"net_drop_out", "system.network.packet.dropped{network.io.direction=\"transmit\"}",
           "node_network_transmit_drop_total"}),
    MetricDesc{.name = "network.link.speed",
               .unit = "bit/s",
               .help = "Speed that the link was set to; missing where the interface does not say.",
               .min_period_ns = kSpeedPeriodNs,
               .aliases = {"", "", "node_network_speed_bytes"},
               .scale = kMegabit},
    count("network.total.receive.bytes", "By", "Bytes received on all physical interfaces since recording began.", {}),
    count("network.total.transmit.bytes", "By", "Bytes sent on all physical interfaces since recording began.", {}),
};

// Fields of a line after the name.
enum Field : std::size_t {
  kFRxBytes,
  kFRxPackets,
  kFRxErrors,
  kFRxDrops,
  kFRxFifo,
  kFRxFrame,
  kFRxCompressed,
  kFRxMulticast,
  kFTxBytes,
  kFTxPackets,
  kFTxErrors,
  kFTxDrops,
  kFieldCount,
};
using Fields = std::array<std::uint64_t, kFieldCount>;
constexpr std::array<Field, kCounters> kFieldOfMetric{kFRxBytes, kFRxPackets, kFRxErrors, kFRxDrops,
                                                      kFTxBytes, kFTxPackets, kFTxErrors, kFTxDrops};

struct Interface {
  enum class Kind : std::uint8_t { kPhysical, kVirtual, kInternal };  // kInternal: never in a total
  Kind kind = Kind::kInternal;
  SeriesSet<kCounters> series;
  SeriesHandle speed;
  SumMember received;
  SumMember sent;
  std::uint64_t rx = 0;
  std::uint64_t tx = 0;
};

class NetworkCollector final : public Collector {
 public:
  NetworkCollector(const Host& host, KeptFile file) : host_(host), file_(std::move(file)) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    HOTLAP_TRY_ASSIGN(const std::string_view text, file_.read_list());
    const bool speed_is_due = speed_due_.at(tick.t_ns);
    interfaces_.begin();
    TextCursor line(text);
    line.skip_line();  // two lines of titles
    line.skip_line();
    for (; !line.at_end(); line.skip_line()) {
      line.skip_blanks();
      const auto name = line.until(':');
      Fields fields{};
      if (!name || line.numbers(fields) < kFieldCount) continue;
      auto* const slot = interfaces_.find_or_add(*name);
      if (slot == nullptr) continue;
      const bool appeared = slot->is_new;
      if (appeared) slot->entry.kind = kind_of(slot->name);
      sample_interface(*slot, fields, speed_is_due || appeared, out);
    }
    interfaces_.end(out, kCounters + 1, [&](auto& slot) {
      Interface& lost = slot.entry;
      lost.received.forget();
      lost.sent.forget();
      if (!lost.series.is_registered()) return;
      lost.series.add_missing(out, MissingReason::kSourceLost);
      if (lost.speed.valid()) out.add(lost.speed, Value::missing(MissingReason::kSourceLost));
    });
    add_total(out);
    return Outcome::kSampled;
  }

 private:
  Interface::Kind kind_of(const std::string& name) const {
    if (name == "lo") return Interface::Kind::kInternal;
    const std::string folder = "/sys/class/net/" + name;
    if (host_.exists(folder + "/device")) return Interface::Kind::kPhysical;
    return host_.exists(folder + "/bridge") ? Interface::Kind::kInternal : Interface::Kind::kVirtual;
  }

  void sample_interface(InstanceTable<Interface>::Slot& slot, const Fields& fields, bool with_speed, SampleSink& out) {
    Interface& interface = slot.entry;
    interface.rx = fields[kFRxBytes];
    interface.tx = fields[kFTxBytes];
    if (!interface.series.is_registered()) {
      // Interfaces that never carried anything would only cost room.
      if (interface.kind != Interface::Kind::kPhysical && interface.rx == 0 && interface.tx == 0) return;
      interface.series.register_at(out, kRxBytes, slot.name);
      if (slot.name != "lo") interface.speed = out.series(kSpeed, slot.name);
      with_speed = true;
    }
    for (std::size_t m = 0; m < kCounters; ++m) out.add(interface.series[m], Value::of(fields[kFieldOfMetric[m]]));
    if (with_speed && interface.speed.valid()) out.add(interface.speed, link_speed(slot.name));
  }

  // In Mbit/s. A link that is down, or of a kind that has no speed, says -1 or refuses to be read.
  Value link_speed(const std::string& name) const {
    const Result<std::string> text = host_.read_text("/sys/class/net/" + name + "/speed");
    std::uint64_t speed = 0;
    if (!text.ok() || !TextCursor(*text).number(speed) || speed >= UINT32_MAX) {
      return Value::missing(MissingReason::kNotSupported);
    }
    return Value::of(speed);
  }

  void add_total(SampleSink& out) {
    bool has_physical = false;
    for (const auto& slot : interfaces_.slots()) {
      has_physical |= slot.is_present && slot.entry.kind == Interface::Kind::kPhysical;
    }
    const Interface::Kind counted = has_physical ? Interface::Kind::kPhysical : Interface::Kind::kVirtual;
    bool has_counted = false;
    for (auto& slot : interfaces_.slots()) {
      Interface& interface = slot.entry;
      if (!slot.is_present) continue;
      if (interface.kind == counted) {
        has_counted = true;
        interface.received.add_to(received_, interface.rx);
        interface.sent.add_to(sent_, interface.tx);
      } else {
        interface.received.forget();
        interface.sent.forget();
      }
    }
    if (!total_.is_registered()) total_.register_at(out, kTotalRxBytes, {});
    if (!has_counted) return total_.add_missing(out, MissingReason::kSourceLost);  // nothing but lo
    out.add(total_[0], Value::of(received_));
    out.add(total_[1], Value::of(sent_));
  }

  const Host& host_;
  KeptFile file_;
  InstanceTable<Interface> interfaces_{kInterfacesMax};
  Due speed_due_{kSpeedPeriodNs};
  std::uint64_t received_ = 0;
  std::uint64_t sent_ = 0;
  SeriesSet<2> total_;
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY_ASSIGN(KeptFile file, KeptFile::open(host, "/proc/net/dev"));
  return std::unique_ptr<Collector>(std::make_unique<NetworkCollector>(host, std::move(file)));
}

}  // namespace

extern constinit const CollectorSpec collector_network{
    .name = "network",
    .summary =
        "Bytes, packets, errors, drops and link speed of each network interface, and the total of the physical ones.",
    .metrics = kMetrics,
    .open = open};

}  // namespace hotlap
