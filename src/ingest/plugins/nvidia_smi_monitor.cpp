// nvidia-smi dmon and pmon: tables that scroll, with two lines of titles (names, units) again and again. Times are
// there only with `-o DT`; without, a reading a second is assumed, which is what both do by themselves.
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
#include "ingest/lines.h"
#include "ingest/nvidia_fields.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = 4096;
constexpr std::size_t kColumnsMax = 64;
constexpr std::size_t kProcessesMax = 4096;
constexpr std::uint64_t kGpuIndexMax = 9999;
constexpr std::int64_t kDayNs = 86'400 * kNsPerS;

// Columns of dmon that are metrics of the collector `nvidia`.
constexpr std::array kFields{
    NvidiaField{"pwr", "", kPower, "W"},
    NvidiaField{"gtemp", "temp", kTemperature, "C"},
    NvidiaField{"mtemp", "", kTemperatureMemory, "C"},
    NvidiaField{"sm", "", kBusy, "%"},
    NvidiaField{"mem", "", kMemoryController, "%"},
    NvidiaField{"enc", "", kEncoder, "%"},
    NvidiaField{"dec", "", kDecoder, "%"},
    NvidiaField{"mclk", "", kClockMemory, "MHz"},
    NvidiaField{"pclk", "", kClockSm, "MHz"},
    NvidiaField{"fb", "", kMemoryUsed, "MB"},
    NvidiaField{"bar1", "", kBar1Used, "MB"},
    NvidiaField{"sbecc", "", kEccCorrectedEver, ""},
    NvidiaField{"dbecc", "", kEccUncorrectedEver, ""},
    NvidiaField{"pci", "", kPcieReplays, ""},
    NvidiaField{"rxpci", "", kPcieReceiveRate, "MB/s"},
    NvidiaField{"txpci", "", kPcieSendRate, "MB/s"},
};
constexpr NvidiaField kProcessMemoryField{"fb", "", kProcessMemory, "MB"};

enum class ColumnKind : std::uint8_t { kDate, kTimeOfDay, kGpu, kProcess, kCommand, kMetric, kOther, kUnused };

struct Column {
  ColumnKind kind = ColumnKind::kOther;
  std::string name;
  std::string unit;
  const NvidiaField* field = nullptr;
};

std::vector<std::string> words_of(std::string_view line) {
  std::string plain(line);
  std::ranges::replace(plain, ',', ' ');  // --format csv
  std::string_view rest = trim(plain);
  std::vector<std::string> words;
  for (std::string_view word = next_word(rest); !word.empty() && words.size() <= kColumnsMax; word = next_word(rest)) {
    words.emplace_back(word);
  }
  return words;
}

// "# gpu    pwr  gtemp …"; empty when the line is no such title.
std::vector<Column> read_titles(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return {};
  std::vector<Column> columns;
  bool has_gpu = false;
  bool has_figure = false;
  const std::vector<std::string> names = words_of(line.substr(1));
  if (names.size() > kColumnsMax) return {};
  const bool is_of_processes = std::ranges::find(names, "pid") != names.end();
  for (const std::string& name : names) {
    Column column{.kind = ColumnKind::kOther, .name = name, .unit = {}, .field = nullptr};
    const auto* const known = std::ranges::find_if(
        kFields, [&](const NvidiaField& field) { return field.name == name || field.other_name == name; });
    if (name == "Date") column.kind = ColumnKind::kDate;
    if (name == "Time") column.kind = ColumnKind::kTimeOfDay;
    if (name == "gpu") column.kind = ColumnKind::kGpu;
    if (name == "pid") column.kind = ColumnKind::kProcess;
    if (name == "command") column.kind = ColumnKind::kCommand;
    if (name == "type") column.kind = ColumnKind::kUnused;
    if (known != kFields.end()) {
      has_figure = true;
      if (!is_of_processes) {
        column.kind = ColumnKind::kMetric;
        column.field = &*known;
      } else if (name == "fb") {
        column.kind = ColumnKind::kMetric;
        column.field = &kProcessMemoryField;
      }
    }
    has_gpu |= column.kind == ColumnKind::kGpu;
    columns.push_back(std::move(column));
  }
  return has_gpu && has_figure ? columns : std::vector<Column>{};
}

