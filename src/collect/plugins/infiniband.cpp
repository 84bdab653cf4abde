// InfiniBand, RoCE and EFA ports from /sys/class/infiniband: what went over them beside the kernel's network stack.
// Reading a counter may ask the adapter's firmware, which takes long when it is ill: a lane of its own.
#include <array>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "collect/collector.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = kNsPerS;
constexpr std::int64_t kSpeedPeriodNs = 10 * kNsPerS;
constexpr std::size_t kPortsMax = 64;
constexpr std::uint64_t kWordBytes = 4;  // port_*_data count 32-bit words

enum Metric : std::uint16_t {
  kRxBytes,
  kTxBytes,
  kRxPackets,
  kTxPackets,
  kRxErrors,
  kTxDiscards,
  kTxWait,
  kLinkDowned,
  kRdmaReadBytes,
  kRdmaWriteBytes,
  kRetransmitted,
  kSpeed,
  kMetricCount,
};

constexpr MetricDesc count(std::string_view name, std::string_view unit, std::string_view help,
                           std::string_view prometheus = {}) {
  return {.name = name,
          .unit = unit,
          .kind = MetricKind::kCounter,
          .help = help,
          .min_period_ns = kPeriodNs,
          .aliases = {"", "", prometheus}};
}
constexpr std::array kMetrics{
    count("infiniband.receive.bytes", "By", "Bytes received.", "node_infiniband_port_data_received_bytes_total"),
    count("infiniband.transmit.bytes", "By", "Bytes sent.", "node_infiniband_port_data_transmitted_bytes_total"),
    count("infiniband.receive.packets", "{packet}", "Packets received.", "node_infiniband_port_packets_received_total"),
    count("infiniband.transmit.packets", "{packet}", "Packets sent.", "node_infiniband_port_packets_transmitted_total"),
    count("infiniband.receive.errors", "{packet}", "Packets received damaged, or dropped for want of room (EFA).",
          "node_infiniband_port_errors_received_total"),
    count("infiniband.transmit.discards", "{packet}", "Packets not sent because the port was down or congested.",
          "node_infiniband_port_discards_transmitted_total"),
    count("infiniband.transmit.wait", "{tick}",
          "Ticks of the port in which it had data to send and was not allowed to.",
          "node_infiniband_port_transmit_wait_total"),
    count("infiniband.link_downed", "{event}", "Times that the link went down.", "node_infiniband_link_downed_total"),
    count("infiniband.rdma_read.bytes", "By", "Bytes of RDMA reads that were asked for here (EFA)."),
    count("infiniband.rdma_write.bytes", "By", "Bytes of RDMA writes that were sent from here (EFA)."),
    count("infiniband.retransmitted.bytes", "By", "Bytes that had to be sent again (EFA)."),
    MetricDesc{.name = "infiniband.link.speed",
               .unit = "bit/s",
               .help = "Speed of the link.",
               .min_period_ns = kSpeedPeriodNs,
               .aliases = {"", "", "node_infiniband_rate_bytes_per_second"}},
};
static_assert(kMetrics.size() == kMetricCount);

struct Source {
  Metric metric;
  std::string_view path;  // below the port's folder; the first that is there counts
  std::uint64_t unit = 1;
};
constexpr std::array kSources{
    Source{kRxBytes, "counters/port_rcv_data", kWordBytes},
    Source{kRxBytes, "hw_counters/rx_bytes"},
    Source{kTxBytes, "counters/port_xmit_data", kWordBytes},
    Source{kTxBytes, "hw_counters/tx_bytes"},
    Source{kRxPackets, "counters/port_rcv_packets"},
    Source{kRxPackets, "hw_counters/rx_pkts"},
    Source{kTxPackets, "counters/port_xmit_packets"},
    Source{kTxPackets, "hw_counters/tx_pkts"},
    Source{kRxErrors, "counters/port_rcv_errors"},
    Source{kRxErrors, "hw_counters/rx_drops"},
    Source{kTxDiscards, "counters/port_xmit_discards"},
    Source{kTxWait, "counters/port_xmit_wait"},
    Source{kLinkDowned, "counters/link_downed"},
    Source{kRdmaReadBytes, "hw_counters/rdma_read_bytes"},
    Source{kRdmaWriteBytes, "hw_counters/rdma_write_bytes"},
    Source{kRetransmitted, "hw_counters/retrans_bytes"},
};

