#include "ingest/smdebug.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "model/gpu_metrics.h"

namespace hotlap {
namespace {

constexpr double kTimeMaxS = 9e9;                           // beyond, nanoseconds leave int64
constexpr std::int64_t kTimeMaxUs = 4'000'000'000'000'000;  // the sum of two, in nanoseconds, stays inside int64
constexpr std::int64_t kTimeMaxNs = kTimeMaxUs * kNsPerUs;
constexpr std::size_t kPhasesMax = std::size_t{1} << 16;
constexpr std::size_t kOpenMax = 1024;  // of one phase
constexpr std::size_t kProcessesMax = 4096;
constexpr std::size_t kNameMax = 512;              // bytes of a phase's or an event's name
constexpr std::int64_t kClockNs = 100 * kNsPerMs;  // hosts of a cluster agree within this, as NTP keeps them

constexpr MetricDesc gauge(std::string_view name, std::string_view unit, std::string_view help) {
  return {.name = name, .unit = unit, .help = help};
}
constexpr MetricDesc kCoreBusy = gauge("cpu.core.busy.percent", "%", "Use of one core, as SageMaker measured it.");
constexpr MetricDesc kCoreIowait =
    gauge("cpu.core.iowait.percent", "%", "Time of one core in which it waited for I/O, as SageMaker measured it.");
constexpr MetricDesc kGpuMemory =
    gauge("gpu.memory.used.percent", "%", "Use of device memory, as SageMaker measured it.");
constexpr MetricDesc kMemory = gauge("memory.used.percent", "%", "Memory in use, as SageMaker measured it.");
constexpr MetricDesc kOperations =
    gauge("disk.total.operations.rate", "{operation}/s", "Reads and writes of all disks.");
constexpr MetricDesc kRead = gauge("disk.total.read.rate", "By/s", "Bytes read from all disks.");
constexpr MetricDesc kWrite = gauge("disk.total.write.rate", "By/s", "Bytes written to all disks.");
constexpr MetricDesc kReceive = gauge("network.receive.rate", "By/s", "Bytes received.");
constexpr MetricDesc kTransmit = gauge("network.transmit.rate", "By/s", "Bytes sent.");

struct Record {
  std::string_view type;
  std::string_view name;       // "#": followed by a number, which is the instance
  std::string_view dimension;  // "*": any, which is the instance
  const MetricDesc* metric;
};
constexpr std::array kRecords{
    Record{"cpu", "cpu#", "CPUUtilization", &kCoreBusy},
    Record{"cpu", "cpu#", "I/OWaitPercentage", &kCoreIowait},
    Record{"gpu", "gpu#", "GPUUtilization", &kGpuBusy},
    Record{"gpu", "gpu#", "GPUMemoryUtilization", &kGpuMemory},
    Record{"memory", "MemoryUsedPercent", "", &kMemory},
    Record{"i/o", "IOPS", "", &kOperations},
    Record{"i/o", "ReadThroughputInBytesPerSecond", "", &kRead},
    Record{"i/o", "WriteThroughputInBytesPerSecond", "", &kWrite},
    Record{"network", "ReceiveBytesPerSecond", "*", &kReceive},
    Record{"network", "TransmitBytesPerSecond", "*", &kTransmit},
};

// The number behind `prefix#`; nothing when `name` is not of that form.
std::optional<std::uint64_t> number_behind(std::string_view pattern, std::string_view name) {
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);
  if (!pattern.ends_with('#') || !name.starts_with(prefix)) return std::nullopt;
  const auto number = parse_u64(name.substr(prefix.size()));
  return number && *number < 100'000 ? number : std::nullopt;
}

bool is_node(std::string_view node) { return !node.empty() && node.size() <= 64; }

}  // namespace

void SmdebugSystem::push(ByteView chunk_untrusted) {
  objects_.push(chunk_untrusted, [&](const JsonObjectText& object) { take(object); });
}

ImportStats SmdebugSystem::finish() {
  objects_.finish([&](const JsonObjectText& object) { take(object); });
  return {.bytes = objects_.bytes(), .events = events_};
}

void SmdebugSystem::take(const JsonObjectText& object) {
  if (!std::exchange(is_clock_told_, true)) {
    out_.clock({.offset_ns = 0, .uncertainty_ns = kClockNs, .is_absolute = true});
  }
  bool is_read = false;
  if (object.is_whole) {
    const auto document = JsonDocument::parse(object.text, true);
    is_read = document.ok() && take_record(document->root(), object.offset);
  }
  if (!is_read) out_.count_loss("ingest.events_dropped", 1, object.offset);
}

