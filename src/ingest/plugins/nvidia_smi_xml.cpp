// nvidia-smi -q -x: one XML document a reading, also several one after the other (-l). Of each GPU what the collector
// `nvidia` records too; MIG instances and processes beside it.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/civil_time.h"
#include "ingest/importer.h"
#include "ingest/nvidia_fields.h"

namespace hotlap {
namespace {

constexpr std::size_t kDepthMax = 32;
constexpr std::size_t kTextMax = 4096;  // bytes of a tag or a text
constexpr std::size_t kGpusMax = 1024;

// The end of an element's path below <gpu>, or below <mig_device>.
struct Element {
  std::string_view path;
  NvidiaField field;
};
constexpr NvidiaField number(NvidiaMetric metric, std::string_view unit = {}) { return {"", "", metric, unit}; }
constexpr NvidiaField word(NvidiaMetric metric, NvidiaText text) { return {"", "", metric, "", text}; }
constexpr std::array kElements{
    Element{"utilization/gpu_util", number(kBusy, "%")},
    Element{"utilization/memory_util", number(kMemoryController, "%")},
    Element{"utilization/encoder_util", number(kEncoder, "%")},
    Element{"utilization/decoder_util", number(kDecoder, "%")},
    Element{"fb_memory_usage/total", number(kMemoryTotal, "MiB")},
    Element{"fb_memory_usage/reserved", number(kMemoryReserved, "MiB")},
    Element{"fb_memory_usage/used", number(kMemoryUsed, "MiB")},
    Element{"fb_memory_usage/free", number(kMemoryFree, "MiB")},
    Element{"bar1_memory_usage/total", number(kBar1Total, "MiB")},
    Element{"bar1_memory_usage/used", number(kBar1Used, "MiB")},
    Element{"temperature/gpu_temp", number(kTemperature, "C")},
    Element{"temperature/memory_temp", number(kTemperatureMemory, "C")},
    Element{"temperature/gpu_temp_slow_threshold", number(kTemperatureSlowdown, "C")},
    Element{"fan_speed", number(kFan, "%")},
    Element{"performance_state", word(kPerformanceState, NvidiaText::kPerformanceState)},
    Element{"clocks/sm_clock", number(kClockSm, "MHz")},
    Element{"clocks/graphics_clock", number(kClockGraphics, "MHz")},
    Element{"clocks/mem_clock", number(kClockMemory, "MHz")},
    Element{"clocks/video_clock", number(kClockVideo, "MHz")},
    Element{"max_clocks/sm_clock", number(kClockSmMax, "MHz")},
    Element{"max_clocks/mem_clock", number(kClockMemoryMax, "MHz")},
    Element{"power_readings/power_draw", number(kPower, "W")},
    Element{"power_readings/average_power_draw", number(kPower, "W")},
    Element{"power_readings/instant_power_draw", number(kPowerInstant, "W")},
    Element{"power_readings/current_power_limit", number(kPowerLimit, "W")},
    Element{"power_readings/enforced_power_limit", number(kPowerLimit, "W")},
    Element{"power_readings/requested_power_limit", number(kPowerLimitRequested, "W")},
    Element{"power_readings/power_limit", number(kPowerLimitRequested, "W")},
    Element{"power_readings/default_power_limit", number(kPowerLimitDefault, "W")},
    Element{"pcie_gen/current_link_gen", number(kPcieGeneration)},
    Element{"pcie_gen/max_link_gen", number(kPcieGenerationMax)},
    Element{"link_widths/current_link_width", number(kPcieWidth)},
    Element{"link_widths/max_link_width", number(kPcieWidthMax)},
    Element{"pci/replay_counter", number(kPcieReplays)},
    Element{"pci/tx_util", number(kPcieSendRate, "KB/s")},
    Element{"pci/rx_util", number(kPcieReceiveRate, "KB/s")},
    Element{"mig_mode/current_mig", word(kMigEnabled, NvidiaText::kSwitch)},
    Element{"accounting_mode", word(kAccounting, NvidiaText::kSwitch)},
    Element{"retired_pages/multiple_single_bit_retirement/retired_count", number(kRetiredCorrected)},
    Element{"retired_pages/double_bit_retirement/retired_count", number(kRetiredUncorrected)},
    Element{"remapped_rows/remapped_row_corr", number(kRowsCorrectable)},
    Element{"remapped_rows/remapped_row_unc", number(kRowsUncorrectable)},
    Element{"remapped_rows/remapped_row_pending", word(kRowsPending, NvidiaText::kSwitch)},
    Element{"remapped_rows/remapped_row_failure", word(kRowsFailed, NvidiaText::kSwitch)},
    Element{"volatile/single_bit/total", number(kEccCorrectedNow)},
    Element{"volatile/double_bit/total", number(kEccUncorrectedNow)},
    Element{"aggregate/single_bit/total", number(kEccCorrectedEver)},
    Element{"aggregate/double_bit/total", number(kEccUncorrectedEver)},
};
struct Reason {
  std::string_view name;  // behind "clocks_event_reason_" or "clocks_throttle_reason_"
  NvidiaMetric metric;
};
constexpr std::array kReasons{Reason{"gpu_idle", kEventIdle},
                              Reason{"applications_clocks_setting", kEventApplicationClocks},
                              Reason{"sw_power_cap", kEventPowerCap},
                              Reason{"hw_slowdown", kEventHwSlowdown},
                              Reason{"sync_boost", kEventSyncBoost},
                              Reason{"sw_thermal_slowdown", kEventThermalSw},
                              Reason{"hw_thermal_slowdown", kEventThermalHw},
                              Reason{"hw_power_brake_slowdown", kEventPowerBrake},
                              Reason{"display_clocks_setting", kEventDisplayClocks}};
struct Fact {
  std::string_view path;
  std::string_view name;
};
constexpr std::array kFacts{Fact{"product_name", "name"}, Fact{"uuid", "uuid"}, Fact{"serial", "serial"},
                            Fact{"vbios_version", "vbios_version"}, Fact{"pci/pci_bus_id", "pci"}};

// "Fri Aug  4 11:44:30 2023"
std::optional<std::int64_t> read_ctime(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  (void)next_word(text);
  const std::size_t month = kMonths.find(next_word(text));
  const auto day = parse_u64(next_word(text));
  const std::string_view clock = next_word(text);
  const auto year = parse_u64(next_word(text));
  const auto fields = split(clock, ':');
  if (month == std::string_view::npos || month % 3 != 0 || !day || !year || *year > 9999 || fields.size() != 3) {
    return std::nullopt;
  }
  std::array<unsigned, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto part = parse_u64(fields[i]);
    if (!part || *part > 60) return std::nullopt;
    parts[i] = static_cast<unsigned>(*part);
  }
  return unix_ns_of(static_cast<int>(*year), static_cast<unsigned>(month / 3 + 1),
                    static_cast<unsigned>(std::min<std::uint64_t>(*day, 99)), parts[0], parts[1], parts[2], 0);
}

class NvidiaSmiXmlImporter final : public StreamImporter {
 public:
  explicit NvidiaSmiXmlImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    for (const char c : as_text(chunk_untrusted)) {
      step(c);
      ++bytes_;
    }
    return {};
  }
  Result<ImportStats> finish() override {
    if (!path_.empty()) out_.count_loss("ingest.events_dropped", 1, offset_);  // cut off inside a reading
    return ImportStats{.bytes = bytes_, .events = readings_};
  }

