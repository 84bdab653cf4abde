#include "ingest/named_processes.h"

#include <algorithm>

#include "base/ascii.h"

namespace hotlap {
namespace {

constexpr std::size_t kNameMax = 256;

bool is_number(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

std::string key_of(std::string_view process, std::string_view thread) {
  std::string key(process.substr(0, kNameMax));
  key += ' ';
  key += thread.substr(0, kNameMax);
  return key;
}

// rocprof numbers its processes and names each by what is in it: "0 GPU6", "1 CPU HIP API", "2 COPY".
std::string_view behind_number(std::string_view name) {
  const std::size_t blank = name.find(' ');
  if (blank == std::string_view::npos || !is_number(name.substr(0, blank))) return {};
  return name.substr(blank + 1);
}

}  // namespace

std::string xla_device_label(std::string_view plane) {
  constexpr std::string_view kMark = "/device:";
  const std::size_t at = plane.find(kMark);
  if (at != 0 && !(plane.starts_with("/job:") && at != std::string_view::npos)) return {};
  plane.remove_prefix(at + kMark.size());
  std::string label;
  for (const char c : plane.substr(0, std::min<std::size_t>(plane.find(' '), 32))) {
    if (c != ':') label += to_lower(c);
  }
  return label.starts_with("cpu") ? std::string{} : label;
}

void NamedProcesses::on_process(std::string_view process, std::string_view name) {
  if (processes_.size() >= kProcessesMax) return;
  Process found;
  if (std::string label = xla_device_label(name); !label.empty()) {
    found = {.work = Work::kDevice, .label = std::move(label)};
    is_of_xla_ = true;
  } else if (name.starts_with("/host:CPU")) {
    found.work = Work::kHost;
    is_of_xla_ = true;
    if (host_.empty()) host_ = process.substr(0, kNameMax);
  } else if (const std::string_view what = behind_number(name); !what.empty()) {
    if (what.starts_with("GPU") && is_number(what.substr(3))) {
      found = {.work = Work::kDevice, .label = "gpu" + std::string(what.substr(3, 8))};
    } else if (what == "CPU HIP API" || what == "CPU HSA API") {
      found.work = Work::kCall;
    } else if (what == "Markers and Ranges") {
      found.work = Work::kRange;
    }
  }
  if (found.work != Work::kUnknown) processes_[std::string(process.substr(0, kNameMax))] = std::move(found);
}

void NamedProcesses::on_thread(std::string_view process, std::string_view thread, std::string_view name) {
  const auto found = processes_.find(process);
  if (found == processes_.end() || found->second.work != Work::kDevice || threads_.size() >= kThreadsMax) return;
  found->second.has_streams |= name.starts_with("Stream");
  threads_[key_of(process, thread)] = name.substr(0, kNameMax);
}

NamedProcesses::Work NamedProcesses::work_of(std::string_view process, std::string_view thread) const {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return Work::kUnknown;
  if (found->second.work != Work::kDevice) return found->second.work;
  const auto named = threads_.find(key_of(process, thread));
  if (named == threads_.end()) return Work::kDevice;
  const std::string& name = named->second;
  if (name == "Steps") return Work::kSteps;
  // Of a GPU the streams hold what ran; the lines of XLA operations are made from them.
  const bool is_work =
      found->second.has_streams ? name.starts_with("Stream") : name == "XLA Ops" || !name.starts_with("XLA ");
  return is_work ? Work::kDevice : Work::kAbout;
}

std::string_view NamedProcesses::device_label(std::string_view process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? std::string_view{} : std::string_view(found->second.label);
}

}  // namespace hotlap
