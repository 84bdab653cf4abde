// NVIDIA GPUs through NVML: starts it when a driver is there, follows GPUs and MIG instances that come, go, are lost
// and come back, and keeps out of the way of a GPU that answers slowly.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "collect/gpu_use.h"
#include "collect/nvidia_device.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::int64_t kLookAgainNs = 2 * kNsPerS;  // for a driver: the job's own start loads it
constexpr std::uint32_t kGpusMax = 64;
constexpr std::uint32_t kMigsMax = 16;  // of one GPU; NVIDIA has at most 7
constexpr std::size_t kEventsAtOnce = 16;
constexpr std::size_t kLimitsMax = 64;  // processes whose environment is looked at
// A round that takes longer than this is slow; the next one waits ten times as long.
constexpr std::int64_t kSlowRoundNs = 100 * kNsPerMs;
constexpr std::int64_t kSlowFactor = 10;
constexpr std::int64_t kReopenFirstNs = 5 * kNsPerS;
constexpr std::int64_t kReopenMaxNs = 60 * kNsPerS;
constexpr unsigned kUnknownErrorsMax = 10;  // in a container, NVML may never recover by itself
constexpr std::int64_t kCountPeriodNs = 30 * kNsPerS;
constexpr std::int64_t kLimitsPeriodNs = 5 * kNsPerS;
// A device node whose presence says that the driver was started.
constexpr std::array<std::string_view, 2> kDriverNodes{"/dev/nvidiactl", "/dev/dxg"};

struct Tracked {
  explicit Tracked(NvidiaDevice::Identity identity) : device(std::move(identity)) {}
  NvidiaDevice device;
  NvmlStatus refusal = NvmlStatus::kSuccess;  // why it may not be read
  bool is_lost = false;
  bool is_loss_told = false;  // its series were given the reason, at the tick after: at this one some have a value
  bool is_found = false;      // in the present enumeration
  bool is_greeted = false;    // its name was told
  std::int64_t pcie_ns = INT64_MIN / 2;
  std::string use_told;  // the attribute's text
};

std::string text_of(NvmlCalls::Text* call, NvmlDevice device) {
  std::array<char, 128> text{};
  if (call == nullptr || call(device, text.data(), text.size() - 1) != NvmlStatus::kSuccess) return {};
  return text.data();
}

