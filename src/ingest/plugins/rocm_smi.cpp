// rocm-smi --json: one object a reading, a member for each card. It says no time: of several readings one after the
// other, a second each is assumed.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/clock.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/json_objects.h"
#include "ingest/nvidia_fields.h"
#include "model/gpu_metrics.h"

namespace hotlap {
namespace {

constexpr std::size_t kObjectBytesMax = std::size_t{4} << 20;
constexpr std::uint64_t kCardMax = 4096;
constexpr std::size_t kTextMax = 256;

constexpr MetricDesc kHostMemory{
    .name = "gpu.memory.host_used.bytes", .unit = "By", .help = "Memory of the host that the GPU has mapped (GTT)."};
constexpr MetricDesc kJunction{.name = "gpu.temperature.junction.celsius",
                               .unit = "Cel",
                               .help = "Temperature of the GPU's hottest spot.",
                               .scale = 1e-3};

// Titles as the versions have them; of those of one metric the first that is there counts.
struct Title {
  std::string_view text;
  const MetricDesc* metric;
  double factor = 1;  // to the metric's unit
};
constexpr std::array kTitles{
    Title{"GPU use (%)", &kGpuBusy},
    Title{"GPU memory use (%)", &kGpuMemoryController},
    Title{"GPU Memory Read/Write Activity (%)", &kGpuMemoryController},
    Title{"VRAM Total Used Memory (B)", &kGpuMemoryUsed},
    Title{"VRAM Total Memory (B)", &kGpuMemoryTotal},
    Title{"GTT Total Used Memory (B)", &kHostMemory},
    Title{"Average Graphics Package Power (W)", &kGpuPower},
    Title{"Current Socket Graphics Package Power (W)", &kGpuPower},
    Title{"Max Graphics Package Power (W)", &kGpuPowerLimit},
    Title{"Accumulated Energy (uJ)", &kGpuEnergy, 1e-6},
    Title{"Temperature (Sensor edge) (C)", &kGpuTemperature},
    Title{"Temperature (Sensor junction) (C)", &kJunction},
    Title{"Temperature (Sensor memory) (C)", &kGpuTemperatureMemory},
    Title{"Fan speed (%)", &kGpuFan},
    Title{"Fan Speed (%)", &kGpuFan},
    Title{"sclk clock speed:", &kGpuClockSm},
    Title{"mclk clock speed:", &kGpuClockMemory},
    Title{"PCIe Replay Count", &kGpuPcieReplays},
};
struct Fact {
  std::string_view title;
  std::string_view name;
};
constexpr std::array kFacts{Fact{"Card series", "name"},    Fact{"Card Series", "name"},
                            Fact{"Device Name", "name"},    Fact{"Unique ID", "uuid"},
                            Fact{"PCI Bus", "pci"},         Fact{"Serial Number", "serial"},
                            Fact{"VBIOS version", "vbios"}, Fact{"GFX Version", "gfx"}};

// The first number of "(500Mhz)", "53.0", "13"; nothing when there is none.
std::optional<double> first_number(std::string_view text) {
  const std::size_t begin = text.find_first_of("-0123456789");
  if (begin == std::string_view::npos || (begin > 0 && text.substr(0, begin) != "(")) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

// "card0" → 0.
std::optional<std::uint64_t> card_of(std::string_view key) {
  if (!key.starts_with("card")) return std::nullopt;
  const auto index = parse_u64(key.substr(4));
  return index && *index <= kCardMax ? index : std::nullopt;
}

class RocmSmiImporter final : public StreamImporter {
 public:
  explicit RocmSmiImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    objects_.push(chunk_untrusted, [&](const JsonObjectText& object) { take(object); });
    return {};
  }
  Result<ImportStats> finish() override {
    objects_.finish([&](const JsonObjectText& object) { take(object); });
    return ImportStats{.bytes = objects_.bytes(), .events = readings_};
  }

 private:
  void take(const JsonObjectText& object) {
    auto document = object.is_whole ? JsonDocument::parse(object.text) : Error{ErrorCode::kCorrupt, {}};
    if (!document.ok() || !take_reading(document->root(), object.offset)) {
      out_.count_loss("ingest.events_dropped", 1, object.offset);
    }
  }

  bool take_reading(const JsonValue& reading, std::int64_t offset) {
    bool has_card = false;
    for (const std::string& key : reading.keys()) {
      const auto card = card_of(key);
      if (card) {
        if (!has_card && readings_++ == 0) begin();
        has_card = true;
        take_card(reading[key], format("amd{}", *card), offset);
      } else if (key == "system") {
        if (const auto driver = reading[key]["Driver version"].text()) out_.attribute("gpu.driver", shown(*driver));
      }
    }
    return has_card;
  }
  void begin() {
    out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = false});
    out_.attribute("import.time", "rocm-smi says no times: one second per reading is assumed");
  }

