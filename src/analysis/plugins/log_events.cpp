// What a log says happened to the job: memory that ran out, collectives for which ranks waited, the network of NCCL.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "analysis/analyzer.h"
#include "analysis/minutes.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::array kOomFields{
    FactField{"count", "1", "times that it happened to this rank"},
    FactField{"ask_bytes", "By", "that the first one asked for"},
    FactField{"total_bytes", "By", "of the device"},
    FactField{"free_bytes", "By", "left on the device"},
    FactField{"allocated_bytes", "By", "in tensors"},
    FactField{"gap_bytes", "By", "held by the allocator and not in tensors"},
    FactField{"process_bytes", "By", "of the process, what is no tensor included"},
    FactField{"at_s", "s", "when, on the recording's clock"},
};
constexpr std::array kCollectiveFields{
    FactField{"source", "text", "horovod: by its stall warnings; nccl: by PyTorch's watchdog"},
    FactField{"tensor", "text", "of Horovod: one that was waited for"},
    FactField{"missing", "text", "of Horovod: ranks that had not announced it"},
    FactField{"ready", "text", "of Horovod: ranks that had"},
    FactField{"count", "1", "messages that say so"},
    FactField{"world_size", "1", "ranks of the job"},
    FactField{"group", "text", "process group, as the log names it"},
    FactField{"sequence", "1", "number of the collective that timed out"},
    FactField{"operation", "text", ""},
    FactField{"elements_in", "1", "that the rank handed in"},
    FactField{"elements_out", "1", ""},
    FactField{"enqueued", "1", "number of the last one that the rank had entered"},
    FactField{"completed", "1", "number of the last one that had ended"},
    FactField{"waited_s", "s", "for it"},
    FactField{"timeout_s", "s", "after which the watchdog speaks"},
};
constexpr std::array kTransportFields{
    FactField{"socket_used", "1", "1: data went over sockets between machines"},
    FactField{"local_only", "1", "1: all channels that were seen are inside one machine: no network is used"},
    FactField{"rdma_used", "1", "1: over InfiniBand, RoCE or libfabric"},
    FactField{"rdma_found", "1", "1: NCCL found such a device; 0: it looked and found none"},
    FactField{"devices", "text", "that NCCL uses"},
    FactField{"rdma_devices", "text", "ports of RDMA that the machine has, as far as it shows"},
    FactField{"rdma_bytes_per_s", "By/s", "that they received and sent together"},
};
constexpr std::array kFailureFields{
    FactField{"kind", "text", "worker_killed, shared_memory, gpu or other"},
    FactField{"text", "text", "the message; absent: a traceback without one"},
    FactField{"at_s", "s", "end of the last step before it, on the recording's clock"},
};
constexpr std::array kRestartFields{
    FactField{"count", "1", "times that the job was started again from a checkpoint"},
    FactField{"steps", "{step}", "that it did anew, all together"},
    FactField{"lost_s", "s", "time of these steps, and until it went on"},
};
constexpr std::array kSilenceFields{
    FactField{"count", "1", "times that a log said nothing for long between two steps, and not why"},
    FactField{"longest_s", "s", "the longest of them, beyond its steps"},
    FactField{"sum_s", "s", "all of them"},
    FactField{"step", "{step}", "the one before the longest"},
    FactField{"at_s", "s", "when that one ended, on the recording's clock"},
};
constexpr std::array kSchemas{
    FactSchema{"log.silence", "a log that said nothing for long", kSilenceFields},
    FactSchema{"log.failure", "the error in which a log ends", kFailureFields},
    FactSchema{"log.restart", "a job that was started again, by its log", kRestartFields},
    FactSchema{"log.out_of_memory", "device memory that ran out, of one rank", kOomFields},
    FactSchema{"log.collective", "a collective for which ranks waited in vain", kCollectiveFields},
    FactSchema{"log.transport", "the network that NCCL uses", kTransportFields},
};
constexpr std::array<std::string_view, 2> kMetrics{"infiniband.receive.bytes", "infiniband.transmit.bytes"};
constexpr std::size_t kEntriesMax = 4096;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

std::optional<double> word_number(const Event& event, std::string_view key) {
  return parse_f64(message_word(event.text, key));
}

class LogEventsAnalyzer final : public Analyzer {
 public:
  explicit LogEventsAnalyzer(const RunDescription& run) : run_(run) {}

