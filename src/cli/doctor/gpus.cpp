// GPUs: which are here, what of them cannot be recorded, and what mends it.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "cli/doctor/doctor.h"
#include "collect/gpu_use.h"
#include "record/identity.h"

namespace hotlap {
namespace {

constexpr std::string_view kGpus = "GPUs";

struct Gpu {
  const std::string& label;
  const Readings& readings;

  const Value* value(std::string_view metric) const {
    const auto found = readings.find(format("{} {}", metric, label));
    return found == readings.end() ? nullptr : &found->second;
  }
  std::optional<double> number(std::string_view metric) const {
    const Value* found = value(metric);
    return found == nullptr ? std::nullopt : found->number();
  }
  bool is_missing_for(std::string_view metric, MissingReason reason) const {
    const Value* found = value(metric);
    return found != nullptr && found->is_missing() && found->reason() == reason;
  }
};

std::string text_of(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string() : found->second;
}

// "gpu0" of "gpu0.name"; MIG instances and GPUs that refuse included.
std::vector<std::string> labels_of(const Texts& texts) {
  std::set<std::string> labels;
  for (const auto& [key, text] : texts) {
    const std::size_t dot = key.rfind('.');
    const std::string_view what = std::string_view(key).substr(dot == std::string::npos ? 0 : dot + 1);
    if (what == "name" || what == "refused") labels.insert(key.substr(0, dot));
  }
  return {labels.begin(), labels.end()};
}

std::string describe(const Gpu& gpu, const Texts& texts) {
  std::string text = text_of(texts, gpu.label + ".name");
  if (const auto total = gpu.number("gpu.memory.total.bytes")) text += format(", {}", format_bytes(*total));
  if (const std::string uuid = text_of(texts, gpu.label + ".uuid"); !uuid.empty()) text += format(", {}", uuid);
  std::size_t missing = 0;
  const std::string suffix = " " + gpu.label;
  for (const auto& [name, value] : gpu.readings) {
    if (name.starts_with("gpu.") && name.ends_with(suffix) && value.is_missing() &&
        value.reason() == MissingReason::kNotSupported) {
      ++missing;
    }
  }
  if (missing > 0) text += format("; {} figures are not supported", missing);
  return text;
}

void add(Checks& out, std::string name, Health health, std::string text, std::string mend = {}) {
  out.push_back(
      {.area = kGpus, .name = std::move(name), .health = health, .text = std::move(text), .mend = std::move(mend)});
}

// What is wrong with a GPU, as far as it says so itself.
void check_faults(const Gpu& gpu, Checks& out) {
  constexpr std::array<std::string_view, 5> kActions{"", "a reset", "a reboot of the machine",
                                                     "its peers to be drained", "to be drained and reset"};
  const auto action = gpu.number("gpu.recovery_action");
  if (action && *action >= 1 && *action < kActions.size()) {
    add(out, gpu.label, Health::kWarning, format("the driver asks for {}", kActions[static_cast<std::size_t>(*action)]),
        *action == 1 ? "nvidia-smi --gpu-reset -i N, as root, while nothing uses it" : "ask who runs the machine");
  }
  if (gpu.number("gpu.remapped_rows.failed").value_or(0) > 0) {
    add(out, gpu.label, Health::kWarning, "a row of its memory could not be replaced", "have the board exchanged");
  } else if (gpu.number("gpu.remapped_rows.pending").value_or(0) > 0) {
    add(out, gpu.label, Health::kNote, "a row of its memory waits to be replaced at the next reset",
        "nvidia-smi --gpu-reset -i N, as root, while nothing uses it");
  }
  const auto width = gpu.number("gpu.pcie.width");
  const auto width_max = gpu.number("gpu.pcie.width_max");
  if (width && width_max && *width < *width_max) {
    add(out, gpu.label, Health::kNote, format("uses {:.0f} of {:.0f} PCIe lanes", *width, *width_max),
        "a slot with fewer lanes is normal; otherwise seat the board anew");
  }
}

void check_gpu(const Gpu& gpu, const Texts& texts, Checks& out) {
  if (const std::string refused = text_of(texts, gpu.label + ".refused"); !refused.empty()) {
    add(out, gpu.label, Health::kWarning, format("cannot be read: {}", refused),
        "give this job or container access to it, or leave it out on purpose");
    return;
  }
  add(out, gpu.label, Health::kGood, describe(gpu, texts));
  check_faults(gpu, out);
  const bool is_forbidden = std::any_of(gpu.readings.begin(), gpu.readings.end(), [&](const auto& one) {
    return one.first.ends_with(" " + gpu.label) && one.second.is_missing() &&
           one.second.reason() == MissingReason::kNoPermission;
  });
  if (is_forbidden) {
    add(out, gpu.label, Health::kWarning, "some figures may not be read by this user",
        "record as root, or start the container with --cap-add SYS_ADMIN (MIG: of the parent's figures)");
  }
  const bool is_split = gpu.number("gpu.mig.enabled").value_or(0) > 0;
  if (is_split) {
    add(out, gpu.label, Health::kNote,
        "split into MIG instances: NVML has no utilization of it or of them; use "
        "gpu.sm_active.percent, from Hopper on");
  }
}

// A PCI device of `vendor` whose class begins with `kind`, as /sys/bus/pci writes both.
bool has_pci_device(const Host& host, std::string_view vendor, std::string_view kind) {
  const Result<std::vector<std::string>> devices = host.list("/sys/bus/pci/devices");
  if (!devices.ok()) return false;
  return std::any_of(devices->begin(), devices->end(), [&](const std::string& device) {
    const std::string folder = "/sys/bus/pci/devices/" + device;
    const Result<std::string> its_vendor = host.read_text(folder + "/vendor", 64);
    const Result<std::string> its_kind = host.read_text(folder + "/class", 64);
    return its_vendor.ok() && its_kind.ok() && trim(*its_vendor) == vendor && trim(*its_kind).starts_with(kind);
  });
}

// Accelerators that are known by sight and by nothing else: docs/gpu.md says where a collector of each would go.
struct NotYet {
  std::string_view name;
  std::string_view vendor;
  std::string_view kind;
};
constexpr std::string_view kDisplay = "0x03";
constexpr std::array kNotYet{NotYet{"Intel GPU", "0x8086", kDisplay}, NotYet{"Intel Gaudi", "0x1da3", "0x12"}};

void check_not_yet(const Host& host, Checks& out) {
  for (const NotYet& device : kNotYet) {
    if (!has_pci_device(host, device.vendor, device.kind)) continue;
    add(out, std::string(device.name), Health::kNote,
        "is here and not supported yet: the machine is recorded without it");
  }
}

// Why NVIDIA's cards are not recorded although one is here.
void check_driver(const Host& host, const std::string& failure, Checks& out) {
  if (host.exists("/dev/nvidiactl")) {
    add(out, "NVIDIA", Health::kWarning, failure.empty() ? "no GPU is listed" : failure,
        "in a container: --gpus all with NVIDIA_DRIVER_CAPABILITIES=compute,utility; else install the driver's "
        "libraries of the same version");
    return;
  }
  if (host.exists("/proc/driver/nvidia/version")) {
    add(out, "NVIDIA", Health::kNote,
        "an NVIDIA driver is loaded and not in use yet; the GPU is recorded from when the "
        "job uses it");
    return;
  }
  if (has_pci_device(host, "0x10de", kDisplay)) {
    add(out, "NVIDIA", Health::kWarning, "an NVIDIA GPU without its driver", "install NVIDIA's driver");
  }
}

}  // namespace

void check_gpus(const Host& host, const Readings& readings, const Texts& texts, const Checks& collectors,
                const char* const* environment, Checks& out) {
  const std::vector<std::string> labels = labels_of(texts);
  std::set<std::string> models;
  bool has_nvidia = false;
  for (const std::string& label : labels) {
    check_gpu({label, readings}, texts, out);
    has_nvidia |= label.starts_with("gpu");
    const bool is_whole = label.find('/') == std::string::npos;
    if (is_whole && label.starts_with("gpu")) models.insert(text_of(texts, label + ".name"));
  }
  if (!has_nvidia) {
    const auto collector =
        std::find_if(collectors.begin(), collectors.end(), [](const Check& check) { return check.name == "nvidia"; });
    check_driver(host, collector == collectors.end() ? std::string() : collector->text, out);
  } else {
    add(out, "driver", Health::kGood, text_of(texts, "gpu.driver"));
    if (!pids_are_hosts(host)) {
      add(out, "processes", Health::kNote,
          "in a container the driver's process ids mean nothing: whose a GPU's memory is cannot be told",
          "start the container with --pid=host (Kubernetes: hostPID: true) where that is allowed");
    }
    const EnvironmentView variables(environment);
    if (models.size() > 1 && variables.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID") {
      add(out, "order", Health::kNote, "the GPUs differ, and CUDA numbers them fastest first, unlike nvidia-smi",
          "export CUDA_DEVICE_ORDER=PCI_BUS_ID");
    }
  }
  check_not_yet(host, out);
  const bool is_silent = std::none_of(out.begin(), out.end(), [](const Check& check) { return check.area == kGpus; });
  if (is_silent) add(out, "GPU", Health::kAbsent, "none is visible");
}

}  // namespace hotlap
