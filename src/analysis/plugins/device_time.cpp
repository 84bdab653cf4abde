// The time of each device of a trace: computing, communicating, copying, what of these is hidden behind computing, and
// why it idles. Of a job that was recorded otherwise, in the windows in which its devices were watched.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "analysis/analyzer.h"
#include "analysis/kernel_names.h"
#include "analysis/log_histogram.h"
#include "analysis/step_table.h"
#include "analysis/trace_tables.h"
#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::size_t kDevicesMax = 256;

constexpr std::array kFields{
    FactField{"wall_ms", "ms", "from the first work of the device to the end of the last, or all windows together"},
    FactField{"busy_ms", "ms", "anything ran"},
    FactField{"compute_ms", "ms", "kernels that are no communication"},
    FactField{"communication_ms", "ms", "kernels of collectives"},
    FactField{"exposed_communication_ms", "ms", "while nothing was computed"},
    FactField{"copy_ms", "ms", "copies and fills of memory"},
    FactField{"exposed_copy_ms", "ms", "while nothing was computed or communicated"},
    FactField{"exposed_pageable_ms", "ms", "of it from or to host memory that is not pinned, by the copies' names"},
    FactField{"idle_ms", "ms", "nothing ran"},
    FactField{"idle_pct", "%", "of the wall"},
    FactField{"idle_data_ms", "ms", "idle while the training thread waited for the loader"},
    FactField{"idle_sync_ms", "ms",
              "idle because the host had waited for the device: until that ended, and operators after it until the "
              "next launch"},
    FactField{"idle_setup_ms", "ms",
              "idle during one call of a millisecond or more: allocating memory, loading code, making contexts"},
    FactField{"idle_dispatch_ms", "ms", "idle while the host ran operators: launch-bound"},
    FactField{"idle_host_ms", "ms", "idle while the host ran no operator: Python, logging, other libraries"},
    FactField{"idle_launch_ms", "ms", "idle on the way from a launch to its begin, at most 10 us of each"},
    FactField{
        "idle_queued_ms", "ms",
        "idle although work was queued: it waited for an event, another device, or work that is not in the trace"},
    FactField{"idle_unknown_ms", "ms", "idle, and the trace has no launch of what came next"},
    FactField{"steps", "{step}", "in what was traced: of windows of the profiler, those in the windows"},
};
constexpr std::array kLaunchFields{
    FactField{"launches", "{launch}", "kernels and copies whose launch is in the trace"},
    FactField{"median_us", "us", "from the begin of the call to that of the work"},
    FactField{"p90_us", "us", ""},
    FactField{"call_median_us", "us", "length of the call itself"},
    FactField{"before_launch", "{launch}", "began before their launch: the device's clock is off"},
    FactField{"queue_median", "{launch}", "launches that are queued behind a piece of work when it begins"},
    FactField{"queue_p10", "{launch}", ""},
    FactField{"queue_empty_pct", "%",
              "of the work that begins with nothing queued behind it: the host is hardly ahead"},
};
constexpr std::array kFunctionFields{
    FactField{"name", "text", "as Python's profiler names it"},
    FactField{"total_ms", "ms", "of idle_host_ms of all devices, in stretches of a millisecond or more"},
    FactField{"calls", "{stretch}", "such stretches"},
};
constexpr std::array kSchemas{
    FactSchema{"device.time", "one device of a trace", kFields},
    FactSchema{"device.idle_function",
               "a function of Python during which devices idled, the innermost one that covers "
               "four fifths of a stretch",
               kFunctionFields},
    FactSchema{"launch.summary", "how long launches take", kLaunchFields}};
constexpr std::size_t kFunctionsTold = 5;
constexpr std::array kSpans{SpanKind::kKernel,   SpanKind::kTransfer,    SpanKind::kRuntime,  SpanKind::kOperator,
                            SpanKind::kDataWait, SpanKind::kOptimizer,   SpanKind::kFunction, SpanKind::kForward,
                            SpanKind::kBackward, SpanKind::kDeviceWindow};

bool names_pageable(std::string_view copy) { return traits_of_copy(copy).is_pageable == true; }

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }

enum Sort : std::uint8_t { kCompute, kCommunication, kCopy, kPageable, kSortCount };
enum Cause : std::uint8_t { kData, kSync, kSetup, kDispatch, kHost, kLaunch, kQueued, kUnknown, kCauseCount };

// A launch on its way to the device; what waits longer waits for something else.
constexpr std::int64_t kOnItsWayNs = 10 * kNsPerUs;