bool SmdebugSystem::take_record(const JsonValue& record, std::int64_t offset) {
  const auto type = record["Type"].text();
  const auto name = record["Name"].text();
  const std::string dimension = record["Dimension"].text().value_or("");
  const auto t_s = record["Timestamp"].number();
  if (!type || !name || !t_s || !(std::fabs(*t_s) < kTimeMaxS)) return false;
  const auto found = std::ranges::find_if(kRecords, [&](const Record& known) {
    const bool is_named =
        known.name.ends_with('#') ? number_behind(known.name, *name).has_value() : known.name == *name;
    return known.type == *type && is_named && (known.dimension == "*" || known.dimension == dimension);
  });
  if (found == kRecords.end()) return false;

  const MetricDesc* metric = nullptr;
  std::string own_name;
  std::string instance;
  MetricDesc own;
  if (found != kRecords.end()) {
    metric = found->metric;
    if (const auto number = number_behind(found->name, *name)) {
      instance = format("{} {}", *type == "cpu" ? "core" : "gpu", *number);
      if (*type == "gpu") instance.erase(3, 1);  // "gpu0", as everywhere
    } else if (found->dimension == "*") {
      instance = dimension;
    }
  } else {
    // A kind that is not known keeps its own name.
    if (type->empty() || name->empty() || name->size() > kNameMax || type->size() > kNameMax) return false;
    own_name = strip_control("sagemaker." + *type + "." + *name);
    instance = dimension;
    own = gauge(own_name, "1", "As SageMaker named it.");
    metric = &own;
  }
  const std::string node = record["NodeId"].text().value_or("");
  // The first machine's series have the names that they have everywhere.
  if (is_node(node) && node != "algo-1") instance = instance.empty() ? node : node + "/" + instance;

  ++events_;
  const auto number = record["Value"].number();
  Value value = Value::missing(MissingReason::kReadFailed);
  // Agents were seen to write a use of -19 %.
  if (number && std::isfinite(*number) && *number >= 0) {
    value = Value::of(*number);
  } else {
    out_.count_loss("ingest.values_unreadable", 1, offset);
  }
  out_.sample(out_.series(*metric, strip_control(instance.substr(0, kNameMax))), std::llround(*t_s * 1e9), value);
  return true;
}

std::optional<SmdebugFileName> read_smdebug_file_name(std::string_view file_name) {
  constexpr std::array<std::string_view, 4> kSuffixes{"_pythontimeline.json", "_model_timeline.json",
                                                      "_horovod_timeline.json", "_smdataparallel_timeline.json"};
  const auto* const suffix =
      std::ranges::find_if(kSuffixes, [&](std::string_view known) { return file_name.ends_with(known); });
  if (suffix == kSuffixes.end()) return std::nullopt;
  const std::string_view stem = file_name.substr(0, file_name.size() - suffix->size());
  const std::size_t bar = stem.find('_');
  const auto end_us = parse_i64(stem.substr(0, bar));
  if (bar == std::string_view::npos || !end_us) return std::nullopt;
  SmdebugFileName name{.end_us = *end_us,
                       .node = std::string(stem.substr(bar + 1)),
                       .suffix = std::string(suffix->substr(1, suffix->size() - 6))};
  // "905-algo-1": the rank or the process, then the host.
  if (const std::size_t dash = name.node.find('-'); dash != std::string::npos) {
    name.node = name.node.substr(dash + 1) + "-" + name.node.substr(0, dash);
  }
  return name;
}

ImportStats SmdebugTimeline::finish() {
  reader_.finish();
  for (const auto& [id, phase] : phases_) {
    for (const Open& open : phase.open) on_loss("ingest.begins_unmatched", open.offset);
  }
  return {.bytes = reader_.bytes(), .events = events_};
}

void SmdebugTimeline::on_event(const TraceEvent& event, std::int64_t offset) {
  if (event.phase == 0 && event.name.raw.empty() && !event.has_start) return;  // TensorFlow ends its list with {}
  if (!take_event(event, offset)) on_loss("ingest.events_dropped", offset);
}