  void take_card(const JsonValue& card, const std::string& label, std::int64_t offset) {
    const std::int64_t t_ns = static_cast<std::int64_t>(readings_ - 1) * kNsPerS;
    const MetricDesc* last = nullptr;
    for (const Title& title : kTitles) {
      const JsonValue value = card[title.text];
      if (!value.exists() || title.metric == last) continue;
      last = title.metric;
      give(*title.metric, label, t_ns, text_of(value), title.factor, offset);
    }
    if (const auto link = card["pcie clock level"].text()) give_link(*link, label, t_ns);
    for (const Fact& fact : kFacts) {
      const std::string text = text_of(card[fact.title]);
      if (!text.empty() && !nvidia_missing(text)) out_.attribute(label + "." + std::string(fact.name), shown(text));
    }
  }

  void give(const MetricDesc& metric, const std::string& label, std::int64_t t_ns, const std::string& text,
            double factor, std::int64_t offset) {
    const auto number = first_number(text);
    auto value = number ? stored_value(metric, *number * factor) : std::nullopt;
    if (!value) {
      const auto reason = nvidia_missing(text);
      if (!reason) out_.count_loss("ingest.values_unreadable", 1, offset);
      value = Value::missing(reason.value_or(MissingReason::kReadFailed));
    }
    out_.sample(out_.series(metric, label), t_ns, *value);
  }

  // "1 (16.0GT/s x16)"
  void give_link(const std::string& text, const std::string& label, std::int64_t t_ns) {
    constexpr std::array kSpeeds{2.5, 5.0, 8.0, 16.0, 32.0, 64.0};  // of generations 1 … 6
    const std::size_t open = text.find('(');
    const std::size_t lanes = text.find(" x");
    if (open == std::string::npos || lanes == std::string::npos) return;
    const auto speed = first_number(std::string_view(text).substr(open));
    const auto width = first_number(std::string_view(text).substr(lanes + 2));
    const auto* const generation = speed ? std::ranges::find(kSpeeds, *speed) : kSpeeds.end();
    if (generation != kSpeeds.end()) {
      out_.sample(out_.series(kGpuPcieGeneration, label), t_ns,
                  Value::of(static_cast<std::uint64_t>(generation - kSpeeds.begin() + 1)));
    }
    if (width && *width > 0 && *width <= 64) {
      out_.sample(out_.series(kGpuPcieWidth, label), t_ns, Value::of(static_cast<std::uint64_t>(*width)));
    }
  }

  static std::string text_of(const JsonValue& value) {
    if (auto text = value.text()) return std::move(*text);
    if (const auto whole = value.integer()) return format("{}", *whole);
    if (const auto number = value.number()) return format("{}", *number);
    return {};
  }
  static std::string shown(std::string_view text) { return strip_control(text.substr(0, kTextMax)); }

  ImportSink& out_;
  JsonObjectCutter objects_{kObjectBytesMax};
  std::uint64_t readings_ = 0;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string_view head = trim(as_text(head_untrusted));
  if (!head.starts_with('{')) return false;
  const std::string_view inner = trim(head.substr(1));
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  const bool is_named = inner.starts_with("\"card") || inner.starts_with("\"system\"");
  return is_named && has("\"card") &&
         (has("(Sensor ") || has("GPU use (%)") || has("VRAM Total") || has("clock speed:") ||
          has("\"VBIOS version\"") || has("Graphics Package Power"));
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<RocmSmiImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_rocm_smi{.name = "rocm_smi",
                                                      .summary = "rocm-smi --json, one or many readings.",
                                                      .extensions = ".json",
                                                      .priority = 340,
                                                      .sniff = sniff,
                                                      .open_stream = open_stream};

}  // namespace hotlap
