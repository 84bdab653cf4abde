#pragma once
// What the names of processes and threads in a Chrome trace say of events that have no category: XLA's and TensorFlow's
// devices ("/device:GPU:0" with "Stream #14(Compute)", "XLA Ops", "Steps"), rocprof's ("0 GPU6", "0 CPU HIP API").
// Names stand before the events. Bounded: kProcessesMax processes, kThreadsMax threads of devices.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hotlap {

class NamedProcesses {
 public:
  static constexpr std::size_t kProcessesMax = 4096;
  static constexpr std::size_t kThreadsMax = 16'384;

  enum class Work : std::uint8_t {
    kUnknown,  // nothing is said
    kHost,     // of a host that hands programs to its devices
    kDevice,   // runs on the device; copies among it by their names
    kSteps,    // one event a step, its number as name
    kAbout,    // says something of what runs on the device: modules, scopes, source
    kCall,     // of the device's runtime
    kRange,    // that the program pushed
  };

  void on_process(std::string_view process, std::string_view name);
  void on_thread(std::string_view process, std::string_view thread, std::string_view name);
  bool empty() const { return processes_.empty(); }
  Work work_of(std::string_view process, std::string_view thread) const;
  // "gpu0", "tpu0"; empty: it is none that is known by its name.
  std::string_view device_label(std::string_view process) const;
  bool is_of_xla() const { return is_of_xla_; }
  const std::string& host() const { return host_; }  // of XLA; empty: not told

 private:
  struct Process {
    Work work = Work::kUnknown;
    std::string label;  // of a device
    bool has_streams = false;
  };
  std::map<std::string, Process, std::less<>> processes_;
  std::map<std::string, std::string, std::less<>> threads_;  // of devices: process, blank, thread
  bool is_of_xla_ = false;
  std::string host_;
};

// "/device:TPU:0 (pid 3)" -> "tpu0", also behind a job's name, as TensorFlow 1 has it; empty: it names no device.
std::string xla_device_label(std::string_view plane);

}  // namespace hotlap