  void on_event(const Event& event) override {
    if (is_note_of(event, kOutOfMemoryNote)) {
      if (memory_.size() < kEntriesMax || memory_.contains(event.value)) {
        ++memory_.try_emplace(event.value, Entry{event, 0}).first->second.count;
      }
    } else if (is_note_of(event, kStallNote)) {
      if (stalls_.size() < kEntriesMax || stalls_.contains(event.text)) {
        ++stalls_.try_emplace(event.text, Entry{event, 0}).first->second.count;
      }
    } else if (is_note_of(event, kTimeoutNote)) {
      take_timeout(event);
    } else if (is_note_of(event, kFailureNote)) {
      if (failures_.size() < kEntriesMax) failures_.try_emplace(event.value, event);
    } else if (is_note_of(event, kRestartNote)) {
      Restarts& restarts = restarts_[event.value];
      restarts.count += 1;
      restarts.steps += word_number(event, "steps").value_or(0);
      restarts.lost_s += word_number(event, "lost_ms").value_or(0) / 1e3;
    } else if (is_note_of(event, kSilenceNote)) {
      take_silence(event);
    } else if (is_note_of(event, kTransportNote)) {
      take_transport(event.text);
    }
  }

  void on_samples(const StoredSeries& series, std::span<const SamplePoint> points) override { take(series, points); }
  void on_minutes(const StoredSeries& series, std::span<const TierPoint> minutes) override { take(series, minutes); }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const LogEventsAnalyzer&>(other);
    memory_.insert(from.memory_.begin(), from.memory_.end());
    for (const auto& [text, entry] : from.stalls_) {
      const auto [place, is_new] = stalls_.try_emplace(text, entry);
      if (!is_new) place->second.count += entry.count;
    }
    timeouts_.insert(from.timeouts_.begin(), from.timeouts_.end());
    is_socket_used_ |= from.is_socket_used_;
    is_rdma_used_ |= from.is_rdma_used_;
    has_network_channel_ |= from.has_network_channel_;
    has_local_channel_ |= from.has_local_channel_;
    if (from.is_rdma_found_) is_rdma_found_ = is_rdma_found_.value_or(false) || *from.is_rdma_found_;
    devices_.insert(from.devices_.begin(), from.devices_.end());
    ports_.insert(from.ports_.begin(), from.ports_.end());
    failures_.insert(from.failures_.begin(), from.failures_.end());
    restarts_.insert(from.restarts_.begin(), from.restarts_.end());
    silences_.insert(from.silences_.begin(), from.silences_.end());
    if (!world_size_) world_size_ = from.world_size();
  }

  void snapshot(FactTable& out) const override {
    for (const auto& [rank, entry] : memory_) out.add(out_of_memory(rank, entry));
    for (const auto& [text, entry] : stalls_) out.add(stall(entry));
    for (const auto& [key, timeout] : timeouts_) out.add(collective(key, timeout));
    for (const auto& [rank, event] : failures_) out.add(failure(rank, event));
    for (const auto& [rank, restarts] : restarts_) out.add(restart(rank, restarts));
    for (const auto& [rank, silences] : silences_) out.add(silence(rank, silences));
    if (is_socket_used_ || is_rdma_used_ || is_rdma_found_ || !devices_.empty()) out.add(transport());
  }

 private:
  // Samples or points of minutes.
  template <class Point>
  void take(const StoredSeries& series, std::span<const Point> points) {
    if (points.empty() || ports_.size() >= kEntriesMax) return;
    Port& port = ports_[series.metric + " " + series.instance];
    port.name = series.instance;
    for (const Point& point : points) {
      const auto value = last_value(point);
      if (!value) continue;
      if (!port.first) port.first = *value * series.scale, port.from_ns = end_ns(point);
      port.last = *value * series.scale;
      port.to_ns = end_ns(point);
    }
  }

  struct Entry {
    Event event;
    double count = 0;
  };
  struct Restarts {
    double count = 0;
    double steps = 0;
    double lost_s = 0;
  };
  struct Silences {
    double count = 0;
    double sum_s = 0;
    double longest_s = 0;
    double step = 0;  // before the longest
    double at_s = 0;
  };
  struct Timeout {
    std::string operation;
    std::optional<double> sequence, elements_in, elements_out, enqueued, completed, waited_ms, timeout_ms;
  };
  struct Port {
    std::string name;
    std::optional<double> first;
    double last = 0;
    std::int64_t from_ns = 0;
    std::int64_t to_ns = 0;
  };

  // Several lines speak of the same work: each adds what it knows.
  void take_timeout(const Event& event) {
    const std::pair key{std::string(message_word(event.text, "group")), event.value};
    if (timeouts_.size() >= kEntriesMax && !timeouts_.contains(key)) return;
    Timeout& timeout = timeouts_[key];
    const auto learn = [&](std::optional<double>& place, std::string_view word) {
      if (!place) place = word_number(event, word);
    };
    learn(timeout.sequence, "seq");
    learn(timeout.elements_in, "numel_in");
    learn(timeout.elements_out, "numel_out");
    learn(timeout.enqueued, "enqueued");
    learn(timeout.completed, "completed");
    learn(timeout.waited_ms, "ran_ms");
    learn(timeout.timeout_ms, "timeout_ms");
    if (timeout.operation.empty()) timeout.operation = message_word(event.text, "op");
  }

  void take_silence(const Event& event) {
    if (silences_.size() >= kEntriesMax && !silences_.contains(event.value)) return;
    Silences& all = silences_[event.value];
    const double s = word_number(event, "ms").value_or(0) / 1e3;
    all.count += 1;
    all.sum_s += s;
    if (s <= all.longest_s) return;
    all.longest_s = s;
    all.step = word_number(event, "step").value_or(0);
    all.at_s = seconds(event.t_ns);
  }

  void take_transport(std::string_view text) {
    const std::string_view what = message_word(text, "nccl");
    const bool is_rdma = what == "ib" || what == "libfabric";
    if (message_word(text, "used") == "1") {
      is_socket_used_ |= what == "socket";
      has_network_channel_ |= message_word(text, "channel") == "1";
      has_local_channel_ |= what == "p2p" || what == "shm";
      is_rdma_used_ |= is_rdma;
    }
    if (const std::string_view found = message_word(text, "found"); !found.empty() && is_rdma) {
      is_rdma_found_ = is_rdma_found_.value_or(false) || found == "1";
    }
    const std::string_view device = message_word(text, "device");
    if (!device.empty() && devices_.size() < kEntriesMax) devices_.emplace(device);
  }

  std::optional<double> world_size() const {
    if (world_size_) return world_size_;
    if (run_.recording == nullptr) return std::nullopt;
    for (const std::string_view key : {"job.world_size", "meta.world_size", "meta.ranks", "meta.gpus"}) {
      const auto found = run_.recording->attributes.find(std::string(key));
      if (found == run_.recording->attributes.end()) continue;
      if (const auto size = parse_f64(found->second); size && *size >= 1) return size;
    }
    return std::nullopt;
  }

  static Fact out_of_memory(std::int64_t rank, const Entry& entry) {
    Fact fact{.kind = "log.out_of_memory"};
    if (rank >= 0) fact.where.rank = static_cast<std::int32_t>(rank);
    const std::string_view gpu = message_word(entry.event.text, "gpu");
    if (!gpu.empty()) fact.where.device = "gpu" + std::string(gpu);
    fact.set("count", entry.count).set("at_s", seconds(entry.event.t_ns));
    for (const auto& [field, word] : {std::pair{"ask_bytes", "ask"}, std::pair{"total_bytes", "total"},
                                      std::pair{"free_bytes", "free"}, std::pair{"allocated_bytes", "allocated"},
                                      std::pair{"gap_bytes", "gap"}, std::pair{"process_bytes", "process"}}) {
      fact.set(field, word_number(entry.event, word));
    }
    return fact;
  }

  static Fact failure(std::int64_t rank, const Event& event) {
    Fact fact{.kind = "log.failure"};
    if (rank >= 0) fact.where.rank = static_cast<std::int32_t>(rank);
    fact.set_text("kind", std::string(message_word(event.text, "kind"))).set("at_s", seconds(event.t_ns));
    constexpr std::string_view kText = " text=";
    const std::size_t at = event.text.find(kText);
    if (at != std::string::npos && at + kText.size() < event.text.size())
      fact.set_text("text", event.text.substr(at + kText.size()));
    return fact;
  }

  static Fact restart(std::int64_t rank, const Restarts& restarts) {
    Fact fact{.kind = "log.restart"};
    if (rank >= 0) fact.where.rank = static_cast<std::int32_t>(rank);
    fact.set("count", restarts.count).set("steps", restarts.steps).set("lost_s", restarts.lost_s);
    return fact;
  }

  static Fact silence(std::int64_t rank, const Silences& all) {
    Fact fact{.kind = "log.silence"};
    if (rank >= 0) fact.where.rank = static_cast<std::int32_t>(rank);
    fact.set("count", all.count).set("longest_s", all.longest_s).set("sum_s", all.sum_s);
    fact.set("step", all.step).set("at_s", all.at_s);
    return fact;
  }

  Fact stall(const Entry& entry) const {
    Fact fact{.kind = "log.collective"};
    fact.set_text("source", "horovod");
    fact.set("count", entry.count).set("world_size", world_size());
    for (const std::string_view word : {"tensor", "missing", "ready"}) {
      const std::string_view text = message_word(entry.event.text, word);
      if (!text.empty()) fact.set_text(word, std::string(text));
    }
    return fact;
  }

  static Fact collective(const std::pair<std::string, std::int64_t>& key, const Timeout& timeout) {
    Fact fact{.kind = "log.collective"};
    fact.set_text("source", "nccl");
    if (key.second >= 0) fact.where.rank = static_cast<std::int32_t>(key.second);
    if (!key.first.empty()) fact.set_text("group", key.first);
    if (!timeout.operation.empty()) fact.set_text("operation", timeout.operation);
    fact.set("sequence", timeout.sequence).set("elements_in", timeout.elements_in);
    fact.set("elements_out", timeout.elements_out).set("enqueued", timeout.enqueued);
    fact.set("completed", timeout.completed);
    if (timeout.waited_ms) fact.set("waited_s", *timeout.waited_ms / 1e3);
    if (timeout.timeout_ms) fact.set("timeout_s", *timeout.timeout_ms / 1e3);
    return fact;
  }

  Fact transport() const {
    Fact fact{.kind = "log.transport"};
    fact.set("socket_used", is_socket_used_ ? 1 : 0).set("rdma_used", is_rdma_used_ ? 1 : 0);
    if (has_local_channel_ || has_network_channel_) fact.set("local_only", has_network_channel_ ? 0 : 1);
    if (is_rdma_found_) fact.set("rdma_found", *is_rdma_found_ ? 1 : 0);
    std::string devices;
    for (const std::string& device : devices_) devices += (devices.empty() ? "" : ", ") + device;
    if (!devices.empty()) fact.set_text("devices", devices);
    std::set<std::string> names;
    std::optional<double> rate;
    for (const auto& [key, port] : ports_) {
      names.insert(port.name);
      if (port.first && port.to_ns > port.from_ns)
        rate = rate.value_or(0) + (port.last - *port.first) / seconds(port.to_ns - port.from_ns);
    }
    std::string ports;
    for (const std::string& name : names) ports += (ports.empty() ? "" : ", ") + name;
    if (!ports.empty()) fact.set_text("rdma_devices", ports).set("rdma_bytes_per_s", rate);
    return fact;
  }

  const RunDescription& run_;
  std::map<std::int64_t, Entry> memory_;  // by rank; -1: not told
  std::map<std::string, Entry> stalls_;
  std::map<std::pair<std::string, std::int64_t>, Timeout> timeouts_;  // by group and rank
  std::map<std::int64_t, Event> failures_;                            // by rank; -1: not told
  std::map<std::int64_t, Restarts> restarts_;
  std::map<std::int64_t, Silences> silences_;  // by rank; -1: not told
  std::map<std::string, Port> ports_;
  std::set<std::string> devices_;
  bool is_socket_used_ = false;
  bool is_rdma_used_ = false;
  bool has_network_channel_ = false;
  bool has_local_channel_ = false;
  std::optional<bool> is_rdma_found_;
  std::optional<double> world_size_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<LogEventsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_log_events{
    .id = "log_events",
    .summary = "What a log says happened: memory that ran out, ranks that were waited for, the network of NCCL.",
    .produces = kSchemas,
    .metrics = kMetrics,
    .spans = {},
    .takes_minutes = true,
    .open = open};

}  // namespace hotlap
