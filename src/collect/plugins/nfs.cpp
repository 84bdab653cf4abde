// NFS mounts from /proc/self/mountstats: bytes, operations and what they took. Reading it asks no server.
#include <array>

#include "base/clock.h"
#include "collect/collector.h"
#include "collect/instances.h"
#include "collect/mounts.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = kNsPerS;
constexpr std::int64_t kPeriodWithoutMountsNs = 10 * kNsPerS;
constexpr std::size_t kMountsMax = 64;
constexpr double kMillisecond = 1e-3;

enum Metric : std::uint16_t {
  kReadBytes,
  kWriteBytes,
  kReads,
  kReadRtt,
  kReadTime,
  kWrites,
  kWriteRtt,
  kWriteTime,
  kOperations,
  kRtt,
  kTime,
  kRetransmissions,
  kMetricCount,
};

constexpr MetricDesc count(std::string_view name, std::string_view unit, double scale, std::string_view help,
                           std::string_view prometheus = {}) {
  return {.name = name,
          .unit = unit,
          .kind = MetricKind::kCounter,
          .help = help,
          .min_period_ns = kPeriodNs,
          .aliases = {"", "", prometheus},
          .scale = scale};
}
constexpr std::array kMetrics{
    count("nfs.read.bytes", "By", 1, "Bytes read from the server.", "node_mountstats_nfs_total_read_bytes_total"),
    count("nfs.write.bytes", "By", 1, "Bytes written to the server.", "node_mountstats_nfs_total_write_bytes_total"),
    count("nfs.reads", "{operation}", 1, "READ requests.",
          "node_mountstats_nfs_operations_requests_total{operation=\"READ\"}"),
    count("nfs.read.rtt.seconds", "s", kMillisecond, "Time from sending to answer, added up over READ requests.",
          "node_mountstats_nfs_operations_response_time_seconds_total{operation=\"READ\"}"),
    count("nfs.read.seconds", "s", kMillisecond, "Time that READ requests took with waiting to be sent, added up.",
          "node_mountstats_nfs_operations_request_time_seconds_total{operation=\"READ\"}"),
    count("nfs.writes", "{operation}", 1, "WRITE requests.",
          "node_mountstats_nfs_operations_requests_total{operation=\"WRITE\"}"),
    count("nfs.write.rtt.seconds", "s", kMillisecond, "Time from sending to answer, added up over WRITE requests.",
          "node_mountstats_nfs_operations_response_time_seconds_total{operation=\"WRITE\"}"),
    count("nfs.write.seconds", "s", kMillisecond, "Time that WRITE requests took with waiting to be sent, added up.",
          "node_mountstats_nfs_operations_request_time_seconds_total{operation=\"WRITE\"}"),
    count("nfs.operations", "{operation}", 1, "Requests of all kinds.",
          "node_mountstats_nfs_operations_requests_total"),
    count("nfs.rtt.seconds", "s", kMillisecond, "Time from sending to answer, added up over all requests.",
          "node_mountstats_nfs_operations_response_time_seconds_total"),
    count("nfs.seconds", "s", kMillisecond, "Time that all requests took with waiting to be sent, added up.",
          "node_mountstats_nfs_operations_request_time_seconds_total"),
    count("nfs.retransmissions", "{operation}", 1, "Requests sent again because no answer came."),
};
static_assert(kMetrics.size() == kMetricCount);

using Totals = std::array<std::uint64_t, kMetricCount>;