struct Counter {
  Metric metric;
  std::uint64_t unit;
  KeptFile file;
  SeriesHandle series;
};
struct Port {
  std::string label;  // "mlx5_0/1"
  std::string folder;
  std::vector<Counter> counters;
  SeriesHandle speed;
  bool is_lost = false;
};

class InfinibandCollector final : public Collector {
 public:
  InfinibandCollector(const Host& host, std::vector<Port> ports, std::uint64_t excess)
      : host_(host), ports_(std::move(ports)), excess_(excess) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (excess_ > 0) out.count_loss("record.series_refused", std::exchange(excess_, 0) * kMetricCount);
    const bool speed_is_due = speed_due_.at(tick.t_ns);
    for (Port& port : ports_) {
      bool is_lost = true;
      for (Counter& counter : port.counters) is_lost &= !sample_counter(port, counter, out);
      if (speed_is_due && !(is_lost && port.is_lost)) sample_speed(port, out);
      port.is_lost = is_lost;
    }
    return Outcome::kSampled;
  }

 private:
  // False: its source is gone, which is said once.
  static bool sample_counter(const Port& port, Counter& counter, SampleSink& out) {
    if (!counter.series.valid()) counter.series = out.series(counter.metric, port.label);
    const Result<std::string_view> text = counter.file.read_record();
    if (!text.ok() && text.error().code == ErrorCode::kNotFound) {
      if (!port.is_lost) out.add(counter.series, Value::missing(MissingReason::kSourceLost));
      return false;
    }
    std::uint64_t number = 0;
    // "N/A (no PMA)" is what a port without counters says.
    if (!text.ok())
      out.add(counter.series, Value::missing(missing_reason(text.error())));
    else if (!TextCursor(*text).number(number))
      out.add(counter.series, Value::missing(MissingReason::kNotSupported));
    else
      out.add(counter.series, Value::of(number * counter.unit));
    return true;
  }

  // "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)".
  void sample_speed(Port& port, SampleSink& out) {
    if (!port.speed.valid()) port.speed = out.series(kSpeed, port.label);
    const Result<std::string> text = host_.read_text(port.folder + "/rate");
    std::string_view rest = text.ok() ? std::string_view(*text) : std::string_view();
    const auto gigabits = parse_f64(next_word(rest));
    const bool is_known = gigabits && *gigabits > 0 && next_word(rest) == "Gb/sec";
    out.add(port.speed, is_known ? Value::of(*gigabits * 1e9) : Value::missing(MissingReason::kNotSupported));
  }

  const Host& host_;
  std::vector<Port> ports_;
  std::uint64_t excess_;
  Due speed_due_{kSpeedPeriodNs};
};

Port open_port(const Host& host, const std::string& device, const std::string& number) {
  Port port{.label = format("{}/{}", device, number),
            .folder = format("/sys/class/infiniband/{}/ports/{}", device, number),
            .counters = {},
            .speed = {}};
  for (const Source& source : kSources) {
    if (!port.counters.empty() && port.counters.back().metric == source.metric) continue;
    Result<KeptFile> file = KeptFile::open(host, format("{}/{}", port.folder, source.path));
    if (file.ok()) port.counters.push_back({source.metric, source.unit, std::move(file).value(), {}});
  }
  return port;
}

Result<std::unique_ptr<Collector>> open(const Host& host) {
  const Result<std::vector<std::string>> devices = host.list("/sys/class/infiniband");
  if (!devices.ok()) return Error{ErrorCode::kUnsupported, "no InfiniBand or EFA device here"};
  std::vector<Port> ports;
  std::uint64_t excess = 0;
  for (const std::string& device : *devices) {
    const Result<std::vector<std::string>> numbers = host.list(format("/sys/class/infiniband/{}/ports", device));
    if (!numbers.ok()) continue;
    for (const std::string& number : *numbers) {
      if (ports.size() == kPortsMax) {
        ++excess;
        continue;
      }
      Port port = open_port(host, device, number);
      if (!port.counters.empty()) ports.push_back(std::move(port));
    }
  }
  if (ports.empty()) return Error{ErrorCode::kUnsupported, "no InfiniBand or EFA port with counters here"};
  return std::unique_ptr<Collector>(std::make_unique<InfinibandCollector>(host, std::move(ports), excess));
}

}  // namespace

extern constinit const CollectorSpec collector_infiniband{
    .name = "infiniband",
    .summary = "Bytes, packets, errors and link speed of each InfiniBand, RoCE and EFA port.",
    .metrics = kMetrics,
    .min_period_ns = kPeriodNs,
    .lane = Lane::kMayBlock,
    .open = open};

}  // namespace hotlap