struct Call {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = 0;  // among launches
  // From when on the device could begin: a call that waits for its own work lasts longer than that.
  std::int64_t ready_ns = 0;
};

struct IdleRow {
  std::int64_t ns = 0;
  std::uint64_t stretches = 0;
  bool empty() const { return stretches == 0; }
  void add(const IdleRow& other) {
    ns += other.ns;
    stretches += other.stretches;
  }
};

// The last functions of Python that took long enough to be the reason for an idle device.
class LongFunctions {
 public:
  static constexpr std::size_t kEntries = 4096;
  static constexpr std::int64_t kLongNs = kNsPerMs / 4;
  void add(const Span& span) {
    if (span.duration_ns < kLongNs) return;
    if (entries_.size() < kEntries) {
      entries_.push_back(span);
    } else {
      entries_[next_] = span;
      next_ = (next_ + 1) % kEntries;
    }
  }
  // The innermost one that covers four fifths of the stretch; 0: none.
  std::uint32_t name_for(std::int64_t from_ns, std::int64_t to_ns) const {
    const Span* best = nullptr;
    for (const Span& one : entries_) {
      const std::int64_t inside_ns = std::min(one.start_ns + one.duration_ns, to_ns) - std::max(one.start_ns, from_ns);
      if (5 * inside_ns < 4 * (to_ns - from_ns)) continue;
      if (best == nullptr || one.duration_ns < best->duration_ns) best = &one;
    }
    return best == nullptr ? 0 : best->name;
  }

 private:
  std::vector<Span> entries_;
  std::size_t next_ = 0;
};

// One device: for every instant, which sorts of work go on. Work comes by start, so that a sort goes on until the
// latest end seen of it.
struct Device {
  std::int64_t first_ns = INT64_MAX;
  std::int64_t at_ns = 0;
  std::optional<std::int64_t> watched_to_ns;  // end of its last window
  std::array<std::int64_t, kSortCount> end_ns{};
  std::array<std::int64_t, std::size_t{1} << kSortCount> by_sorts_ns{};  // index: bit set of Sort
  std::array<std::int64_t, kCauseCount> idle_ns{};
  std::uint64_t steps = 0;  // of a closed one

  // The same device in another window of the profiler; the time between them belongs to neither.
  void add(const Device& other) {
    std::ranges::transform(by_sorts_ns, other.by_sorts_ns, by_sorts_ns.begin(), std::plus{});
    std::ranges::transform(idle_ns, other.idle_ns, idle_ns.begin(), std::plus{});
    steps += other.steps;
  }

  // Counts the time up to `to_ns`; the idle stretch at its end, or nothing.
  std::pair<std::int64_t, std::int64_t> advance(std::int64_t to_ns) {
    std::int64_t idle_from_ns = to_ns;
    while (at_ns < to_ns) {
      std::size_t sorts = 0;
      std::int64_t next_ns = to_ns;
      for (std::size_t sort = 0; sort < kSortCount; ++sort) {
        if (end_ns[sort] <= at_ns) continue;
        sorts |= std::size_t{1} << sort;
        next_ns = std::min(next_ns, end_ns[sort]);
      }
      by_sorts_ns[sorts] += next_ns - at_ns;
      if (sorts == 0) idle_from_ns = at_ns;
      at_ns = next_ns;
    }
    return {idle_from_ns, to_ns};
  }
};

class DeviceTimeAnalyzer final : public Analyzer {
 public:
  explicit DeviceTimeAnalyzer(const RunDescription& run)
      : is_communication_(run.name_of, &names_communication),
        is_sync_(run.name_of, &names_synchronisation),
        is_launch_(run.name_of, &names_launch),
        may_set_up_(run.name_of, &may_set_up),
        is_pageable_(run.name_of, &names_pageable),
        idle_functions_(run.name_of),
        table_(run.steps),
        is_window_(run.recording != nullptr && is_profile_window(*run.recording)),
        is_live_(run.recording != nullptr && !run.recording->attributes.contains("source.format")) {
    on_processes(run.processes);
  }