// One line of "per-op statistics": requests, transmissions, timeouts, bytes sent, bytes received, and the
// milliseconds queued, until the answer, and in all.
void add_operation(std::string_view name, TextCursor& line, Totals& totals) {
  enum Field : std::size_t {
    kRequests,
    kTransmissions,
    kTimeouts,
    kSent,
    kReceived,
    kQueueMs,
    kRttMs,
    kAllMs,
    kFieldCount
  };
  std::array<std::uint64_t, kFieldCount> fields{};
  if (line.numbers(fields) < kFieldCount) return;
  totals[kOperations] += fields[kRequests];
  totals[kRtt] += fields[kRttMs];
  totals[kTime] += fields[kAllMs];
  if (fields[kTransmissions] > fields[kRequests])
    totals[kRetransmissions] += fields[kTransmissions] - fields[kRequests];
  const bool is_read = name == "READ";
  if (!is_read && name != "WRITE") return;
  totals[is_read ? kReads : kWrites] = fields[kRequests];
  totals[is_read ? kReadRtt : kWriteRtt] = fields[kRttMs];
  totals[is_read ? kReadTime : kWriteTime] = fields[kAllMs];
}

// The block of one mount, up to the next "device " line, where `cursor` ends.
Totals read_mount(TextCursor& cursor) {
  Totals totals{};
  bool has_operations = false;
  while (cursor.skip_line()) {
    TextCursor line = cursor;
    if (line.accept("device ")) break;
    const std::string_view word = line.word();
    if (word == "bytes:") {
      // Read and written by programs through the cache, then past it, then from and to the server; then pages.
      std::array<std::uint64_t, 6> bytes{};
      if (line.numbers(bytes) == bytes.size()) {
        totals[kReadBytes] = bytes[4];
        totals[kWriteBytes] = bytes[5];
      }
    } else if (word == "per-op") {
      has_operations = true;
    } else if (has_operations && word.ends_with(':')) {
      add_operation(word.substr(0, word.size() - 1), line, totals);
    }
  }
  return totals;
}

class NfsCollector final : public Collector {
 public:
  explicit NfsCollector(KeptFile file) : file_(std::move(file)) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (!due_.at(tick.t_ns)) return Outcome::kNoData;
    HOTLAP_TRY_ASSIGN(const std::string_view text, file_.read());
    mounts_.begin();
    bool has_any = false;
    TextCursor cursor(text);
    while (!cursor.at_end()) {
      // "device server:/export mounted on /data with fstype nfs4 statvers=1.1"
      TextCursor line = cursor;
      (void)line.word();
      (void)line.word();
      const bool is_mount = line.word() == "mounted" && line.word() == "on";
      const std::string_view point = line.word();
      const bool is_nfs = is_mount && line.word() == "with" && line.word() == "fstype" &&
                          line.word().starts_with("nfs") && line.word().starts_with("statvers=");
      if (!is_nfs) {
        cursor.skip_line();
        continue;
      }
      has_any = true;
      const Totals totals = read_mount(cursor);
      auto* const slot = mounts_.find_or_add(point);
      if (slot == nullptr) continue;
      if (!slot->entry.is_registered()) slot->entry.register_at(out, kReadBytes, unescape_path(point));
      for (std::size_t m = 0; m < kMetricCount; ++m) out.add(slot->entry[m], Value::of(totals[m]));
    }
    mounts_.end(out, kMetricCount, [&](auto& slot) { slot.entry.add_missing(out, MissingReason::kSourceLost); });
    due_.set_period(has_any ? kPeriodNs : kPeriodWithoutMountsNs);
    return has_any ? Outcome::kSampled : Outcome::kNoData;
  }

 private:
  KeptFile file_;
  InstanceTable<SeriesSet<kMetricCount>> mounts_{kMountsMax};
  Due due_{kPeriodNs};
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  HOTLAP_TRY_ASSIGN(KeptFile file, KeptFile::open(host, "/proc/self/mountstats"));
  return std::unique_ptr<Collector>(std::make_unique<NfsCollector>(std::move(file)));
}

}  // namespace

extern constinit const CollectorSpec collector_nfs{.name = "nfs",
                                                   .summary = "Bytes, requests and waits of each NFS mount.",
                                                   .metrics = kMetrics,
                                                   .min_period_ns = kPeriodNs,
                                                   .open = open};

}  // namespace hotlap