class NvidiaCollector final : public Collector {
 public:
  NvidiaCollector(const Host& host, const NvmlCalls& calls)
      : host_(host), calls_(calls), pids_are_ours_(pids_are_hosts(host)) {}
  NvidiaCollector(const NvidiaCollector&) = delete;
  NvidiaCollector& operator=(const NvidiaCollector&) = delete;
  ~NvidiaCollector() override { stop(); }

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (tick.t_ns < resume_ns_) return Outcome::kNoData;
    const std::int64_t begin_ns = host_.mono_ns() - starved_ns();
    if (!reopen_if_due(tick.t_ns, out)) return Outcome::kNoData;
    sample_all(tick, out);
    take_events(out);
    const std::int64_t took_ns = host_.mono_ns() - starved_ns() - begin_ns;
    if (took_ns > kSlowRoundNs) {
      HOTLAP_LOG_DEBUG("NVML took {} ms: it is left alone for {} ms", took_ns / kNsPerMs,
                       kSlowFactor * took_ns / kNsPerMs);
      resume_ns_ = tick.t_ns + kSlowFactor * took_ns;
    }
    // Its 40 ms are the driver's sleep, not work: they are no reason to keep away.
    sample_pcie_rate(tick.t_ns, out);
    return Outcome::kSampled;
  }

 private:
  // For how long this thread was ready and did not get to run: on a full machine the GPU is not what is slow. 0 where
  // the kernel does not tell.
  std::int64_t starved_ns() {
    if (!schedstat_.is_open()) {
      Result<KeptFile> file = KeptFile::open(host_, "/proc/thread-self/schedstat");
      if (!file.ok()) return 0;
      schedstat_ = std::move(file).value();
    }
    const Result<std::string_view> text = schedstat_.read_record();
    std::array<std::uint64_t, 2> numbers{};  // time on a core, time waiting for one
    if (!text.ok() || TextCursor(*text).numbers(numbers) < numbers.size()) return 0;
    return static_cast<std::int64_t>(numbers[1]);
  }

  // NVML answers for a GPU that was lost only after a new start; so does a list of GPUs that has changed.
  bool reopen_if_due(std::int64_t t_ns, SampleSink& out) {
    if (is_started_ && is_enumerated_) {
      std::uint32_t count = 0;
      const bool has_changed =
          count_due_.at(t_ns) && calls_.device_count(&count) == NvmlStatus::kSuccess && count != count_ && !has_lost();
      if (!has_changed && !(has_lost() && t_ns >= reopen_ns_)) return true;
    }
    if (is_enumerated_ && !is_started_ && t_ns < reopen_ns_) return has_untold_loss();
    if (is_enumerated_) {
      stop();
      reopen_wait_ns_ = std::min(2 * reopen_wait_ns_, kReopenMaxNs);
      reopen_ns_ = t_ns + reopen_wait_ns_;
      if (const Result<void> started = start_nvml(calls_); !started.ok()) {
        for (const auto& one : tracked_) {
          if (!one->is_lost) lose(*one, started.error().message, out);
        }
        return true;  // to say so
      }
      is_started_ = true;
    }
    enumerate(out);
    if (!has_lost()) reopen_wait_ns_ = kReopenFirstNs / 2;
    return true;
  }

  void stop() {
    if (!is_started_) return;
    if (events_.handle != nullptr) calls_.event_set_free(events_);
    events_ = {};
    for (const auto& one : tracked_) one->device.detach(calls_);
    if (calls_.shutdown != nullptr) calls_.shutdown();
    is_started_ = false;
  }

  bool has_lost() const {
    return std::any_of(tracked_.begin(), tracked_.end(), [](const auto& one) { return one->is_lost; });
  }

  bool has_untold_loss() const {
    return std::any_of(tracked_.begin(), tracked_.end(),
                       [](const auto& one) { return one->is_lost && !one->is_loss_told; });
  }

  void enumerate(SampleSink& out) {
    is_enumerated_ = true;
    count_ = 0;
    if (calls_.device_count(&count_) != NvmlStatus::kSuccess) count_ = 0;
    if (calls_.event_set_create != nullptr && calls_.event_set_free != nullptr && calls_.register_events != nullptr &&
        calls_.event_set_wait != nullptr && calls_.event_set_create(&events_) != NvmlStatus::kSuccess) {
      events_ = {};
    }
    for (const auto& one : tracked_) one->is_found = false;
    for (std::uint32_t index = 0; index < std::min(count_, kGpusMax); ++index) find_gpu(index, out);
    if (count_ > kGpusMax) out.count_loss("record.series_refused", count_ - kGpusMax);
    for (const auto& one : tracked_) {
      if (!one->is_found && !one->is_lost) lose(*one, "it is no longer listed", out);
    }
  }

  void find_gpu(std::uint32_t index, SampleSink& out) {
    NvmlDevice handle;
    const NvmlStatus status = calls_.device_at(index, &handle);
    NvidiaDevice::Identity identity{.label = format("gpu{}", index), .uuid = {}, .name = {}, .index = index};
    if (status != NvmlStatus::kSuccess) {
      // A GPU that cannot be named: one that is followed already may be lost, another is noted as not to be read.
      if (missing_reason(status) == MissingReason::kSourceLost) return;
      identity.uuid = format("refused {}", index);
      Tracked& refused = track(std::move(identity));
      refused.is_found = true;
      if (refused.refusal != status) out.attribute(refused.device.identity().label + ".refused", to_string(status));
      refused.refusal = status;
      return;
    }
    identity.uuid = text_of(calls_.uuid, handle);
    identity.name = text_of(calls_.name, handle);
    if (identity.uuid.empty()) identity.uuid = format("index {}", index);
    if (calls_.minor_number != nullptr && calls_.minor_number(handle, &identity.minor) != NvmlStatus::kSuccess) {
      identity.minor = UINT32_MAX;
    }
    Tracked& gpu = track(std::move(identity));
    greet(gpu, handle, {}, out);
    if (events_.handle != nullptr) calls_.register_events(handle, kNvmlEventXid, events_);
    find_migs(gpu, handle, out);
  }

  void find_migs(const Tracked& gpu, NvmlDevice parent, SampleSink& out) {
    std::uint32_t is_enabled = 0;
    std::uint32_t pending = 0;
    std::uint32_t count = 0;
    const bool is_split = calls_.mig_mode != nullptr && calls_.mig_device_at != nullptr &&
                          calls_.mig_count_max != nullptr &&
                          calls_.mig_mode(parent, &is_enabled, &pending) == NvmlStatus::kSuccess && is_enabled == 1 &&
                          calls_.mig_count_max(parent, &count) == NvmlStatus::kSuccess;
    if (!is_split) return;
    for (std::uint32_t index = 0; index < std::min(count, kMigsMax); ++index) {
      NvmlDevice handle;
      if (calls_.mig_device_at(parent, index, &handle) != NvmlStatus::kSuccess) continue;  // a place that is free
      const NvidiaDevice::Identity& of = gpu.device.identity();
      NvidiaDevice::Identity identity{.label = format("{}/mig{}", of.label, index),
                                      .uuid = text_of(calls_.uuid, handle),
                                      .name = text_of(calls_.name, handle),
                                      .index = index,
                                      .minor = of.minor,
                                      .parent_uuid = of.uuid};
      if (identity.uuid.empty()) identity.uuid = format("{} mig {}", of.uuid, index);
      if (calls_.gpu_instance_id != nullptr) calls_.gpu_instance_id(handle, &identity.gpu_instance);
      if (calls_.compute_instance_id != nullptr) calls_.compute_instance_id(handle, &identity.compute_instance);
      greet(track(std::move(identity)), handle, parent, out);
    }
  }

  // The one with this UUID, or the one that could not be read at this place so far, or a new one. A label belongs to
  // one of them for the whole recording.
  Tracked& track(NvidiaDevice::Identity identity) {
    const auto find = [&](std::string_view uuid) {
      return std::find_if(tracked_.begin(), tracked_.end(),
                          [&](const auto& one) { return one->device.identity().uuid == uuid; });
    };
    auto known = find(identity.uuid);
    if (known == tracked_.end() && !identity.is_mig()) known = find(format("refused {}", identity.index));
    if (known != tracked_.end()) {
      identity.label = (*known)->device.identity().label;
      (*known)->device.set_identity(std::move(identity));  // its place in the list may have changed
      return **known;
    }
    const auto is_taken = [&](const std::string& label) {
      return std::any_of(tracked_.begin(), tracked_.end(),
                         [&](const auto& one) { return one->device.identity().label == label; });
    };
    const std::string wanted = identity.label;
    for (unsigned n = 2; is_taken(identity.label); ++n) identity.label = format("{}#{}", wanted, n);
    return *tracked_.emplace_back(std::make_unique<Tracked>(std::move(identity)));
  }

  void greet(Tracked& gpu, NvmlDevice handle, NvmlDevice parent, SampleSink& out) {
    const NvidiaDevice::Identity& identity = gpu.device.identity();
    const bool is_new = !gpu.is_greeted;
    gpu.is_greeted = true;
    gpu.is_found = true;
    gpu.refusal = NvmlStatus::kSuccess;
    gpu.device.attach(handle, parent);
    if (std::exchange(gpu.is_lost, false)) out.event(EventKind::kGpuBack, 0, identity.label);
    if (!is_new) return;
    std::array<char, 96> driver{};
    if (calls_.driver_version != nullptr) calls_.driver_version(driver.data(), driver.size() - 1);
    out.event(EventKind::kGpuFound, 0,
              format("{}: {}, {}, driver {}", identity.label, identity.name, identity.uuid, driver.data()));
    out.attribute(identity.label + ".name", identity.name);
    out.attribute(identity.label + ".uuid", identity.uuid);
    if (identity.is_mig()) {
      out.attribute(identity.label + ".parent", identity.parent_uuid);
    } else {
      out.attribute("gpu.driver", driver.data());
      NvmlPciInfo pci{};
      if (calls_.pci_info != nullptr && calls_.pci_info(handle, &pci) == NvmlStatus::kSuccess) {
        pci.bus_id[sizeof pci.bus_id - 1] = '\0';
        out.attribute(identity.label + ".pci", pci.bus_id);
      }
      std::int32_t cuda = 0;  // 1000 × major + 10 × minor
      if (calls_.cuda_version != nullptr && calls_.cuda_version(&cuda) == NvmlStatus::kSuccess) {
        out.attribute("gpu.cuda", format("{}.{}", cuda / 1000, cuda % 1000 / 10));
      }
    }
  }

  void lose(Tracked& gpu, std::string_view why, SampleSink& out) {
    gpu.is_lost = true;
    gpu.is_loss_told = false;
    out.event(EventKind::kGpuLost, 0, format("{}: {}", gpu.device.identity().label, why));
    reopen_ns_ = std::max(reopen_ns_, last_t_ns_ + kReopenFirstNs);
  }

  void sample_all(const TickInfo& tick, SampleSink& out) {
    last_t_ns_ = tick.t_ns;
    const NvidiaPace pace{.is_slow = slow_due_.at(tick.t_ns), .is_rare = rare_due_.at(tick.t_ns)};
    for (const auto& one : tracked_) {
      if (one->is_lost) {
        if (!std::exchange(one->is_loss_told, true)) one->device.put_all_missing(MissingReason::kSourceLost, out);
        continue;
      }
      if (one->refusal != NvmlStatus::kSuccess) {
        if (pace.is_rare) one->device.put_refused(missing_reason(one->refusal), out);
        continue;
      }
      NvmlStatus status = one->device.sample(calls_, pace, out);
      if (status == NvmlStatus::kSuccess && pace.is_slow) {
        status = one->device.sample_processes(calls_, tick.job, pids_are_ours_, pace.is_rare, out);
      }
      if (status != NvmlStatus::kSuccess) {
        lose(*one, to_string(status), out);
      } else if (one->device.unknown_errors() >= kUnknownErrorsMax) {
        lose(*one, "nothing but unknown errors: NVML has to be started again", out);
      }
    }
    if (pace.is_slow) sample_use(tick, out);
  }

  // One GPU at a tick, each at most once a second: the driver sleeps for 2 × 20 ms.
  void sample_pcie_rate(std::int64_t t_ns, SampleSink& out) {
    for (std::size_t n = 0; n < tracked_.size(); ++n) {
      Tracked& one = *tracked_[(pcie_next_ + n) % tracked_.size()];
      if (one.is_lost || !one.device.wants_pcie_rate() || t_ns - one.pcie_ns < kGpuSlowNs) continue;
      one.pcie_ns = t_ns;
      pcie_next_ = (pcie_next_ + n + 1) % tracked_.size();
      one.device.sample_pcie_rate(calls_, out);
      return;
    }
  }

  void take_events(SampleSink& out) {
    if (events_.handle == nullptr) return;
    for (std::size_t n = 0; n < kEventsAtOnce; ++n) {
      NvmlEvent event{};
      if (calls_.event_set_wait(events_, &event, 0) != NvmlStatus::kSuccess) return;
      if (event.type != kNvmlEventXid) continue;
      const auto source = std::find_if(tracked_.begin(), tracked_.end(), [&](const auto& one) {
        return one->device.is_attached() && one->device.handle().handle == event.device.handle;
      });
      if (source == tracked_.end()) continue;
      (*source)->device.count_xid();
      out.event(EventKind::kGpuXid, static_cast<std::int64_t>(event.data), (*source)->device.identity().label);
    }
  }

  void update_limits(const TickInfo& tick) {
    if (!limits_due_.at(tick.t_ns)) return;
    std::map<std::int32_t, GpuLimits> now;
    for (const JobProcess& process : tick.job.processes.first(std::min(tick.job.processes.size(), kLimitsMax))) {
      const auto known = limits_.find(process.pid);
      // A process that was young may have run another program since.
      if (known != limits_.end() && !young_.contains(process.pid)) {
        now.insert(*known);
        continue;
      }
      if (known == limits_.end())
        young_.insert(process.pid);
      else
        young_.erase(process.pid);
      if (auto limits = read_gpu_limits(host_, process.pid)) now.emplace(process.pid, std::move(*limits));
    }
    std::erase_if(young_, [&](std::int32_t pid) { return !now.contains(pid); });
    limits_ = std::move(now);
  }

  void sample_use(const TickInfo& tick, SampleSink& out) {
    update_limits(tick);
    std::vector<GpuSeen> gpus;
    std::vector<Tracked*> places;
    for (const auto& one : tracked_) {
      if (one->is_lost || !one->device.is_attached()) continue;
      gpus.push_back(seen(one->device, tick.job));
      places.push_back(one.get());
    }
    std::vector<GpuLimits> limits;
    for (const auto& [pid, one] : limits_) limits.push_back(one);
    const std::vector<GpuUse> uses = find_gpu_use(gpus, limits, tick.job.root_pid != 0);
    for (std::size_t g = 0; g < uses.size(); ++g) {
      const std::optional<bool>& is_of_job = uses[g].is_of_job;
      places[g]->device.put(
          kIsOfJob,
          is_of_job ? Value::of(std::uint64_t{*is_of_job ? 1U : 0U}) : Value::missing(MissingReason::kNotMeasured),
          out);
      if (uses[g].why == places[g]->use_told) continue;
      places[g]->use_told = uses[g].why;
      out.attribute(places[g]->device.identity().label + ".job", format("{}: {}",
                                                                        !is_of_job   ? "unknown"
                                                                        : *is_of_job ? "yes"
                                                                                     : "no",
                                                                        uses[g].why));
    }
  }

  GpuSeen seen(const NvidiaDevice& device, const JobView& job) const {
    const NvidiaDevice::Identity& identity = device.identity();
    GpuSeen gpu{.label = identity.label,
                .uuid = identity.uuid,
                .name = identity.name,
                .index = identity.index,
                .minor = identity.minor,
                .is_mig = identity.is_mig(),
                .is_split = false,
                .parent_uuid = identity.parent_uuid,
                .gpu_instance = identity.gpu_instance,
                .compute_instance = identity.compute_instance,
                .slots = std::nullopt};
    gpu.is_split = std::any_of(tracked_.begin(), tracked_.end(), [&](const auto& one) {
      return !one->is_lost && one->device.identity().parent_uuid == identity.uuid;
    });
    if (!pids_are_ours_ || !device.processes()) return gpu;
    gpu.slots.emplace();
    for (const JobProcess& process : job.processes) {
      const bool is_on = std::any_of(device.processes()->begin(), device.processes()->end(), [&](const NvmlProcess& p) {
        return p.pid == static_cast<std::uint32_t>(process.pid);
      });
      if (is_on) gpu.slots->emplace_back(process.slot);
    }
    return gpu;
  }

  const Host& host_;
  NvmlCalls calls_;
  bool pids_are_ours_;
  KeptFile schedstat_;      // of the lane's thread
  bool is_started_ = true;  // by open()
  bool is_enumerated_ = false;
  std::uint32_t count_ = 0;
  NvmlEventSet events_;
  std::vector<std::unique_ptr<Tracked>> tracked_;
  std::size_t pcie_next_ = 0;
  std::int64_t resume_ns_ = INT64_MIN;
  std::int64_t last_t_ns_ = 0;
  std::int64_t reopen_ns_ = INT64_MIN;
  std::int64_t reopen_wait_ns_ = kReopenFirstNs / 2;
  Due slow_due_{kGpuSlowNs};
  Due rare_due_{kGpuRareNs};
  Due count_due_{kCountPeriodNs};
  Due limits_due_{kLimitsPeriodNs};
  std::map<std::int32_t, GpuLimits> limits_;  // by pid
  std::set<std::int32_t> young_;
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  // Without its device nodes nothing is asked: starting NVML would load the driver, which is for the job to do.
  const bool is_there =
      std::any_of(kDriverNodes.begin(), kDriverNodes.end(), [&](std::string_view node) { return host.exists(node); });
  if (!is_there) return Error{ErrorCode::kUnsupported, "no NVIDIA driver is in use here"};
  HOTLAP_TRY_ASSIGN(const NvmlCalls calls, load_nvml(host));
  HOTLAP_TRY(start_nvml(calls));
  return std::unique_ptr<Collector>(std::make_unique<NvidiaCollector>(host, calls));
}

}  // namespace

extern constinit const CollectorSpec collector_nvidia{
    .name = "nvidia",
    .summary = "NVIDIA GPUs and MIG instances: use, memory, power, clocks, links, errors, processes.",
    .metrics = kNvidiaMetrics,
    .min_period_ns = kGpuFastNs,
    .lane = Lane::kMayBlock,
    .look_again_ns = kLookAgainNs,
    .open = open};

}  // namespace hotlap
