// Who uses an NVIDIA GPU: NvidiaDevice's part that deals with processes.
#include <algorithm>

#include "base/format.h"
#include "collect/nvidia_device.h"

namespace hotlap {
namespace {

constexpr std::uint32_t kRoomFirst = 128;
constexpr std::uint32_t kRoomMax = 4096;
constexpr std::string_view kOther = "other";
constexpr std::string_view kUnknown = "unknown";  // their process ids mean nothing here

// Lists change between two calls: a second try with the room that was asked for, and half as much more.
template <class Entry>
NvmlStatus list(NvmlStatus (*call)(NvmlDevice, std::uint32_t*, Entry*), NvmlDevice device, std::vector<Entry>& out) {
  NvmlStatus status = NvmlStatus::kInsufficientSize;
  std::uint32_t room = std::max<std::uint32_t>(kRoomFirst, static_cast<std::uint32_t>(out.capacity()));
  for (int attempt = 0; attempt < 3 && status == NvmlStatus::kInsufficientSize; ++attempt) {
    out.resize(room);
    std::uint32_t count = room;
    status = call(device, &count, out.data());
    if (status == NvmlStatus::kInsufficientSize) {
      room = std::min(std::max(count + count / 2, 2 * room), kRoomMax);
    } else if (status == NvmlStatus::kSuccess) {
      out.resize(std::min(count, room));
    }
  }
  if (status != NvmlStatus::kSuccess) out.clear();
  return status;
}

NvmlStatus list_all(const NvmlCalls& calls, NvmlDevice device, std::vector<NvmlProcessV1>& old_form,
                    std::vector<NvmlProcess>& out) {
  NvmlStatus status = NvmlStatus::kFunctionNotFound;
  if (calls.compute_processes != nullptr) status = list(calls.compute_processes, device, out);
  if (calls.compute_processes_v1 != nullptr && status == NvmlStatus::kFunctionNotFound) {
    status = list(calls.compute_processes_v1, device, old_form);
    out.clear();
    for (const NvmlProcessV1& one : old_form) out.push_back({one.pid, one.used_bytes, UINT32_MAX, UINT32_MAX});
  }
  return status;
}

// Clients of an MPS server are in a list of their own.
void add_mps(const NvmlCalls& calls, NvmlDevice device, std::vector<NvmlProcess>& out) {
  if (calls.mps_processes == nullptr) return;
  std::vector<NvmlProcess> clients;
  if (list(calls.mps_processes, device, clients) != NvmlStatus::kSuccess) return;
  for (const NvmlProcess& client : clients) {
    const bool is_known =
        std::any_of(out.begin(), out.end(), [&](const NvmlProcess& p) { return p.pid == client.pid; });
    if (!is_known) out.push_back(client);
  }
}

const JobProcess* find(const JobView& job, std::uint32_t pid) {
  const auto found = std::lower_bound(job.processes.begin(), job.processes.end(), static_cast<std::int32_t>(pid),
                                      [](const JobProcess& process, std::int32_t id) { return process.pid < id; });
  return found != job.processes.end() && found->pid == static_cast<std::int32_t>(pid) ? &*found : nullptr;
}

}  // namespace

NvidiaDevice::ProcessSeries* NvidiaDevice::process_series(std::string_view slot, SampleSink& out) {
  const auto known = process_series_.find(slot);
  if (known != process_series_.end()) return &known->second;
  if (process_series_.size() == kProcessesMax) {
    out.count_loss("record.series_refused", 1);
    return nullptr;
  }
  ProcessSeries& fresh = process_series_[std::string(slot)];
  fresh.memory = out.series(kProcessMemory, format("{}/{}", identity_.label, slot));
  return &fresh;
}

void NvidiaDevice::put_process(ProcessSeries& series, const NvmlCalls& calls, const NvmlProcess& process,
                               bool is_accounted, SampleSink& out) {
  out.add(series.memory, process.used_bytes == UINT64_MAX ? Value::missing(MissingReason::kNotSupported)
                                                          : Value::of(process.used_bytes));
  if (!is_accounted || calls.accounting_stats == nullptr) return;
  NvmlAccountingStats stats{};
  if (calls.accounting_stats(handle_, process.pid, &stats) != NvmlStatus::kSuccess) return;
  if (!series.memory_max.valid()) {
    const auto slot = std::find_if(process_series_.begin(), process_series_.end(),
                                   [&](const auto& one) { return &one.second == &series; });
    const std::string instance = format("{}/{}", identity_.label, slot->first);
    series.memory_max = out.series(kProcessMemoryMax, instance);
    series.busy = out.series(kProcessBusy, instance);
  }
  const auto missing = Value::missing(MissingReason::kNotSupported);
  out.add(series.memory_max, stats.memory_max_bytes == UINT64_MAX ? missing : Value::of(stats.memory_max_bytes));
  out.add(series.busy, stats.gpu_percent == UINT32_MAX ? missing : Value::of(std::uint64_t{stats.gpu_percent}));
}

NvmlStatus NvidiaDevice::sample_processes(const NvmlCalls& calls, const JobView& job, bool pids_are_ours, bool is_rare,
                                          SampleSink& out) {
  if (is_refused_[kProcesses] && !is_rare) return NvmlStatus::kSuccess;
  if (!processes_) processes_.emplace();
  const NvmlStatus status = list_all(calls, handle_, processes_v1_, *processes_);
  if (status != NvmlStatus::kSuccess) {
    processes_.reset();
    if (is_device_lost(status)) return status;
    put(kProcesses, Value::missing(missing_reason(status)), out);
    return NvmlStatus::kSuccess;
  }
  add_mps(calls, handle_, *processes_);
  put(kProcesses, Value::of(std::uint64_t{processes_->size()}), out);

  for (auto& [slot, series] : process_series_) series.is_seen = false;
  NvmlProcess rest{.pid = 0, .used_bytes = 0, .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX};
  bool has_rest = false;
  for (const NvmlProcess& process : *processes_) {
    const JobProcess* ours = pids_are_ours ? find(job, process.pid) : nullptr;
    ProcessSeries* series = ours != nullptr ? process_series(ours->slot, out) : nullptr;
    if (series != nullptr && !series->is_seen) {
      series->is_seen = series->is_live = true;
      put_process(*series, calls, process, is_rare && !identity_.is_mig(), out);
      continue;
    }
    has_rest = true;
    const bool is_unknown = process.used_bytes == UINT64_MAX || rest.used_bytes == UINT64_MAX;
    rest.used_bytes = is_unknown ? UINT64_MAX : rest.used_bytes + process.used_bytes;
  }
  if (ProcessSeries* series = has_rest ? process_series(pids_are_ours ? kOther : kUnknown, out) : nullptr) {
    series->is_seen = series->is_live = true;
    put_process(*series, calls, rest, false, out);
  }
  for (auto& [slot, series] : process_series_) {
    if (!series.is_live || series.is_seen) continue;
    out.add(series.memory, Value::missing(MissingReason::kSourceLost));
    series.is_live = false;
  }
  return NvmlStatus::kSuccess;
}

}  // namespace hotlap