SmdebugTimeline::Arguments SmdebugTimeline::arguments_of(const TraceEvent& event) {
  Arguments out;
  std::string_view rest = event.arguments;
  std::string_view key;
  std::string_view value;
  while (next_argument(rest, key, value)) {
    std::int64_t* const wanted = key == "start_time_since_epoch_in_micros" ? &out.base_us
                                 : key == "pid"                            ? &out.pid
                                 : key == "worker_id"                      ? &out.worker
                                 : key == "num_workers"                    ? &out.workers
                                 : key == "step_num"                       ? &out.step
                                                                           : nullptr;
    if (wanted != nullptr) *wanted = json::whole_number(value).value_or(-1);
  }
  return out;
}

std::string SmdebugTimeline::name_of(const TraceEvent& event, std::int64_t offset) {
  return clean_name(event, kNameMax, [&](std::string_view counter) { on_loss(counter, offset); });
}

bool SmdebugTimeline::take_event(const TraceEvent& event, std::int64_t offset) {
  if (event.phase == 'M') return take_metadata(event);
  if (event.phase == 'i' || event.phase == 'C') {
    on_loss("ingest.events_skipped", offset);
    return true;
  }
  const auto id = json::whole_number(event.process);
  if (!base_ns_ || !event.has_start || !id) return false;
  if (event.start_ns > kTimeMaxNs || event.start_ns < -kTimeMaxNs) return false;
  if (phases_.size() >= kPhasesMax && !phases_.contains(*id)) return false;
  const std::int64_t t_ns = *base_ns_ + event.start_ns;
  if (t_ns < 0) {
    on_loss("ingest.times_invalid", offset);
    return true;
  }
  Phase& phase = phases_[*id];
  if (event.phase == 'X') return take_complete(event, phase, t_ns, offset);
  if (event.phase == 'B') return begin(event, phase, t_ns, offset);
  if (event.phase == 'E') return end(phase, t_ns, offset);
  return false;
}

bool SmdebugTimeline::take_metadata(const TraceEvent& event) {
  const Arguments arguments = arguments_of(event);
  if (arguments.base_us >= 0) {
    if (arguments.base_us > kTimeMaxUs) return false;
    if (!base_ns_) out_.clock({.offset_ns = 0, .uncertainty_ns = kClockNs, .is_absolute = true});
    base_ns_ = arguments.base_us * kNsPerUs;
    return true;
  }
  const auto id = json::whole_number(event.process);
  if (event.name.raw == "process_name" && id && !event.argument_name.raw.empty()) {
    if (phases_.size() >= kPhasesMax && !phases_.contains(*id)) return false;
    std::string name;
    (void)json::append_clean({.raw = event.argument_name.raw.substr(0, kNameMax)}, name);
    phases_[*id].name = strip_control(name);
  }
  return true;
}

bool SmdebugTimeline::take_complete(const TraceEvent& event, Phase& phase, std::int64_t start_ns, std::int64_t offset) {
  if (event.name.raw.empty()) return false;
  const bool has_duration = event.has_duration && event.duration_ns >= 0 && event.duration_ns <= kTimeMaxNs;
  if (!has_duration) on_loss("ingest.durations_invalid", offset);
  give(phase, name_of(event, offset), start_ns, has_duration ? event.duration_ns : -1, arguments_of(event));
  return true;
}

bool SmdebugTimeline::begin(const TraceEvent& event, Phase& phase, std::int64_t start_ns, std::int64_t offset) {
  if (event.name.raw.empty() || phase.open.size() == kOpenMax) return false;
  phase.open.push_back({.start_ns = start_ns, .name = name_of(event, offset), .offset = offset});
  return true;
}

bool SmdebugTimeline::end(Phase& phase, std::int64_t end_ns, std::int64_t offset) {
  if (phase.open.empty()) {
    on_loss("ingest.ends_unmatched", offset);
    return true;
  }
  const Open open = std::move(phase.open.back());
  phase.open.pop_back();
  const bool is_reversed = end_ns < open.start_ns;
  if (is_reversed) on_loss("ingest.durations_invalid", offset);
  give(phase, open.name, open.start_ns, is_reversed ? -1 : end_ns - open.start_ns, Arguments{});
  return true;
}

