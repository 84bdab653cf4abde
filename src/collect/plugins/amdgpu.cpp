// AMD GPUs from what the kernel's amdgpu driver shows in /sys/class/drm. A GPU that sleeps is not woken up for it.
// Reading asks the card's firmware, which takes long when it is ill: a lane of its own.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "collect/collector.h"
#include "collect/instances.h"
#include "collect/sample.h"
#include "collect/scan.h"
#include "model/gpu_metrics.h"

namespace hotlap {
namespace {

constexpr std::string_view kDrm = "/sys/class/drm";
constexpr std::string_view kVendor = "0x1002";
constexpr std::size_t kGpusMax = 64;
constexpr std::int64_t kLookPeriodNs = 10 * kNsPerS;  // for cards that come and go

enum Metric : std::uint16_t {
  kBusy,
  kMemoryController,
  kMemoryUsed,
  kMemoryTotal,
  kHostMemoryUsed,
  kPower,
  kPowerLimit,
  kEnergy,
  kTemperature,
  kTemperatureJunction,
  kTemperatureMemory,
  kFan,
  kClockSm,
  kClockMemory,
  kPcieGeneration,
  kPcieGenerationMax,
  kPcieWidth,
  kPcieWidthMax,
  kPcieReplays,
  kEccCorrected,
  kEccUncorrected,
  kMetricCount,
};

constexpr std::array kMetrics{
    kGpuBusy,
    kGpuMemoryController,
    kGpuMemoryUsed,
    kGpuMemoryTotal,
    MetricDesc{.name = "gpu.memory.host_used.bytes",
               .unit = "By",
               .help = "Memory of the host that the GPU has mapped (GTT).",
               .min_period_ns = kGpuSlowNs},
    kGpuPower,
    kGpuPowerLimit,
    kGpuEnergy,
    kGpuTemperature,
    MetricDesc{.name = "gpu.temperature.junction.celsius",
               .unit = "Cel",
               .help = "Temperature of the GPU's hottest spot.",
               .min_period_ns = kGpuSlowNs,
               .scale = 1e-3},
    kGpuTemperatureMemory,
    kGpuFan,
    kGpuClockSm,
    kGpuClockMemory,
    kGpuPcieGeneration,
    kGpuPcieGenerationMax,
    kGpuPcieWidth,
    kGpuPcieWidthMax,
    kGpuPcieReplays,
    kGpuEccCorrected,
    kGpuEccUncorrected,
};
static_assert(kMetrics.size() == kMetricCount);

enum class Pace : std::uint8_t { kFast, kSlow, kRare };

// A file whose number × factor / divisor is the metric's stored integer; the first that is there counts.
struct Source {
  Metric metric;
  Pace pace;
  std::string_view path;  // below the device's folder; "hwmon:" is its monitor's
  std::uint64_t factor = 1;
  std::uint64_t divisor = 1;
};
constexpr std::array kSources{
    Source{kBusy, Pace::kFast, "gpu_busy_percent"},
    Source{kMemoryController, Pace::kFast, "mem_busy_percent"},
    Source{kMemoryUsed, Pace::kFast, "mem_info_vram_used"},
    Source{kMemoryTotal, Pace::kFast, "mem_info_vram_total"},
    Source{kHostMemoryUsed, Pace::kSlow, "mem_info_gtt_used"},
    Source{kPower, Pace::kFast, "hwmon:power1_average", 1, 1000},  // µW
    Source{kPower, Pace::kFast, "hwmon:power1_input", 1, 1000},
    Source{kPowerLimit, Pace::kSlow, "hwmon:power1_cap", 1, 1000},
    Source{kEnergy, Pace::kFast, "hwmon:energy1_input", 1, 1000},  // µJ
    Source{kFan, Pace::kSlow, "hwmon:pwm1", 100, 255},
    Source{kClockSm, Pace::kFast, "hwmon:freq1_input", 1, 1'000'000},  // Hz
    Source{kClockMemory, Pace::kSlow, "hwmon:freq2_input", 1, 1'000'000},
    Source{kPcieWidth, Pace::kSlow, "current_link_width"},
    Source{kPcieWidthMax, Pace::kRare, "max_link_width"},
    Source{kPcieReplays, Pace::kRare, "pcie_replay_count"},
};
// Which of temp1, temp2, temp3 is which stands in its label; before there were labels, temp1 was the edge.
struct Label {
  std::string_view text;
  Metric metric;
};
constexpr std::array kLabels{Label{"edge", kTemperature}, Label{"junction", kTemperatureJunction},
                             Label{"mem", kTemperatureMemory}};

struct Number {
  Metric metric;
  Pace pace;
  std::uint64_t factor;
  std::uint64_t divisor;
  KeptFile file;
};

struct Card {
  std::string label;
  std::string folder;  // of the PCI device
  std::vector<Number> numbers;
  std::array<SeriesHandle, kMetricCount> series{};
  std::array<bool, kMetricCount> is_registered{};
  bool is_lost = false;
  bool is_present = true;
};

// "16.0 GT/s PCIe" is generation 4.
std::optional<std::uint64_t> generation_of(std::string_view text) {
  struct Speed {
    double gigatransfers;
    std::uint64_t generation;
  };
  constexpr std::array kSpeeds{Speed{2.5, 1}, Speed{5, 2}, Speed{8, 3}, Speed{16, 4}, Speed{32, 5}, Speed{64, 6}};
  const auto found = parse_f64(next_word(text));
  if (!found) return std::nullopt;
  for (const Speed& speed : kSpeeds) {
    if (speed.gigatransfers == *found) return speed.generation;
  }
  return std::nullopt;
}

std::string monitor_of(const Host& host, const std::string& folder) {
  const Result<std::vector<std::string>> monitors = host.list(folder + "/hwmon");
  return monitors.ok() && !monitors->empty() ? format("{}/hwmon/{}", folder, monitors->front()) : std::string();
}

void open_temperatures(const Host& host, const std::string& monitor, std::vector<Number>& numbers) {
  for (int n = 1; n <= 3; ++n) {
    Result<KeptFile> file = KeptFile::open(host, format("{}/temp{}_input", monitor, n));
    if (!file.ok()) continue;
    const Result<std::string> text = host.read_text(format("{}/temp{}_label", monitor, n), 64);
    const std::string_view label = text.ok() ? trim(*text) : n == 1 ? "edge" : "";
    const auto* const known =
        std::find_if(kLabels.begin(), kLabels.end(), [&](const Label& l) { return l.text == label; });
    if (known != kLabels.end()) numbers.push_back({known->metric, Pace::kSlow, 1, 1, std::move(file).value()});
  }
}

Card open_card(const Host& host, std::string label, std::string folder) {
  Card card{.label = std::move(label), .folder = std::move(folder), .numbers = {}};
  const std::string monitor = monitor_of(host, card.folder);
  for (const Source& source : kSources) {
    if (!card.numbers.empty() && card.numbers.back().metric == source.metric) continue;
    std::string_view path = source.path;
    const bool is_monitor = path.starts_with("hwmon:");
    if (is_monitor && monitor.empty()) continue;
    if (is_monitor) path.remove_prefix(std::string_view("hwmon:").size());
    Result<KeptFile> file = KeptFile::open(host, format("{}/{}", is_monitor ? monitor : card.folder, path));
    if (file.ok()) {
      card.numbers.push_back({source.metric, source.pace, source.factor, source.divisor, std::move(file).value()});
    }
  }
  if (!monitor.empty()) open_temperatures(host, monitor, card.numbers);
  return card;
}

// Folders of the PCI devices of AMD's cards, by card number.
std::vector<std::string> find_cards(const Host& host) {
  std::vector<std::string> folders;
  const Result<std::vector<std::string>> names = host.list(kDrm);
  if (!names.ok()) return folders;
  std::vector<std::pair<std::uint64_t, std::string>> found;
  for (const std::string& name : *names) {
    if (!name.starts_with("card")) continue;
    const auto number = parse_u64(std::string_view(name).substr(4));  // not "card0-DP-1"
    if (!number) continue;
    std::string folder = format("{}/{}/device", kDrm, name);
    const Result<std::string> vendor = host.read_text(folder + "/vendor", 64);
    if (vendor.ok() && trim(*vendor) == kVendor) found.emplace_back(*number, std::move(folder));
  }
  std::sort(found.begin(), found.end());
  for (auto& [number, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

class AmdgpuCollector final : public Collector {
 public:
  AmdgpuCollector(const Host& host, std::vector<std::string> folders) : host_(host) { add(folders); }

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (look_due_.at(tick.t_ns)) look(out);
    const bool is_slow = slow_due_.at(tick.t_ns);
    const bool is_rare = rare_due_.at(tick.t_ns);
    for (Card& card : cards_) {
      if (card.is_present) sample_card(card, is_slow, is_rare, out);
    }
    return Outcome::kSampled;
  }

 private:
  void add(const std::vector<std::string>& folders) {
    for (const std::string& folder : folders) {
      const auto known = std::find_if(cards_.begin(), cards_.end(), [&](const Card& c) { return c.folder == folder; });
      if (known == cards_.end() && cards_.size() < kGpusMax) {
        cards_.push_back(open_card(host_, format("amd{}", cards_.size()), folder));
      } else if (known != cards_.end() && !known->is_present) {
        Card again = open_card(host_, known->label, folder);
        known->numbers = std::move(again.numbers);
        known->is_present = true;
      }
    }
  }

  void look(SampleSink& out) {
    const std::vector<std::string> folders = find_cards(host_);
    add(folders);
    for (; greeted_ < cards_.size(); ++greeted_) greet(cards_[greeted_], out);
    for (Card& card : cards_) {
      const bool is_there = std::find(folders.begin(), folders.end(), card.folder) != folders.end();
      if (is_there && card.is_lost) {
        card.is_lost = false;
        out.event(EventKind::kGpuBack, 0, card.label);
      } else if (!is_there) {
        lose(card, out);
      }
    }
  }

  void greet(const Card& card, SampleSink& out) const {
    const auto line = [&](std::string_view file) {
      const Result<std::string> text = host_.read_text(format("{}/{}", card.folder, file), 256);
      return text.ok() ? strip_control(trim(*text)) : std::string();
    };
    std::string name = line("product_name");
    if (name.empty()) name = format("AMD GPU {}", line("device"));
    const std::string id = line("unique_id");
    out.event(EventKind::kGpuFound, 0, format("{}: {}{}{}", card.label, name, id.empty() ? "" : ", ", id));
    out.attribute(card.label + ".name", name);
    if (!id.empty()) out.attribute(card.label + ".uuid", id);
  }

  void lose(Card& card, SampleSink& out) const {
    if (card.is_lost) return;
    card.is_lost = true;
    card.is_present = false;
    out.event(EventKind::kGpuLost, 0, format("{}: its device is gone", card.label));
    for (std::size_t m = 0; m < kMetricCount; ++m) {
      if (card.is_registered[m]) out.add(card.series[m], Value::missing(MissingReason::kSourceLost));
    }
  }

  static void put(Card& card, Metric metric, Value value, SampleSink& out) {
    if (!card.is_registered[metric]) {
      card.series[metric] = out.series(metric, card.label);
      card.is_registered[metric] = true;
    }
    out.add(card.series[metric], value);
  }

  void sample_card(Card& card, bool is_slow, bool is_rare, SampleSink& out) {
    // A read would wake it up and keep it awake.
    const Result<std::string> power = host_.read_text(card.folder + "/power/runtime_status", 64);
    const bool is_asleep = power.ok() && trim(*power) == "suspended";
    for (Number& number : card.numbers) {
      const bool is_due = number.pace == Pace::kFast || (number.pace == Pace::kSlow ? is_slow : is_rare);
      if (is_due) put(card, number.metric, is_asleep ? Value::missing(MissingReason::kNotSampled) : read(number), out);
    }
    if (is_slow) put(card, kPcieGeneration, read_generation(card, "current_link_speed"), out);
    if (!is_rare) return;
    put(card, kPcieGenerationMax, read_generation(card, "max_link_speed"), out);
    sample_ecc(card, out);
  }

  static Value read(Number& number) {
    const Result<std::string_view> text = number.file.read_record();
    if (!text.ok()) return Value::missing(missing_reason(text.error()));
    std::uint64_t found = 0;
    if (!TextCursor(*text).number(found) || found > UINT64_MAX / number.factor) {
      return Value::missing(MissingReason::kReadFailed);
    }
    return Value::of(found * number.factor / number.divisor);
  }

  Value read_generation(const Card& card, std::string_view file) const {
    const Result<std::string> text = host_.read_text(format("{}/{}", card.folder, file), 64);
    if (!text.ok())
      return Value::missing(text.error().code == ErrorCode::kNotFound ? MissingReason::kNotSupported
                                                                      : missing_reason(text.error()));
    return value_or_missing(generation_of(trim(*text)));
  }

  // "ue: 0\nce: 3\n", of the memory.
  void sample_ecc(Card& card, SampleSink& out) const {
    const Result<std::string> text = host_.read_text(card.folder + "/ras/umc_err_count", 256);
    std::optional<std::uint64_t> corrected;
    std::optional<std::uint64_t> uncorrected;
    std::string_view rest = text.ok() ? std::string_view(*text) : std::string_view();
    std::string_view line;
    while (next_line(rest, line)) {
      const std::string_view key = next_word(line);
      if (key == "ue:") uncorrected = parse_u64(trim(line));
      if (key == "ce:") corrected = parse_u64(trim(line));
    }
    put(card, kEccCorrected, value_or_missing(corrected), out);
    put(card, kEccUncorrected, value_or_missing(uncorrected), out);
  }

  const Host& host_;
  std::vector<Card> cards_;
  std::size_t greeted_ = 0;
  Due look_due_{kLookPeriodNs};
  Due slow_due_{kGpuSlowNs};
  Due rare_due_{kGpuRareNs};
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  std::vector<std::string> folders = find_cards(host);
  if (folders.empty()) return Error{ErrorCode::kUnsupported, "no AMD GPU here"};
  return std::unique_ptr<Collector>(std::make_unique<AmdgpuCollector>(host, std::move(folders)));
}

}  // namespace

extern constinit const CollectorSpec collector_amdgpu{
    .name = "amdgpu",
    .summary = "AMD GPUs: use, memory, power, temperatures, clocks, PCIe, memory errors.",
    .metrics = kMetrics,
    .min_period_ns = kGpuFastNs,
    .lane = Lane::kMayBlock,
    .open = open};

}  // namespace hotlap
