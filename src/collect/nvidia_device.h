#pragma once
// One NVIDIA GPU, or one MIG instance of it: what of it is due is asked for and added to its series. What it refuses is
// asked for again only once in a while.
//
// Confined to its lane's thread. Series are bounded by the metrics and, for processes, by kProcessesMax.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/collector.h"
#include "collect/nvml.h"
#include "model/nvidia_metrics.h"

namespace hotlap {

// What is due at a tick beside what is read at every one.
struct NvidiaPace {
  bool is_slow = false;
  bool is_rare = false;
};

class NvidiaDevice {
 public:
  static constexpr std::size_t kProcessesMax = 64;  // of the job, per device, with series of their own

  struct Identity {
    std::string label;  // "gpu0", "gpu0/mig1"
    std::string uuid;
    std::string name;
    std::uint32_t index = 0;             // NVML's, which is the order of PCI addresses; of a MIG instance in its GPU
    std::uint32_t minor = UINT32_MAX;    // of /dev/nvidiaN
    std::string parent_uuid;             // of a MIG instance
    std::uint32_t gpu_instance = 0;      // of a MIG instance
    std::uint32_t compute_instance = 0;  // of a MIG instance
    bool is_mig() const { return !parent_uuid.empty(); }
  };

  explicit NvidiaDevice(Identity identity) : identity_(std::move(identity)) {}
  NvidiaDevice(const NvidiaDevice&) = delete;
  NvidiaDevice& operator=(const NvidiaDevice&) = delete;

  const Identity& identity() const { return identity_; }
  void set_identity(Identity identity) { identity_ = std::move(identity); }

  // Begins to be read; `parent` is the GPU of a MIG instance, which is asked for its performance counters.
  void attach(NvmlDevice handle, NvmlDevice parent);
  // Gives back what NVML holds for it. `calls` must still be started.
  void detach(const NvmlCalls& calls);
  bool is_attached() const { return handle_.handle != nullptr; }
  NvmlDevice handle() const { return handle_; }

  // Reads what is due. Anything but kSuccess: the device is gone, nothing more was read.
  NvmlStatus sample(const NvmlCalls& calls, const NvidiaPace& pace, SampleSink& out);
  // PCIe throughput, for which the driver sleeps 2 × 20 ms; only where it has no counters of bytes.
  bool wants_pcie_rate() const;
  NvmlStatus sample_pcie_rate(const NvmlCalls& calls, SampleSink& out);
  // Memory of the job's processes, and how many there are. `pids_are_ours`: NVML's process ids mean ours, which they do
  // not inside a container.
  NvmlStatus sample_processes(const NvmlCalls& calls, const JobView& job, bool pids_are_ours, bool is_rare,
                              SampleSink& out);
  // The processes of the last list; nothing when it could not be had.
  const std::optional<std::vector<NvmlProcess>>& processes() const { return processes_; }

  void put(NvidiaMetric metric, Value value, SampleSink& out);
  void count_xid() { ++xids_; }
  // Ticks in a row at which its memory could not be read for an error that NVML does not know.
  unsigned unknown_errors() const { return unknown_errors_; }
  // Every series of it is missing for `reason`.
  void put_all_missing(MissingReason reason, SampleSink& out);
  // The device is there but may not be used: what everybody looks for is missing for `reason`.
  void put_refused(MissingReason reason, SampleSink& out);

 private:
  struct ProcessSeries {
    SeriesHandle memory, memory_max, busy;
    bool is_seen = false;
    bool is_live = false;
  };

  NvmlStatus read_parts(const NvmlCalls& calls, const NvidiaPace& pace, SampleSink& out);
  NvmlStatus read_fields(const NvmlCalls& calls, const NvidiaPace& pace, SampleSink& out);
  NvmlStatus read_clock_events(const NvmlCalls& calls, const NvidiaPace& pace, SampleSink& out);
  void read_gpm(const NvmlCalls& calls, SampleSink& out);
  bool open_gpm(const NvmlCalls& calls);
  void put_gpm(const NvmlCalls& calls, SampleSink& out);
  ProcessSeries* process_series(std::string_view slot, SampleSink& out);
  void put_process(ProcessSeries& series, const NvmlCalls& calls, const NvmlProcess& process, bool is_accounted,
                   SampleSink& out);

  Identity identity_;
  NvmlDevice handle_;
  NvmlDevice parent_;
  bool is_fresh_ = true;  // nothing was read since attach()
  std::array<SeriesHandle, kNvidiaMetricCount> series_{};
  std::array<bool, kNvidiaMetricCount> is_registered_{};
  std::array<bool, kNvidiaMetricCount> is_refused_{};  // asked for again when what is rare is due
  std::uint64_t xids_ = 0;
  unsigned unknown_errors_ = 0;

  enum class Gpm : std::uint8_t { kUnknown, kNone, kOpen } gpm_ = Gpm::kUnknown;
  NvmlGpmSample gpm_before_, gpm_now_;
  bool has_gpm_before_ = false;
  std::unique_ptr<NvmlGpmQuery> gpm_query_;

  std::optional<std::vector<NvmlProcess>> processes_;
  std::vector<NvmlProcessV1> processes_v1_;
  std::map<std::string, ProcessSeries, std::less<>> process_series_;  // by slot
};

// True when a call that ended so means that the device is no longer there.
bool is_device_lost(NvmlStatus status);

}  // namespace hotlap
