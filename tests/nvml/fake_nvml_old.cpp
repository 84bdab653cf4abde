// The script, and the calls that a driver of 2015 has.
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "nvml/fake_nvml.h"

namespace fake_nvml {
namespace {

struct Card {
  std::string_view name;
  std::string_view words;  // as after "gpu N"
};
// Values like those that such cards report; what a card does not have is absent.
constexpr std::array kCards{
    Card{"none", ""},
    Card{"t4",
         "name Tesla_T4 busy 0 controller 0 used 1032 total 15360 reserved 388 bar1_used 5 bar1_total 256 power 26780 "
         "energy 912345678 limit 70000 limit_default 70000 limit_requested 70000 temperature 40 slowdown 93 clock0 585 "
         "clock1 585 clock2 5000 clock3 825 clock_max1 1590 clock_max2 5001 pstate 0 reasons 1 gen 3 gen_max 3 width 8 "
         "width_max 16 send 0 receive 0 replays 0 ecc00 0 ecc10 0 ecc01 2 ecc11 0 encoder 0 decoder 0 accounting 0 "
         "field.29 0 field.30 0 field.186 26780"},
    Card{"a10g",
         "name NVIDIA_A10G busy 0 controller 0 used 22 total 23028 reserved 435 bar1_used 1 bar1_total 32768 power "
         "25580 energy 40440404 limit 300000 limit_default 300000 limit_requested 300000 temperature 17 slowdown 95 "
         "fan 0 clock0 210 clock1 210 clock2 405 clock3 555 clock_max1 1710 clock_max2 6251 pstate 8 reasons 1 gen 1 "
         "gen_max 4 width 8 width_max 16 send 0 receive 0 replays 0 ecc00 0 ecc10 0 ecc01 0 ecc11 0 rows_correctable "
         "0 rows_uncorrectable 0 rows_pending 0 rows_failed 0 encoder 0 decoder 0 accounting 0 field.186 25600"},
    Card{
        "v100",
        "name Tesla_V100-SXM2-16GB busy 97 controller 61 used 14810 total 16160 reserved 312 bar1_used 3 bar1_total "
        "16384 power 287123 energy 123456789012 limit 300000 limit_default 300000 limit_requested 300000 temperature "
        "66 slowdown 87 clock0 1530 clock1 1530 clock2 877 clock3 1372 clock_max1 1530 clock_max2 877 pstate 0 reasons "
        "4 gen 3 gen_max 3 width 16 width_max 16 send 150000 receive 310000 replays 0 links 6 ecc00 0 ecc10 0 ecc01 "
        "17 ecc11 0 encoder 0 decoder 0 accounting 1 field.82 63 field.74 5000000 field.76 0 field.138 1000 field.139 "
        "2000 field.45 0 field.52 0 field.59 0 field.29 2 field.30 0"},
    Card{
        "a100",
        "name NVIDIA_A100-SXM4-80GB busy 88 controller 40 used 60000 total 81920 reserved 600 bar1_used 5 bar1_total "
        "131072 power 350000 energy 987654321 limit 400000 limit_default 400000 limit_requested 400000 temperature 55 "
        "slowdown 90 clock0 1410 clock1 1410 clock2 1593 clock3 1275 clock_max1 1410 clock_max2 1593 pstate 0 reasons "
        "0 gen 4 gen_max 4 width 16 width_max 16 send 10 receive 20 replays 0 links 12 ecc00 0 ecc10 0 ecc01 0 ecc11 0 "
        "rows_correctable 1 rows_uncorrectable 0 rows_pending 1 rows_failed 0 encoder 0 decoder 0 mig 0 migs_max 7 "
        "accounting 0 field.82 51 field.74 0 field.138 4096 field.139 8192 field.45 0 field.52 0 field.59 0"},
    Card{
        "h100",
        "name NVIDIA_H100_80GB_HBM3 busy 100 controller 12 used 17083 total 81559 reserved 479 bar1_used 3 bar1_total "
        "131072 power 689210 energy 31415926535 limit 700000 limit_default 700000 limit_requested 650000 temperature "
        "61 slowdown 92 clock0 1755 clock1 1755 clock2 2619 clock3 1410 clock_max1 1980 clock_max2 2619 pstate 0 "
        "reasons 4 gen 5 gen_max 5 width 16 width_max 16 send 359 receive 329 replays 0 links 18 ecc00 0 ecc10 0 ecc01 "
        "0 ecc11 0 rows_correctable 0 rows_uncorrectable 0 rows_pending 0 rows_failed 0 encoder 0 decoder 0 mig 0 "
        "migs_max 7 accounting 0 field.82 58 field.74 1234567 field.76 0 field.186 691000 field.251 0 field.252 0 "
        "field.253 0 field.197 1000000 field.198 2000000 field.138 123456 field.139 234567 field.45 0 field.52 0 "
        "field.59 0 field.230 0 gpm 1 gpm.1 100 gpm.2 93.5 gpm.3 41.25 gpm.5 55.5 gpm.10 38 gpm.11 0 gpm.12 4.5 gpm.13 "
        "1.5 gpm.20 12.5 gpm.21 250 gpm.61 1024 gpm.60 1000"},
    Card{
        "mig-3g.40gb",
        "name NVIDIA_H100_80GB_HBM3_MIG_3g.40gb used 11091 total 40448 reserved 0 bar1_used 0 bar1_total 65535 gi 2 ci "
        "0 gpm.1 88 gpm.2 71 gpm.3 30 gpm.5 22 gpm.10 19"},
    Card{"mig-1g.10gb",
         "name NVIDIA_H100_80GB_HBM3_MIG_1g.10gb used 9 total 9984 reserved 0 bar1_used 0 bar1_total 16383 gi 9 ci 0 "
         "gpm.1 0 gpm.2 0 gpm.3 0 gpm.5 0 gpm.10 0"},
};

std::string spaced(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

void apply_words(std::istringstream& words, Device& device);

void apply_like(const std::string& card, Device& device) {
  for (const Card& one : kCards) {
    if (one.name != card) continue;
    device.values.clear();
    std::istringstream words{std::string(one.words)};
    apply_words(words, device);
  }
}

void apply_words(std::istringstream& words, Device& device) {
  std::string word;
  while (words >> word) {
    std::string value;
    if (word == "lost") {
      device.is_lost = device.is_lost_here = true;
    } else if (word == "back") {
      device.is_lost = false;
    } else if (word == "gone") {
      device.is_gone = true;
    } else if (word == "here") {
      device.is_gone = false;
    } else if (word == "fail") {
      std::string function;
      words >> function >> value;
      device.failures[function] = std::stoi(value);
    } else if (word == "process") {
      Process process;
      words >> process.pid >> value;
      if (value != "na") process.bytes = std::stoull(value) << 20U;
      device.processes.push_back(process);
    } else if (words >> value) {
      if (word == "like")
        apply_like(value, device);
      else if (word == "name")
        device.name = spaced(value);
      else if (word == "uuid")
        device.uuid = value;
      else if (word == "processes")
        device.processes.clear();
      else if (word == "xid")
        state().events.push_back({&device, std::stoull(value)});
      else if (value == "na")
        device.values.erase(word);
      else
        device.values[word] = std::stod(value);
    }
  }
}

Device& find_or_add(const std::string& place) {
  if (Device* known = find(place)) return *known;
  Device& fresh = state().devices.emplace_back();
  fresh.place = place;
  const bool is_mig = place.find('/') != std::string::npos;
  fresh.uuid = (is_mig ? "MIG-0000000" : "GPU-0000000") + place;
  std::replace(fresh.uuid.begin(), fresh.uuid.end(), '/', '-');
  return fresh;
}

void apply_line(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  if (!(words >> verb) || verb.starts_with('#')) return;
  State& now = state();
  if (verb == "reset") {
    const int generation = now.generation;
    now = State{};
    now.generation = generation;
  } else if (verb == "driver") {
    words >> now.driver;
  } else if (verb == "init") {
    words >> now.init_status;
  } else if (verb == "slow") {
    std::string function;
    words >> function;
    words >> now.slow_ms[function];
  } else if (verb == "gpu") {
    std::string place;
    words >> place;
    std::string rest;
    std::getline(words, rest);
    const std::size_t dash = place.find('-');
    const int first = dash == std::string::npos ? 0 : std::stoi(place);
    const int last = dash == std::string::npos ? 0 : std::stoi(place.substr(dash + 1));
    for (int n = first; n <= last; ++n) {
      std::istringstream part(rest);
      apply_words(part, find_or_add(dash == std::string::npos ? place : std::to_string(n)));
    }
  }
}

}  // namespace

State& state() {
  static State* const kept = new State;
  return *kept;
}

void apply(std::string_view script) {
  std::istringstream lines{std::string(script)};
  std::string line;
  while (std::getline(lines, line)) apply_line(line);
}

Device* find(std::string_view place) {
  for (Device& device : state().devices) {
    if (device.place == place) return &device;
  }
  return nullptr;
}

std::vector<Device*> listed() {
  std::vector<Device*> gpus;
  for (Device& device : state().devices) {
    if (device.place.find('/') == std::string::npos && !device.is_gone) gpus.push_back(&device);
  }
  return gpus;
}

NvmlDevice handle_of(Device* device) {
  static std::deque<Handle>* const kept = new std::deque<Handle>;
  for (Handle& one : *kept) {
    if (one.device == device && one.generation == state().generation) return {&one};
  }
  kept->push_back({device, state().generation});
  return {&kept->back()};
}

NvmlStatus enter(std::string_view function, NvmlDevice handle, Device** device) {
  State& now = state();
  if (!now.slow_ms.empty()) {
    if (const auto slow = now.slow_ms.find(function); slow != now.slow_ms.end() && slow->second > 0) {
      const timespec pause{slow->second / 1000, (slow->second % 1000) * 1'000'000L};
      ::nanosleep(&pause, nullptr);
    }
  }
  if (now.starts <= 0) return NvmlStatus::kUninitialized;
  if (device == nullptr) return NvmlStatus::kSuccess;
  const auto* known = static_cast<const Handle*>(handle.handle);
  if (known == nullptr) return NvmlStatus::kInvalidArgument;
  if (known->generation != now.generation) return NvmlStatus::kUninitialized;
  *device = known->device;
  if (known->device->is_lost || known->device->is_lost_here) return NvmlStatus::kGpuIsLost;
  if (known->device->failures.empty()) return NvmlStatus::kSuccess;
  const auto failure = known->device->failures.find(function);
  return failure == known->device->failures.end() ? NvmlStatus::kSuccess : static_cast<NvmlStatus>(failure->second);
}

NvmlStatus value(const Device& device, std::string_view key, double& out) {
  const auto found = device.values.find(key);
  if (found == device.values.end()) return NvmlStatus::kNotSupported;
  out = found->second;
  return NvmlStatus::kSuccess;
}

NvmlStatus number(std::string_view function, NvmlDevice handle, std::string_view key, std::uint32_t* out) {
  std::uint64_t found = 0;
  const NvmlStatus status = big_number(function, handle, key, &found);
  if (status == NvmlStatus::kSuccess) *out = static_cast<std::uint32_t>(found);
  return status;
}

NvmlStatus big_number(std::string_view function, NvmlDevice handle, std::string_view key, std::uint64_t* out) {
  Device* device = nullptr;
  if (const NvmlStatus status = enter(function, handle, &device); status != NvmlStatus::kSuccess) return status;
  double found = 0;
  const NvmlStatus status = value(*device, key, found);
  if (status == NvmlStatus::kSuccess) *out = static_cast<std::uint64_t>(found);
  return status;
}

NvmlStatus text(const std::string& from, char* to, std::uint32_t size) {
  if (from.size() >= size) return NvmlStatus::kInsufficientSize;
  std::memcpy(to, from.c_str(), from.size() + 1);
  return NvmlStatus::kSuccess;
}

}  // namespace fake_nvml

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names
using namespace fake_nvml;  // NOLINT(google-build-using-namespace)
using hotlap::NvmlMemory;
using hotlap::NvmlProcessV1;
using hotlap::NvmlUtilization;

extern "C" {

void fake_nvml_script(const char* script) { apply(script); }
// GPM samples and event sets that were not given back, and starts that were not ended.
int fake_nvml_left_open() { return state().open_samples + state().open_sets + state().starts; }

NvmlStatus nvmlInit() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): tests set it before any thread
  if (const char* file = ::getenv("FAKE_NVML_SCRIPT"); file != nullptr && state().generation == 0) {
    std::ifstream in(file);
    std::ostringstream content;
    content << in.rdbuf();
    apply(content.str());
  }
  State& now = state();
  if (now.init_status != 0) return static_cast<NvmlStatus>(now.init_status);
  ++now.starts;
  ++now.generation;
  now.watched.clear();
  for (Device& device : now.devices) device.is_lost_here = device.is_lost;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlShutdown() {
  --state().starts;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlSystemGetDriverVersion(char* version, std::uint32_t size) { return text(state().driver, version, size); }
NvmlStatus nvmlDeviceGetCount(std::uint32_t* count) {
  if (const NvmlStatus status = enter("nvmlDeviceGetCount", {}, nullptr); status != NvmlStatus::kSuccess) return status;
  *count = static_cast<std::uint32_t>(listed().size());
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceGetHandleByIndex(std::uint32_t index, NvmlDevice* device) {
  const std::vector<Device*> gpus = listed();
  if (index >= gpus.size()) return NvmlStatus::kInvalidArgument;
  Device* found = nullptr;
  const NvmlDevice handle = handle_of(gpus[index]);
  if (const auto status = enter("nvmlDeviceGetHandleByIndex", handle, &found); status != NvmlStatus::kSuccess) {
    return status;
  }
  *device = handle;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceGetName(NvmlDevice handle, char* name, std::uint32_t size) {
  Device* device = nullptr;
  const NvmlStatus status = enter("nvmlDeviceGetName", handle, &device);
  return status == NvmlStatus::kSuccess ? text(device->name, name, size) : status;
}
NvmlStatus nvmlDeviceGetUUID(NvmlDevice handle, char* uuid, std::uint32_t size) {
  Device* device = nullptr;
  const NvmlStatus status = enter("nvmlDeviceGetUUID", handle, &device);
  return status == NvmlStatus::kSuccess ? text(device->uuid, uuid, size) : status;
}
NvmlStatus nvmlDeviceGetUtilizationRates(NvmlDevice handle, NvmlUtilization* out) {
  const NvmlStatus status = number("nvmlDeviceGetUtilizationRates", handle, "busy", &out->gpu);
  return status == NvmlStatus::kSuccess ? number("", handle, "controller", &out->memory) : status;
}
// In this form what is reserved counts as used.
NvmlStatus nvmlDeviceGetMemoryInfo(NvmlDevice handle, NvmlMemory* out) {
  Device* device = nullptr;
  if (const auto status = enter("nvmlDeviceGetMemoryInfo", handle, &device); status != NvmlStatus::kSuccess) {
    return status;
  }
  double used = 0;
  double total = 0;
  double reserved = 0;
  if (value(*device, "total", total) != NvmlStatus::kSuccess) return NvmlStatus::kNotSupported;
  (void)value(*device, "used", used);
  (void)value(*device, "reserved", reserved);
  out->total = static_cast<std::uint64_t>(total) << 20U;
  out->used = static_cast<std::uint64_t>(used + reserved) << 20U;
  out->free = out->total - out->used;
  return NvmlStatus::kSuccess;
}
NvmlStatus nvmlDeviceGetPowerUsage(NvmlDevice handle, std::uint32_t* out) {
  return number("nvmlDeviceGetPowerUsage", handle, "power", out);
}
NvmlStatus nvmlDeviceGetTemperature(NvmlDevice handle, std::uint32_t, std::uint32_t* out) {
  return number("nvmlDeviceGetTemperature", handle, "temperature", out);
}
NvmlStatus nvmlDeviceGetClockInfo(NvmlDevice handle, std::uint32_t kind, std::uint32_t* out) {
  constexpr std::array<std::string_view, 4> kKeys{"clock0", "clock1", "clock2", "clock3"};
  return kind < kKeys.size() ? number("nvmlDeviceGetClockInfo", handle, kKeys[kind], out)
                             : NvmlStatus::kInvalidArgument;
}
NvmlStatus nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice handle, std::uint64_t* out) {
  return big_number("nvmlDeviceGetCurrentClocksThrottleReasons", handle, "reasons", out);
}
NvmlStatus nvmlDeviceGetComputeRunningProcesses(NvmlDevice handle, std::uint32_t* count, NvmlProcessV1* out) {
  Device* device = nullptr;
  if (const auto status = enter("nvmlDeviceGetComputeRunningProcesses", handle, &device);
      status != NvmlStatus::kSuccess) {
    return status;
  }
  const auto there = static_cast<std::uint32_t>(device->processes.size());
  const std::uint32_t room = *count;
  *count = there;
  if (there > room) return NvmlStatus::kInsufficientSize;
  for (std::uint32_t p = 0; p < there; ++p) {
    out[p] = {device->processes[p].pid, device->processes[p].bytes.value_or(UINT64_MAX)};
  }
  return NvmlStatus::kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