 private:
  struct Process {
    std::string pid;
    std::string name;
    std::string memory;
  };

  // A pull of elements as nvidia-smi writes them: no CDATA, no '<' in a text; entities only in program names.
  void step(char c) {
    if (c == '<') {
      is_in_tag_ = true;
      tag_.clear();
      tag_offset_ = static_cast<std::int64_t>(bytes_);
    } else if (c == '>' && is_in_tag_) {
      is_in_tag_ = false;
      take_tag();
      text_.clear();
    } else {
      std::string& target = is_in_tag_ ? tag_ : text_;
      if (target.size() < kTextMax) target += c;
    }
  }

  void take_tag() {
    if (tag_.empty() || tag_[0] == '?' || tag_[0] == '!') return;
    if (tag_[0] == '/') return close(std::string_view(tag_).substr(1));
    const bool is_empty = tag_.ends_with('/');
    std::string_view tag = tag_;
    if (is_empty) tag.remove_suffix(1);
    const std::string_view name = next_word(tag);
    if (name == "nvidia_smi_log") {
      if (!path_.empty()) out_.count_loss("ingest.events_dropped", 1, offset_);  // the reading before was cut off
      path_.clear();
      offset_ = tag_offset_;
      readings_gpus_ = 0;
      has_own_time_ = false;
    } else if (path_.empty() || path_.size() == kDepthMax) {
      return;
    }
    if (is_empty) return;
    path_.emplace_back(name);
    if (name == "gpu" && path_.size() == 2) begin_gpu(tag);
    if (name == "mig_device") label_ = format("{}/mig?", gpu_);
    if (name == "process_info") process_ = {};
  }