std::uint32_t SmdebugTimeline::process_of(const Phase& phase, const Arguments& arguments) {
  ProcessInfo process{.role = ProcessRole::kMain, .label = node_};
  if (arguments.pid > 0 && arguments.pid <= INT32_MAX) process.pid = static_cast<std::int32_t>(arguments.pid);
  if (phase.name == "DataLoaderWorker" && arguments.worker >= 0 && arguments.worker < 100'000) {
    process.role = ProcessRole::kLoader;
    process.index = static_cast<std::int32_t>(arguments.worker);
    if (!node_.empty()) process.label = format("{} loader {}", node_, arguments.worker);
  }
  const std::string key = format("{} {}", process.index, process.label);
  const auto found = processes_.known.find(key);
  if (found == processes_.known.end()) {
    if (processes_.known.size() == kProcessesMax) return 0;
    const std::uint32_t slot = out_.process(process);
    processes_.known.emplace(key, SmdebugProcesses::Known{.slot = slot, .has_pid = process.pid != 0});
    return slot;
  }
  process.slot = found->second.slot;
  if (process.pid != 0 && !std::exchange(found->second.has_pid, true)) out_.process(process);
  return process.slot;
}

void SmdebugTimeline::give(const Phase& phase, const std::string& name, std::int64_t start_ns, std::int64_t duration_ns,
                           const Arguments& arguments) {
  struct Kind {
    std::string_view phase;  // begins with
    SpanKind kind;
  };
  static constexpr std::array kKinds{Kind{"Step:ModeKeys.EVAL", SpanKind::kEvaluation},
                                     Kind{"Step:ModeKeys.PREDICT", SpanKind::kEvaluation},
                                     Kind{"Forward-SubModule", SpanKind::kUser},
                                     Kind{"Backward-SubModule", SpanKind::kUser},
                                     Kind{"Forward", SpanKind::kForward},
                                     Kind{"Backward", SpanKind::kBackward},
                                     Kind{"DataLoaderIterInitialize", SpanKind::kWorkerStart},
                                     Kind{"DataLoaderIter", SpanKind::kDataWait},
                                     Kind{"DataLoaderWorker", SpanKind::kWorkerFetch},
                                     Kind{"NcclManager", SpanKind::kCollective}};
  ++events_;
  Span span{.start_ns = start_ns, .duration_ns = duration_ns, .process = process_of(phase, arguments)};
  for (const Kind& known : kKinds) {
    if (!phase.name.starts_with(known.phase)) continue;
    span.kind = known.kind;
    break;
  }
  if (name.starts_with("NEGOTIATE_")) span.kind = SpanKind::kCollective;
  // What it belongs to is part of its name where the name alone does not say it.
  const bool is_plain = phase.name.empty() || phase.name == name;
  span.name = out_.name(strip_control(is_plain ? name : format("{}: {}", phase.name, name)).substr(0, kNameMax));
  if (arguments.step >= 0) {
    span.step = arguments.step;
  } else if (span.kind == SpanKind::kDataWait || span.kind == SpanKind::kForward) {
    // Of the step that it leads to; one without any would be taken for evaluation, which has phases of its own here.
    span.step = processes_.steps[span.process];
  }
  if (span.kind == SpanKind::kWorkerStart) span.value_a = arguments.workers;
  out_.span(span);

  if (!phase.name.starts_with("Step:ModeKeys.TRAIN") || duration_ns < 0) return;
  // Their step ends with the last hook of forward and backward, and leaves out what lies before it: loading, optimizer.
  // Ours goes on from the end of the one before.
  const auto before = processes_.last_step_end_ns.find(span.process);
  const std::int64_t end_ns = start_ns + duration_ns;
  const bool follows = before != processes_.last_step_end_ns.end() && before->second <= start_ns;
  if (follows) {
    span.start_ns = before->second;
    span.duration_ns = end_ns - before->second;
  }
  processes_.last_step_end_ns[span.process] = end_ns;
  ++processes_.steps[span.process];
  span.kind = SpanKind::kStep;
  span.name = 0;
  out_.span(span);
}

bool looks_like_smdebug_system(ByteView head_untrusted) {
  bool is_first = true;
  bool is_ours = false;
  JsonObjectCutter objects(head_untrusted.size());
  objects.push(head_untrusted, [&](const JsonObjectText& object) {
    if (is_ours || !object.is_whole) return;
    const auto document = JsonDocument::parse(object.text, true);
    if (!document.ok()) return;
    const JsonValue root = document->root();
    is_ours =
        is_first && root["Type"].text() && root["Name"].text() && root["Value"].exists() && root["Timestamp"].exists();
    is_first = false;
  });
  return is_ours;
}

bool looks_like_smdebug_timeline(ByteView head_untrusted) {
  const std::string_view head = as_text(head_untrusted);
  return trim(head).starts_with('[') && head.find("\"start_time_since_epoch_in_micros\"") != std::string_view::npos;
}

}  // namespace hotlap