class NvidiaSmiMonitorImporter final : public StreamImporter {
 public:
  explicit NvidiaSmiMonitorImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    return ImportStats{.bytes = lines_.bytes(), .events = rows_};
  }

 private:
  void take(const TextLine& line) {
    const std::string_view text = trim(line.text);
    if (text.empty()) return;
    if (auto titles = read_titles(text); !titles.empty()) {
      begin(std::move(titles));
    } else if (text.starts_with('#')) {
      take_units(text);
    } else if (line.is_too_long || !line.has_end || columns_.empty() || !take_row(text)) {
      // A row without its end may lack figures, or the last digits of one.
      out_.count_loss("ingest.events_dropped", 1, line.offset);
    }
  }

  void begin(std::vector<Column> titles) {
    columns_ = std::move(titles);
    gpu_ = column_of(ColumnKind::kGpu);
    date_ = column_of(ColumnKind::kDate);
    time_of_day_ = column_of(ColumnKind::kTimeOfDay);
    process_ = column_of(ColumnKind::kProcess);
    command_ = column_of(ColumnKind::kCommand);
    if (is_clock_told_) return;
    is_clock_told_ = true;
    const bool has_date = date_ < columns_.size() && time_of_day_ < columns_.size();
    out_.clock({.offset_ns = 0, .uncertainty_ns = has_date ? kZoneUncertaintyNs : -1, .is_absolute = has_date});
    out_.attribute("import.time", has_date ? "nvidia-smi prints local time without its zone: taken for UTC"
                                  : time_of_day_ < columns_.size()
                                      ? "no column 'Date' (-o DT): times count from a midnight"
                                      : "no column 'Time' (-o DT): one second per reading is assumed");
  }
  std::size_t column_of(ColumnKind kind) const {
    return static_cast<std::size_t>(std::ranges::find(columns_, kind, &Column::kind) - columns_.begin());
  }

  // "# Idx      W      C": the second line of titles.
  void take_units(std::string_view text) {
    const std::vector<std::string> units = words_of(text.substr(1));
    if (units.size() != columns_.size()) return;
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].unit = units[i];
  }

  bool take_row(std::string_view text) {
    std::vector<std::string> words = words_of(text);
    // A command may have blanks.
    while (command_ < columns_.size() && words.size() > columns_.size() && words.size() > command_ + 1) {
      words[command_] += " " + words[command_ + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(command_) + 1);
    }
    if (words.size() != columns_.size()) return false;
    const auto index = parse_u64(words[gpu_]);
    const auto t_ns = index ? time_of(words, *index) : std::nullopt;
    if (!index || *index > kGpuIndexMax || !t_ns) return false;
    std::string instance = format("gpu{}", *index);
    if (process_ < columns_.size()) {
      if (words[process_] == "-") return true;  // nothing runs on it
      const auto pid = parse_u64(words[process_]);
      const std::string command = command_ < columns_.size() ? words[command_] : "process";
      if (!pid) return false;
      instance += format("/{} ({})", strip_control(command).substr(0, 64), *pid);
      if (!processes_.contains(instance) && processes_.size() == kProcessesMax) return false;
      processes_.emplace(instance, 0);
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) give(columns_[i], words[i], instance, *t_ns);
    ++rows_;
    return true;
  }

  void give(const Column& column, const std::string& text, const std::string& instance, std::int64_t t_ns) {
    const bool is_missing = text == "-";
    if (column.kind == ColumnKind::kMetric) {
      const auto value = is_missing ? std::optional(Value::missing(MissingReason::kNotSupported))
                                    : read_nvidia_value(*column.field, text, unit_of(column));
      out_.sample(out_.series(kNvidiaMetrics[column.field->metric], instance), t_ns,
                  value.value_or(Value::missing(MissingReason::kReadFailed)));
    } else if (column.kind == ColumnKind::kOther) {
      const auto quantity = read_nvidia_quantity(text, unit_of(column));
      if (!quantity && !is_missing) return;
      const std::string name = (process_ < columns_.size() ? "nvidia_smi.process." : "nvidia_smi.") + column.name;
      const auto unit = read_nvidia_quantity("1", unit_of(column));
      const MetricDesc metric{.name = name, .unit = unit ? unit->unit : "1", .help = "As nvidia-smi printed it."};
      out_.sample(out_.series(metric, instance), t_ns,
                  quantity ? Value::of(quantity->number) : Value::missing(MissingReason::kNotSupported));
    }
  }
  static std::string_view unit_of(const Column& column) {
    return column.unit == "bool" || column.unit == "errs" ? std::string_view{} : std::string_view(column.unit);
  }

  // A GPU that comes again (with pmon: an earlier one) begins the next reading.
  std::optional<std::int64_t> time_of(const std::vector<std::string>& words, std::uint64_t gpu) {
    if (time_of_day_ < columns_.size()) {
      const std::string date = date_ < columns_.size() ? words[date_] : "19700101";
      if (date.size() != 8) return std::nullopt;
      const std::string text =
          format("{}-{}-{} {}", date.substr(0, 4), date.substr(4, 2), date.substr(6, 2), words[time_of_day_]);
      const auto time = read_civil_time(text);
      if (!time) return std::nullopt;
      std::int64_t t_ns = time->unix_ns + days_ns_;
      if (date_ >= columns_.size() && t_ns < last_ns_ - kDayNs / 2) {  // midnight
        days_ns_ += kDayNs;
        t_ns += kDayNs;
      }
      last_ns_ = t_ns;
      return t_ns;
    }
    const bool is_next = process_ < columns_.size() ? gpu < last_gpu_ || (gpu == last_gpu_ && begins_again(words, gpu))
                                                    : gpu <= last_gpu_;
    if (rows_seen_++ > 0 && is_next) {
      ++tick_;
      in_tick_.clear();
    }
    last_gpu_ = gpu;
    if (process_ < columns_.size()) in_tick_[words[process_]] = gpu;
    return tick_ * kNsPerS;
  }
  bool begins_again(const std::vector<std::string>& words, std::uint64_t gpu) const {
    const auto found = in_tick_.find(words[process_]);
    return found != in_tick_.end() && found->second == gpu;
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  std::vector<Column> columns_;
  std::size_t gpu_ = 0;
  std::size_t date_ = 0;
  std::size_t time_of_day_ = 0;
  std::size_t process_ = 0;
  std::size_t command_ = 0;
  std::map<std::string, int> processes_;
  std::map<std::string, std::uint64_t> in_tick_;  // processes of this reading, with their GPU
  std::uint64_t last_gpu_ = 0;
  std::uint64_t rows_seen_ = 0;
  std::uint64_t rows_ = 0;
  std::int64_t tick_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t days_ns_ = 0;
  bool is_clock_told_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  return has_line(sniffed_text(head_untrusted), 8, [](std::string_view line) { return !read_titles(line).empty(); });
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<NvidiaSmiMonitorImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_nvidia_smi_monitor{.name = "nvidia_smi_monitor",
                                                                .summary = "nvidia-smi dmon and pmon, best with -o DT.",
                                                                .extensions = ".txt .log",
                                                                .priority = 190,
                                                                .sniff = sniff,
                                                                .open_stream = open_stream};

}  // namespace hotlap