  void close(std::string_view name) {
    if (path_.empty() || path_.back() != name) return;
    take_element(trim(text_));
    path_.pop_back();
    if (name == "mig_device") label_ = gpu_;
    if (name == "process_info") give_process();
    if (name == "nvidia_smi_log") path_.clear();
  }

  void begin_gpu(std::string_view attributes) {
    if (readings_gpus_++ == 0) begin_reading();
    // <gpu id="00000000:01:00.0">: numbered in the order in which they come, which is nvidia-smi's.
    const std::string key(trim(attributes));
    const auto found = gpus_.find(key);
    if (found != gpus_.end()) {
      gpu_ = found->second;
    } else if (gpus_.size() < kGpusMax) {
      gpu_ = format("gpu{}", gpus_.size());
      gpus_.emplace(key, gpu_);
    }
    label_ = gpu_;
    given_.clear();
  }
  void begin_reading() {
    if (!has_own_time_ && readings_ > 0) t_ns_ += kNsPerS;
    if (readings_++ > 0) return;
    out_.clock({.offset_ns = 0, .uncertainty_ns = has_time_ ? kZoneUncertaintyNs : -1, .is_absolute = has_time_});
    out_.attribute("import.time", has_time_ ? "nvidia-smi prints local time without its zone: taken for UTC"
                                            : "the file says no time: one second per reading is assumed");
  }

  std::string path_below(std::size_t depth) const {
    std::string path;
    for (std::size_t i = depth; i < path_.size(); ++i) path += (path.empty() ? "" : "/") + path_[i];
    return path;
  }

  void take_element(std::string_view text) {
    if (path_.size() == 2) return take_head(path_[1], text);
    if (path_.size() < 3 || path_[1] != "gpu" || gpu_.empty()) return;
    const bool is_of_mig = path_[2] == "mig_devices";
    if (is_of_mig && path_.size() < 5) return;
    const std::string path = path_below(is_of_mig ? 4 : 2);
    if (is_of_mig && path == "index") {
      label_ = format("{}/mig{}", gpu_, parse_u64(text).value_or(0));
      return;
    }
    if (path == "processes/process_info/pid") process_.pid = text;
    if (path == "processes/process_info/process_name") process_.name = text;
    if (path == "processes/process_info/used_memory") process_.memory = text;
    for (const Fact& fact : kFacts) {
      if (!is_of_mig && path == fact.path && !nvidia_missing(text)) {
        out_.attribute(gpu_ + "." + std::string(fact.name), strip_control(text));
      }
    }
    if (const NvidiaField* const field = field_of(path)) give(*field, text);
  }