  void on_processes(std::span<const ProcessInfo> processes) override {
    for (const ProcessInfo& process : processes) {
      if (labels_.size() < kDevicesMax * 4) labels_[process.slot] = slot_label(process);
      if (labels_.size() < kDevicesMax * 4 && process.parent != 0) parents_[process.slot] = process.parent;
      if (process.role != ProcessRole::kRank) continue;
      rank_ = process.index;
      ranks_[process.slot] = process.index;
    }
  }

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      const std::int64_t end_ns = span.start_ns + span.duration_ns;
      switch (span.kind) {
        case SpanKind::kKernel:
        case SpanKind::kTransfer: on_device(span); break;
        case SpanKind::kRuntime: on_call(span); break;
        case SpanKind::kFunction: functions_.add(span); break;
        case SpanKind::kDataWait:
          waits_.add(span.start_ns, end_ns);
          known_.add(span.start_ns, end_ns);
          break;
        case SpanKind::kDeviceWindow: on_window(span); break;
        case SpanKind::kForward:
        case SpanKind::kBackward:
          if (!is_live_) break;  // a trace has the operators in them
          [[fallthrough]];
        default:
          knows_host_ = true;
          known_.add(span.start_ns, end_ns);
          break;
      }
    }
  }

  void merge(const Analyzer& other) override {
    const auto& that = static_cast<const DeviceTimeAnalyzer&>(other);
    for (const auto& [slot, device] : that.devices_) {
      const Where where = that.where_of(slot);
      const auto same = std::ranges::find(merged_, where, [](const auto& one) { return one.first; });
      if (that.is_window_ && same != merged_.end()) {
        same->second.add(that.closed(device));
      } else {
        merged_.emplace_back(where, that.closed(device));
      }
    }
    merged_.insert(merged_.end(), that.merged_.begin(), that.merged_.end());
    idle_functions_.merge(that.idle_functions_);
    latencies_ns_.merge(that.latencies_ns_);
    call_durations_ns_.merge(that.call_durations_ns_);
    before_launch_ += that.before_launch_;
    queue_.merge(that.queue_);
    queue_empty_ += that.queue_empty_;
  }

  void snapshot(FactTable& out) const override {
    for (const auto& [slot, device] : devices_) add_device(where_of(slot), closed(device), out);
    for (const auto& [where, device] : merged_) add_device(where, device, out);
    for (const auto& [name, row] : idle_functions_.top(kFunctionsTold, [](const IdleRow& one) { return one.ns; })) {
      Fact fact{.kind = "device.idle_function"};
      fact.set_text("name", name).set("total_ms", ms(row.ns)).set("calls", static_cast<double>(row.stretches));
      out.add(std::move(fact));
    }
    if (latencies_ns_.count() == 0) return;
    Fact fact{.kind = "launch.summary"};
    fact.set("launches", static_cast<double>(latencies_ns_.count()));
    const auto us = [](std::optional<double> ns) {
      return ns ? std::optional(*ns / static_cast<double>(kNsPerUs)) : ns;
    };
    fact.set("median_us", us(latencies_ns_.quantile(0.5))).set("p90_us", us(latencies_ns_.quantile(0.9)));
    fact.set("call_median_us", us(call_durations_ns_.quantile(0.5)));
    fact.set("before_launch", static_cast<double>(before_launch_));
    if (queue_.count() > 0) {
      // A histogram of logarithms has no 0: the depths in it are one more.
      const auto depth = [&](double q) { return std::max(0.0, std::round(queue_.quantile(q).value_or(1) - 1)); };
      fact.set("queue_median", depth(0.5)).set("queue_p10", depth(0.1));
      fact.set("queue_empty_pct", 100 * static_cast<double>(queue_empty_) / static_cast<double>(queue_.count()));
    }
    out.add(std::move(fact));
  }

 private:
  void on_call(const Span& span) {
    const std::int64_t end_ns = span.start_ns + span.duration_ns;
    const bool is_sync = is_sync_(span.name);
    if (is_launch_(span.name)) ++launches_;
    calls_.put(span.value_a, {span.start_ns, span.duration_ns, launches_, is_sync ? span.start_ns : end_ns});
    known_.add(span.start_ns, end_ns);
    if (is_sync) {
      syncs_.add(span.start_ns, end_ns);
    } else if (span.duration_ns >= kSetupNs && may_set_up_(span.name)) {
      setups_.add(span.start_ns, end_ns);
    }
  }

  // Null: beyond the bound.
  Device* device_of(const Span& span) {
    auto found = devices_.find(span.process);
    if (found == devices_.end()) {
      if (devices_.size() >= kDevicesMax) return nullptr;
      found = devices_.emplace(span.process, Device{}).first;
      found->second.first_ns = found->second.at_ns = span.start_ns;
    }
    return &found->second;
  }

  // It comes before what was seen in it.
  void on_window(const Span& span) {
    Device* const device = device_of(span);
    if (device == nullptr) return;
    close_window(*device);
    device->at_ns = std::max(device->at_ns, span.start_ns);
    device->watched_to_ns = span.start_ns + span.duration_ns;
  }

  // Nothing more had been launched when it ended.
  void close_window(Device& device) const {
    if (!device.watched_to_ns) return;
    const auto [idle_from_ns, idle_to_ns] = device.advance(*device.watched_to_ns);
    const Call none{.ready_ns = idle_to_ns};
    if (idle_to_ns > idle_from_ns) attribute(device, &none, idle_from_ns, idle_to_ns);
  }

  void on_device(const Span& span) {
    Device* const found = device_of(span);
    if (found == nullptr) return;
    Device& device = *found;
    const Call* const call = calls_.find(span.value_a);
    if (call != nullptr) {
      if (span.start_ns >= call->start_ns) {
        latencies_ns_.add(static_cast<double>(span.start_ns - call->start_ns));
      } else {
        ++before_launch_;
      }
      call_durations_ns_.add(static_cast<double>(call->duration_ns));
      const std::int64_t behind = std::max<std::int64_t>(0, launches_ - call->number);
      queue_.add(static_cast<double>(behind + 1));
      if (behind == 0) ++queue_empty_;
    }
    const auto [idle_from_ns, idle_to_ns] = device.advance(span.start_ns);
    if (idle_to_ns > idle_from_ns) name_function(attribute(device, call, idle_from_ns, idle_to_ns));
    Sort sort = is_communication_(span.name) ? kCommunication : kCompute;
    if (span.kind == SpanKind::kTransfer) sort = is_pageable_(span.name) ? kPageable : kCopy;
    device.end_ns[sort] = std::max(device.end_ns[sort], span.start_ns + span.duration_ns);
  }

  struct HostStretch {
    std::int64_t from_ns = 0;
    std::int64_t to_ns = 0;
    std::int64_t host_ns = 0;  // of it
  };
  // Why nothing ran between `from_ns` and the begin of what `call` launched.
  // Returns the stretch in which the host did something else.
  HostStretch attribute(Device& device, const Call* call, std::int64_t from_ns, std::int64_t to_ns) const {
    if (call == nullptr) {
      // Where no launch is seen at all, as in traces of XLA, waits for data are causes all the same.
      const std::int64_t waited_ns = launches_ > 0 ? 0 : std::min(waits_.within(from_ns, to_ns), to_ns - from_ns);
      device.idle_ns[kData] += waited_ns;
      device.idle_ns[kUnknown] += to_ns - from_ns - waited_ns;
      return {};
    }
    const std::int64_t ready_ns = std::clamp(call->ready_ns, from_ns, to_ns);
    const std::int64_t on_its_way_ns = std::min(to_ns - ready_ns, kOnItsWayNs);
    device.idle_ns[kLaunch] += on_its_way_ns;
    device.idle_ns[kQueued] += to_ns - ready_ns - on_its_way_ns;
    if (ready_ns == from_ns) return {};
    std::int64_t left_ns = ready_ns - from_ns;
    const auto take = [&](Cause cause, std::int64_t ns) {
      ns = std::clamp<std::int64_t>(ns, 0, left_ns);
      device.idle_ns[cause] += ns;
      left_ns -= ns;
      return ns;
    };
    std::int64_t taken_ns = take(kData, waits_.within(from_ns, ready_ns));
    taken_ns += take(kSetup, setups_.within(from_ns, ready_ns));
    const std::int64_t synced_ns = take(kSync, syncs_.within(from_ns, ready_ns));
    const std::int64_t in_operators_ns = known_.within(from_ns, ready_ns) - taken_ns - synced_ns;
    // The host was not ahead, for it had waited until the device was done.
    take(synced_ns > 0 ? kSync : kDispatch, in_operators_ns);
    return {from_ns, ready_ns, take(knows_host_ || !device.watched_to_ns ? kHost : kUnknown, left_ns)};
  }

  void name_function(const HostStretch& stretch) {
    if (stretch.host_ns < kNsPerMs || 5 * stretch.host_ns < 4 * (stretch.to_ns - stretch.from_ns)) return;
    if (const std::uint32_t function = functions_.name_for(stretch.from_ns, stretch.to_ns); function != 0) {
      idle_functions_.at(function).add({.ns = stretch.host_ns, .stretches = 1});
    }
  }

  Device closed(Device device) const {
    close_window(device);
    if (!device.watched_to_ns) device.advance(*std::ranges::max_element(device.end_ns));
    if (is_live_) return device;  // its windows hold a part of the steps only
    for (const StepTable::Entry& entry : table_->entries()) {
      device.steps = std::max<std::uint64_t>(device.steps, entry.steps->count());
    }
    return device;
  }

  Where where_of(std::uint32_t slot) const {
    Where where;
    const auto label = labels_.find(slot);
    where.device = label == labels_.end() ? "device" : label->second;
    where.rank = rank_;
    if (const auto user = parents_.find(slot); user != parents_.end()) {
      const auto rank = ranks_.find(user->second);
      if (rank != ranks_.end()) where.rank = rank->second;
    }
    return where;
  }

  static void add_device(const Where& where, const Device& device, FactTable& out) {
    const auto with = [&](auto&& holds) {
      std::int64_t sum = 0;
      for (std::size_t sorts = 0; sorts < device.by_sorts_ns.size(); ++sorts) {
        if (holds(sorts)) sum += device.by_sorts_ns[sorts];
      }
      return ms(sum);
    };
    constexpr std::size_t kComputeBit = 1U << kCompute;
    constexpr std::size_t kCommunicationBit = 1U << kCommunication;
    constexpr std::size_t kWorkBits = kComputeBit | kCommunicationBit;
    constexpr std::size_t kPageableBit = 1U << kPageable;
    constexpr std::size_t kCopyBits = kPageableBit | (1U << kCopy);
    const double wall = with([](std::size_t) { return true; });
    const double idle = ms(device.by_sorts_ns[0]);
    Fact fact{.kind = "device.time", .where = where};
    fact.set("wall_ms", wall).set("busy_ms", wall - idle);
    fact.set("compute_ms", with([](std::size_t sorts) { return (sorts & kComputeBit) != 0; }));
    fact.set("communication_ms", with([](std::size_t sorts) { return (sorts & kCommunicationBit) != 0; }));
    fact.set("exposed_communication_ms",
             with([](std::size_t sorts) { return (sorts & (kCommunicationBit | kComputeBit)) == kCommunicationBit; }));
    fact.set("copy_ms", with([](std::size_t sorts) { return (sorts & kCopyBits) != 0; }));
    const auto is_bare = [](std::size_t sorts) { return (sorts & kWorkBits) == 0; };
    fact.set("exposed_copy_ms", with([&](std::size_t sorts) { return is_bare(sorts) && (sorts & kCopyBits) != 0; }));
    fact.set("exposed_pageable_ms",
             with([&](std::size_t sorts) { return is_bare(sorts) && (sorts & kPageableBit) != 0; }));
    fact.set("idle_ms", idle);
    if (wall > 0) fact.set("idle_pct", 100 * idle / wall);
    constexpr std::array<std::string_view, kCauseCount> kNames{"idle_data_ms",     "idle_sync_ms",   "idle_setup_ms",
                                                               "idle_dispatch_ms", "idle_host_ms",   "idle_launch_ms",
                                                               "idle_queued_ms",   "idle_unknown_ms"};
    for (std::size_t cause = 0; cause < kCauseCount; ++cause) fact.set(kNames[cause], ms(device.idle_ns[cause]));
    if (device.steps > 0) fact.set("steps", static_cast<double>(device.steps));
    out.add(std::move(fact));
  }

  std::map<std::uint32_t, Device> devices_;  // by slot
  std::vector<std::pair<Where, Device>> merged_;
  std::map<std::uint32_t, std::string> labels_;
  std::optional<std::int32_t> rank_;
  std::map<std::uint32_t, std::uint32_t> parents_;  // by slot
  std::map<std::uint32_t, std::int32_t> ranks_;     // by slot
  NameTest is_communication_;
  NameTest is_sync_;
  NameTest is_launch_;
  NameTest may_set_up_;
  NameTest is_pageable_;
  NamedRows<IdleRow> idle_functions_;
  LongFunctions functions_;
  const StepTable* table_;
  bool is_window_;
  bool is_live_;
  bool knows_host_ = false;  // what it does beside launching: operators, or phases of the hook's
  RecentById<Call> calls_;
  RecentTimes waits_;
  RecentTimes syncs_;
  RecentTimes setups_;
  RecentTimes known_;  // operators, calls and all of these
  std::int64_t launches_ = 0;
  LogHistogram latencies_ns_;
  LogHistogram call_durations_ns_;
  std::uint64_t before_launch_ = 0;
  LogHistogram queue_;  // what is queued behind work that begins, plus one
  std::uint64_t queue_empty_ = 0;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<DeviceTimeAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_device_time{.id = "device_time",
                                                         .summary = "Where the time of each device of a trace goes.",
                                                         .produces = kSchemas,
                                                         .metrics = {},
                                                         .spans = kSpans,
                                                         .version = 3,
                                                         .open = open};

}  // namespace hotlap
