#pragma once
// A libnvidia-ml.so.1 for tests, with as many GPUs as a script says: what the collector loads, calls and is refused is
// the real path up to the driver. Built twice: `old` has the calls of a driver of 2015, `current` all that we use.
//
// The script is lines of words, applied one after the other; fake_nvml_script() takes them, and at nvmlInit so does the
// file that FAKE_NVML_SCRIPT names:
//
//   reset                          no GPU, no failure
//   driver 590.48.01
//   init 9                         what nvmlInit returns; 0: success
//   gpu 0-7 like h100              GPUs with the values of a card: t4 a10g v100 a100 h100, or none
//   gpu 0 uuid GPU-1234            · name Tesla_T4 (_ is a blank)
//   gpu 0 busy 97 power 350000     values by the keys of kKeys; na: not supported
//   gpu 0 field.186 52000 gpm.2 93.5
//   gpu 0 fail nvmlDeviceGetPowerUsage 4      that call on it ends so; 0 ends it
//   gpu 0 lost                     every call: GPU is lost; "back": after the next nvmlInit it answers again
//   gpu 7 gone                     not listed; "here" ends it
//   gpu 0 process 1234 1500        a compute process and its MiB (na); "processes none"
//   gpu 0 xid 79                   an event
//   gpu 0/1 like mig-1g.10gb       a MIG instance of GPU 0; needs "gpu 0 mig 1"; gi 7 ci 0
//   slow nvmlDeviceGetUtilizationRates 300    every such call takes so many ms
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collect/nvml.h"

namespace fake_nvml {

using hotlap::NvmlDevice;
using hotlap::NvmlStatus;

struct Process {
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> bytes;
};

struct Device {
  std::string place;                                  // "0", "0/1"
  std::map<std::string, double, std::less<>> values;  // by key; absent: not supported
  std::string name = "NVIDIA Fake";
  std::string uuid;
  std::map<std::string, int, std::less<>> failures;  // by function
  std::vector<Process> processes;
  bool is_lost = false;       // by the script
  bool is_lost_here = false;  // until the next nvmlInit
  bool is_gone = false;
};

struct Event {
  Device* device;
  std::uint64_t xid;
};

struct State {
  std::string driver = "590.48.01";
  int init_status = 0;
  int starts = 0;              // nvmlInit minus nvmlShutdown
  int generation = 0;          // of nvmlInit: handles of earlier ones are not valid
  std::deque<Device> devices;  // places stay
  std::map<std::string, int, std::less<>> slow_ms;
  std::deque<Event> events;
  std::set<Device*> watched;
  int open_samples = 0;  // GPM samples that were not freed
  int open_sets = 0;
};

struct Handle {
  Device* device;
  int generation;
};

State& state();
void apply(std::string_view script);
Device* find(std::string_view place);
std::vector<Device*> listed();  // GPUs
// A handle of the present start.
NvmlDevice handle_of(Device* device);
// The call `function` begins on a device (null: on none): what it ends with; success: it goes on, and `device` is set.
NvmlStatus enter(std::string_view function, NvmlDevice handle, Device** device);
// The value of `key`.
NvmlStatus value(const Device& device, std::string_view key, double& out);
NvmlStatus number(std::string_view function, NvmlDevice handle, std::string_view key, std::uint32_t* out);
NvmlStatus big_number(std::string_view function, NvmlDevice handle, std::string_view key, std::uint64_t* out);
NvmlStatus text(const std::string& from, char* to, std::uint32_t size);

}  // namespace fake_nvml