  void take_head(std::string_view name, std::string_view text) {
    if (name == "timestamp") {
      const auto time = read_ctime(text);
      if (!time) return out_.count_loss("ingest.times_invalid", 1, tag_offset_);
      has_time_ = true;
      has_own_time_ = true;
      t_ns_ = *time;
    } else if (name == "driver_version") {
      out_.attribute("gpu.driver", strip_control(text));
    } else if (name == "cuda_version") {
      out_.attribute("gpu.cuda", strip_control(text));
    } else if (name == "attached_gpus") {
      out_.attribute("gpu.count", strip_control(text));
    }
  }

  const NvidiaField* field_of(std::string_view path) {
    // Newer drivers tell the GPU's power from the module's.
    if (path.starts_with("gpu_power_readings/")) path.remove_prefix(sizeof("gpu_") - 1);
    for (const Element& element : kElements) {
      const bool is_it = path == element.path || (path.size() > element.path.size() && path.ends_with(element.path) &&
                                                  path[path.size() - element.path.size() - 1] == '/');
      if (is_it) return &element.field;
    }
    for (const std::string_view prefix :
         {"clocks_event_reasons/clocks_event_reason_", "clocks_throttle_reasons/clocks_throttle_reason_"}) {
      if (!path.starts_with(prefix)) continue;
      const auto* const reason = std::ranges::find(kReasons, path.substr(prefix.size()), &Reason::name);
      if (reason == kReasons.end()) return nullptr;
      reason_ = word(reason->metric, NvidiaText::kSwitch);
      return &reason_;
    }
    return nullptr;
  }

  void give(const NvidiaField& field, std::string_view text) {
    // Two names of one metric: the first that has a value counts.
    const std::string key = format("{} {}", static_cast<int>(field.metric), label_);
    const auto found = std::ranges::find(given_, key);
    if (found != given_.end()) return;
    std::string plain(text);
    if (field.metric == kPcieWidth || field.metric == kPcieWidthMax) {
      if (plain.ends_with('x')) plain.pop_back();  // "16x"
    }
    const auto value = read_nvidia_value(field, plain, {});
    if (!value) out_.count_loss("ingest.values_unreadable", 1, tag_offset_);
    given_.push_back(key);
    out_.sample(out_.series(kNvidiaMetrics[field.metric], label_), t_ns_,
                value.value_or(Value::missing(MissingReason::kReadFailed)));
  }

  void give_process() {
    const auto pid = parse_u64(process_.pid);
    if (!pid || gpu_.empty()) return;
    constexpr NvidiaField kField{"", "", kProcessMemory, "MiB"};
    const std::size_t slash = process_.name.find_last_of("/\\");
    const std::string name = slash == std::string::npos ? process_.name : process_.name.substr(slash + 1);
    const auto value = read_nvidia_value(kField, process_.memory, {});
    out_.sample(out_.series(kNvidiaMetrics[kProcessMemory],
                            format("{}/{} ({})", gpu_, strip_control(name).substr(0, 64), *pid)),
                t_ns_, value.value_or(Value::missing(MissingReason::kReadFailed)));
  }

  ImportSink& out_;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> path_;  // open elements
  std::string tag_;
  std::string text_;
  std::int64_t tag_offset_ = 0;
  std::int64_t offset_ = 0;  // of the reading
  std::map<std::string, std::string> gpus_;
  std::string gpu_;                 // "gpu0"; empty: none, or one too many
  std::string label_;               // the same or one of its MIG instances
  std::vector<std::string> given_;  // metrics of this GPU in this reading
  NvidiaField reason_{};
  Process process_;
  std::int64_t t_ns_ = 0;
  std::uint64_t readings_ = 0;
  std::uint64_t readings_gpus_ = 0;
  bool has_time_ = false;
  bool has_own_time_ = false;  // this reading
  bool is_in_tag_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  return as_text(head_untrusted).find("<nvidia_smi_log") != std::string_view::npos;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<NvidiaSmiXmlImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_nvidia_smi_xml{.name = "nvidia_smi_xml",
                                                            .summary = "nvidia-smi -q -x, one or many readings.",
                                                            .extensions = ".xml",
                                                            .priority = 180,
                                                            .sniff = sniff,
                                                            .open_stream = open_stream};

}  // namespace hotlap
