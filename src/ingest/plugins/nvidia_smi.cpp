// nvidia-smi --query-gpu=… --format=csv (also --query-compute-apps and --query-accounted-apps), of any query and any
// driver: columns are known by their titles. The times are local and say no zone.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/civil_time.h"
#include "ingest/importer.h"
#include "ingest/lines.h"
#include "ingest/nvidia_fields.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{256} << 10;  // 250 columns of a full query have 8 KiB
constexpr std::size_t kColumnsMax = 1024;
constexpr std::size_t kGpusMax = 1024;
constexpr std::size_t kProcessesMax = 4096;
constexpr std::size_t kRowsLookedAt = 512;  // to learn how many GPUs print, where no column says which
constexpr std::size_t kLinesBeforeTitleMax = 64;
constexpr std::int64_t kGapInBurstMaxNs = 20 * kNsPerMs;
constexpr std::int64_t kDaylightSavingNs = 3600 * kNsPerS;
constexpr std::int64_t kTickWithoutTimeNs = kNsPerS;

// Columns that name things; what they say becomes an attribute, also where it looks like a number.
constexpr std::array<std::string_view, 14> kFactPrefixes{
    "name",        "serial",  "pci.",    "driver_version", "kmd",      "umd",      "vbios",
    "compute_cap", "inforom", "fabric.", "platform.",      "hostname", "display_", "accounting.buffer_size"};

enum class ColumnKind : std::uint8_t {
  kTime,
  kGpuIndex,
  kGpuUuid,
  kGpuPlace,
  kGpuCount,
  kProcess,
  kProcessName,
  kMetric,
  kFact,
  kOther,   // a number or a word, by its first value
  kUnused,  // another column gives the same metric
};

struct Column {
  ColumnKind kind = ColumnKind::kOther;
  std::string name;
  std::string unit;  // of the title
  const NvidiaField* field = nullptr;
  bool is_number = false;  // kOther: what its first value was
  bool is_learnt = false;
};

constexpr std::size_t kReasons = kEventDisplayClocks - kEventIdle + 1;  // bits of NVML's mask, in its order

struct Gpu {
  std::string label;
  std::array<SeriesHandle, kReasons> reasons;  // those that only the mask tells
  std::vector<SeriesHandle> series;            // by column
  std::vector<bool> is_told;                   // facts, by column
};

constexpr NvidiaField kProcessMemoryField{"used_gpu_memory", "used_memory", kProcessMemory, "MiB"};
constexpr NvidiaField kProcessBusyField{"gpu_utilization", "gpu_util", kProcessBusy, "%"};
constexpr NvidiaField kProcessMemoryMaxField{"max_memory_usage", "", kProcessMemoryMax, "MiB"};

// "power.draw [W]" → name and unit. False: no title of nvidia-smi looks like that.
bool read_title(std::string_view text, Column& column) {
  text = trim(text);
  if (const std::size_t bracket = text.find(" ["); bracket != std::string_view::npos && text.ends_with(']')) {
    column.unit = text.substr(bracket + 2, text.size() - bracket - 3);
    text = text.substr(0, bracket);
  }
  column.name = to_lower(text);
  if (column.name.empty() || column.name.front() < 'a' || column.name.front() > 'z') return false;
  return column.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._") == std::string::npos;
}

void classify(Column& column) {
  struct Name {
    std::string_view name;
    ColumnKind kind;
    const NvidiaField* field;
  };
  static constexpr std::array kNames{Name{"timestamp", ColumnKind::kTime, nullptr},
                                     Name{"index", ColumnKind::kGpuIndex, nullptr},
                                     Name{"uuid", ColumnKind::kGpuUuid, nullptr},
                                     Name{"gpu_uuid", ColumnKind::kGpuUuid, nullptr},
                                     Name{"pci.bus_id", ColumnKind::kGpuPlace, nullptr},
                                     Name{"gpu_bus_id", ColumnKind::kGpuPlace, nullptr},
                                     Name{"count", ColumnKind::kGpuCount, nullptr},
                                     Name{"pid", ColumnKind::kProcess, nullptr},
                                     Name{"process_name", ColumnKind::kProcessName, nullptr},
                                     Name{"used_gpu_memory", ColumnKind::kMetric, &kProcessMemoryField},
                                     Name{"used_memory", ColumnKind::kMetric, &kProcessMemoryField},
                                     Name{"gpu_utilization", ColumnKind::kMetric, &kProcessBusyField},
                                     Name{"gpu_util", ColumnKind::kMetric, &kProcessBusyField},
                                     Name{"max_memory_usage", ColumnKind::kMetric, &kProcessMemoryMaxField}};
  const auto* const found = std::ranges::find(kNames, std::string_view(column.name), &Name::name);
  if (found != kNames.end()) {
    column.kind = found->kind;
    column.field = found->field;
    return;
  }
  column.field = find_nvidia_field(column.name);
  if (column.field != nullptr) {
    column.kind = ColumnKind::kMetric;
    return;
  }
  std::string_view name = column.name;
  if (name.starts_with("gpu_")) name.remove_prefix(4);  // gpu_name, gpu_serial
  for (const std::string_view prefix : kFactPrefixes) {
    if (name.starts_with(prefix)) column.kind = ColumnKind::kFact;
  }
}

// The columns that `line` is the titles of; empty when it is none of nvidia-smi's.
std::vector<Column> read_titles(std::string_view line) {
  std::vector<Column> columns;
  std::size_t known = 0;
  const auto texts = split(trim(line), ',');
  if (texts.size() > kColumnsMax) return {};
  for (const std::string_view text : texts) {
    Column column;
    if (!read_title(text, column)) return {};
    classify(column);
    if (column.kind == ColumnKind::kMetric) ++known;
    columns.push_back(std::move(column));
  }
  if (known == 0) return {};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const NvidiaField* const a = columns[i].field;
      const NvidiaField* const b = columns[j].field;
      if (i == j || a == nullptr || b == nullptr || a->metric != b->metric) continue;
      if (a == b ? j < i : is_before(*b, *a)) columns[i].kind = ColumnKind::kUnused;
    }
  }
  return columns;
}

// A row of values without a title above it.
bool looks_like_row(std::string_view line) {
  const auto time = read_civil_time(trim(line));
  return time && trim(line).find('/') == 4 && trim(line).substr(time->length).starts_with(',');
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

class NvidiaSmiImporter final : public StreamImporter {
 public:
  explicit NvidiaSmiImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    if (refusal_) return *refusal_;
    return {};
  }

  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    if (!refusal_ && !has_titles_) refuse("there is no line of column titles");
    if (refusal_) return *refusal_;
    settle_places(true);
    if (rows_ == 0 && lines_seen_ == 0) {
      return Error{ErrorCode::kInvalidInput, "nvidia-smi CSV: titles only: there is no row below them"};
    }
    if (!is_of_processes_ && !gpus_.empty()) out_.attribute("gpu.count", format("{}", gpus_.size()));
    return ImportStats{.bytes = lines_.bytes(), .events = rows_};
  }

 private:
  struct Row {
    std::string text;
    std::vector<std::string_view> fields;
    std::optional<std::int64_t> t_ns;  // nothing: no column of times
    std::int64_t offset = 0;
  };

  void refuse(std::string_view what) {
    refusal_ = Error{ErrorCode::kInvalidInput,
                     format("nvidia-smi CSV: {}; record it without 'noheader', or put the names given to --query-gpu "
                            "above it as a first line",
                            what)};
  }
  void drop(std::int64_t offset) { out_.count_loss("ingest.events_dropped", 1, offset); }

  void take(const TextLine& line) {
    if (refusal_ || trim(line.text).empty()) return;
    if (line.is_too_long) return drop(line.offset);
    // Titles come again when the recording was started again into the same file, perhaps with another query.
    if (auto titles = read_titles(line.text); !titles.empty()) {
      settle_places(true);
      return begin(std::move(titles));
    }
    if (!has_titles_) {
      if (looks_like_row(line.text))
        return refuse("the first line is a row of values, so what the columns are is not known");
      drop(line.offset);
      if (++lines_before_ > kLinesBeforeTitleMax) refuse("there is no line of column titles");
      return;
    }
    ++lines_seen_;
    take_row(line);
  }

  void begin(std::vector<Column> titles) {
    has_titles_ = true;
    columns_ = std::move(titles);
    const auto has = [&](ColumnKind kind) { return column_of(kind) < columns_.size(); };
    for (Gpu& gpu : gpus_) {
      gpu.series.assign(columns_.size(), {});
      gpu.is_told.assign(columns_.size(), false);
    }
    has_time_ = has(ColumnKind::kTime);
    key_ = columns_.size();
    for (const ColumnKind kind : {ColumnKind::kGpuPlace, ColumnKind::kGpuUuid, ColumnKind::kGpuIndex}) {
      if (has(kind)) key_ = column_of(kind);
    }
    is_of_processes_ = has(ColumnKind::kProcess);
    for (std::size_t bit = 0; bit < kReasons; ++bit) {
      has_reason_[bit] = std::ranges::any_of(columns_, [bit](const Column& column) {
        return column.field != nullptr && column.field->metric == kEventIdle + static_cast<int>(bit);
      });
    }
    last_has_unit_ = false;
    places_ = Places{};
    places_.are_known = key_ < columns_.size() || has(ColumnKind::kGpuCount) || !has_time_;
    if (is_clock_told_) return;
    is_clock_told_ = true;
    out_.clock({.offset_ns = 0, .uncertainty_ns = has_time_ ? kZoneUncertaintyNs : -1, .is_absolute = has_time_});
    out_.attribute("import.time", has_time_ ? "nvidia-smi prints local time without its zone: taken for UTC"
                                            : "no column 'timestamp': one second per reading is assumed");
  }

  std::size_t column_of(ColumnKind kind) const {
    const auto found = std::ranges::find(columns_, kind, &Column::kind);
    return static_cast<std::size_t>(found - columns_.begin());
  }

  void take_row(const TextLine& line) {
    Row row{.text = std::string(line.text), .fields = {}, .t_ns = {}, .offset = line.offset};
    cut(row);
    if (row.fields.size() != columns_.size()) return take_message(line);
    if (has_time_) {
      const auto time = read_civil_time(row.fields[column_of(ColumnKind::kTime)]);
      if (!time) return take_message(line);
      row.t_ns = in_order(time->unix_ns);
    }
    if (!line.has_end && is_cut(row)) return drop(line.offset);
    last_has_unit_ |= has_unit(row);
    if (places_.are_known) return give(row, place_of(row));
    row.fields.clear();  // they point into a text that is about to move
    pending_.push_back(std::move(row));
    if (pending_.size() == kRowsLookedAt) settle_places(false);
  }

  void cut(Row& row) const {
    row.fields = split(row.text, ',');
    // Program names may hold commas.
    const std::size_t name = column_of(ColumnKind::kProcessName);
    while (name < columns_.size() && row.fields.size() > columns_.size()) {
      const char* const begin = row.fields[name].data();
      const std::string_view next = row.fields[name + 1];
      row.fields[name] = {begin, static_cast<std::size_t>(next.data() + next.size() - begin)};
      row.fields.erase(row.fields.begin() + static_cast<std::ptrdiff_t>(name) + 1);
    }
    for (std::string_view& field : row.fields) field = trim(field);
  }

  // What is no row: an error of the driver is an event too, for it says why readings are missing.
  void take_message(const TextLine& line) {
    drop(line.offset);
    constexpr std::array<std::string_view, 6> kMessages{"Unable to determine",   "Failed to initialize",
                                                        "NVIDIA-SMI has failed", "GPU is lost",
                                                        "No devices were found", "Unknown Error"};
    const std::string_view text = trim(line.text);
    const bool is_message = std::ranges::any_of(
        kMessages, [&](std::string_view message) { return text.find(message) != std::string_view::npos; });
    if (!is_message || text.size() > 512 || !last_t_ns_) return;
    out_.event({.t_ns = *last_t_ns_, .kind = EventKind::kNote, .text = strip_control(text)});
  }

  // The hour that a local clock is set back in autumn: time went on.
  std::int64_t in_order(std::int64_t t_ns) {
    t_ns += set_back_ns_;
    if (last_t_ns_) {
      const std::int64_t back = *last_t_ns_ - t_ns;
      if (back > kDaylightSavingNs - 60 * kNsPerS && back <= kDaylightSavingNs) {
        set_back_ns_ += kDaylightSavingNs;
        t_ns += kDaylightSavingNs;
        out_.event({.t_ns = t_ns, .kind = EventKind::kNote, .text = "the log's local time was set back by an hour"});
      }
    }
    last_t_ns_ = t_ns;
    return t_ns;
  }

  // The input ended inside this row: its last value is whole only if it has the unit that the others had.
  bool is_cut(const Row& row) const { return last_has_unit_ && !has_unit(row) && !nvidia_missing(row.fields.back()); }
  static bool has_unit(const Row& row) {
    return row.fields.back().find(' ') != std::string_view::npos && !nvidia_missing(row.fields.back());
  }

  // --- which GPU a row is of ---

  // Where no column says it: nvidia-smi prints a burst of rows at each reading, one per GPU, always in the same order.
  struct Places {
    bool are_known = false;
    std::int64_t gap_ns = INT64_MAX;  // a longer one begins a burst
    std::size_t count = 1;
    std::size_t next = 0;
    std::optional<std::int64_t> last_ns;
  };

  void settle_places(bool is_last) {
    if (!pending_.empty()) {
      learn_places();
      places_.are_known = true;
      std::vector<Row> rows;
      rows.swap(pending_);
      for (Row& row : rows) {
        cut(row);
        give(row, place_of(row));
      }
    }
    if (is_last && places_.count > 1 && key_ >= columns_.size() && !is_count_told_) {
      is_count_told_ = true;
      out_.attribute("import.gpus", format("no column says which GPU a row is of: {} rows are printed at each reading",
                                           places_.count));
    }
  }

  void learn_places() {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < pending_.size(); ++i) {
      gaps.push_back(std::max<std::int64_t>(*pending_[i].t_ns - *pending_[i - 1].t_ns, 0));
    }
    std::vector<std::int64_t> sorted = gaps;
    std::ranges::sort(sorted);
    // Two kinds of gaps, far apart: inside a burst and between bursts.
    double widest = 3.0;
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      const auto small = static_cast<double>(std::max(sorted[i - 1], kNsPerMs));
      const double ratio = static_cast<double>(sorted[i]) / small;
      if (ratio <= widest) continue;
      widest = ratio;
      places_.gap_ns = static_cast<std::int64_t>(std::sqrt(ratio) * small);
    }
    if (places_.gap_ns == INT64_MAX) {
      // One burst and no more; nobody reads a GPU so often.
      if (!sorted.empty() && sorted.back() <= kGapInBurstMaxNs) places_.count = std::min(pending_.size(), kGpusMax);
      return;
    }
    std::map<std::size_t, std::size_t> bursts;  // by length
    std::size_t length = 1;
    std::size_t complete = 0;
    for (const std::int64_t gap : gaps) {
      if (gap <= places_.gap_ns) {
        ++length;
        continue;
      }
      ++bursts[length];
      ++complete;
      length = 1;
    }
    if (complete == 0) return;
    const auto usual = std::ranges::max_element(bursts, {}, [](const auto& burst) { return burst.second; });
    if (usual->second * 10 >= complete * 9) places_.count = std::min(usual->first, kGpusMax);
  }

  Gpu* place_of(const Row& row) {
    if (key_ < columns_.size()) return gpu_by_key(row.fields[key_]);
    const std::size_t count_column = column_of(ColumnKind::kGpuCount);
    if (count_column < columns_.size()) {
      places_.count = std::clamp<std::size_t>(parse_u64(row.fields[count_column]).value_or(1), 1, kGpusMax);
    }
    const bool begins_burst = row.t_ns && places_.last_ns && *row.t_ns - *places_.last_ns > places_.gap_ns;
    places_.last_ns = row.t_ns;
    if (begins_burst || places_.next >= places_.count) places_.next = 0;
    return gpu_at(places_.next++);
  }

  Gpu* gpu_at(std::size_t place) {
    while (gpus_.size() <= place) add_gpu(format("gpu{}", gpus_.size()));
    return &gpus_[place];
  }
  Gpu* add_gpu(std::string label) {
    if (gpus_.size() == kGpusMax) return nullptr;
    Gpu& gpu = gpus_.emplace_back();
    gpu.label = std::move(label);
    gpu.series.resize(columns_.size());
    gpu.is_told.resize(columns_.size());
    return &gpu;
  }
  Gpu* gpu_by_key(std::string_view key) {
    if (const auto found = gpu_of_key_.find(key); found != gpu_of_key_.end()) return &gpus_[found->second];
    if (nvidia_missing(key) || key.size() > 128) return nullptr;
    const auto index = columns_[key_].kind == ColumnKind::kGpuIndex ? parse_u64(key) : std::nullopt;
    if (columns_[key_].kind == ColumnKind::kGpuIndex && !(index && *index < 10'000)) return nullptr;
    Gpu* const gpu = add_gpu(format("gpu{}", index.value_or(gpus_.size())));
    if (gpu != nullptr) gpu_of_key_.emplace(key, gpus_.size() - 1);
    return gpu;
  }

  // --- values ---

  void give(const Row& row, Gpu* gpu) {
    if (gpu == nullptr) return drop(row.offset);
    ++rows_;
    const std::int64_t t_ns = row.t_ns ? *row.t_ns : tick_time(*gpu);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      const std::string_view text = row.fields[i];
      switch (column.kind) {
        case ColumnKind::kMetric: give_metric(row, *gpu, i, t_ns); break;
        case ColumnKind::kOther: give_other(row, *gpu, i, t_ns); break;
        case ColumnKind::kFact:
        case ColumnKind::kGpuUuid:
        case ColumnKind::kGpuPlace: tell(*gpu, i, text); break;
        default: break;
      }
    }
  }

  // Without a column of times: a GPU that prints again begins the next reading.
  std::int64_t tick_time(const Gpu& gpu) {
    const auto index = static_cast<std::size_t>(&gpu - gpus_.data());
    if (index < in_tick_.size() && in_tick_[index]) {
      ++tick_;
      in_tick_.clear();
    }
    if (in_tick_.size() <= index) in_tick_.resize(index + 1);
    in_tick_[index] = true;
    return tick_ * kTickWithoutTimeNs;
  }

  void give_metric(const Row& row, Gpu& gpu, std::size_t i, std::int64_t t_ns) {
    const Column& column = columns_[i];
    const auto value = read_nvidia_value(*column.field, row.fields[i], column.unit);
    if (!value) out_.count_loss("ingest.values_unreadable", 1, row.offset);
    const MetricDesc& metric = kNvidiaMetrics[column.field->metric];
    SeriesHandle series;
    if (is_of_processes_) {
      series = process_series(row, gpu, metric);
      if (!series.valid()) return drop(row.offset);
    } else {
      if (!gpu.series[i].valid()) gpu.series[i] = out_.series(metric, gpu.label);
      series = gpu.series[i];
    }
    out_.sample(series, t_ns, value.value_or(Value::missing(MissingReason::kReadFailed)));
    if (column.field->metric == kEventMask && value) give_reasons(gpu, t_ns, *value);
  }

  // What the mask says of each reason that has no column of its own.
  void give_reasons(Gpu& gpu, std::int64_t t_ns, const Value& mask) {
    const auto number = mask.number();
    for (std::size_t bit = 0; bit < kReasons; ++bit) {
      if (has_reason_[bit] || (!number && !gpu.reasons[bit].valid())) continue;
      if (!gpu.reasons[bit].valid()) gpu.reasons[bit] = out_.series(kNvidiaMetrics[kEventIdle + bit], gpu.label);
      if (!number) {
        out_.sample(gpu.reasons[bit], t_ns, mask);
        continue;
      }
      const auto bits = static_cast<std::uint64_t>(*number);
      out_.sample(gpu.reasons[bit], t_ns, Value::of((bits >> bit) & std::uint64_t{1}));
    }
  }

  SeriesHandle process_series(const Row& row, const Gpu& gpu, const MetricDesc& metric) {
    const std::size_t name_column = column_of(ColumnKind::kProcessName);
    const auto pid = parse_u64(row.fields[column_of(ColumnKind::kProcess)]);
    if (!pid) return {};
    const std::string name =
        name_column < columns_.size() ? strip_control(base_name(row.fields[name_column]).substr(0, 64)) : "process";
    const std::string instance = format("{}/{} ({})", gpu.label, name, *pid);
    if (!processes_.contains(instance)) {
      if (processes_.size() == kProcessesMax) return {};
      processes_.emplace(instance, 0);
    }
    return out_.series(metric, instance);
  }

  // A column that is none of the collector's metrics keeps its own name.
  void give_other(const Row& row, Gpu& gpu, std::size_t i, std::int64_t t_ns) {
    Column& column = columns_[i];
    const auto quantity = read_nvidia_quantity(row.fields[i], column.unit);
    const auto missing = quantity ? std::nullopt : nvidia_missing(row.fields[i]);
    if (!column.is_learnt) {
      if (missing) return;  // a column that never says anything leaves no series
      column.is_learnt = true;
      column.is_number = quantity.has_value();
    }
    if (!column.is_number) {
      if (!missing) tell(gpu, i, row.fields[i]);
      return;
    }
    if (!quantity && !missing) out_.count_loss("ingest.values_unreadable", 1, row.offset);
    if (!gpu.series[i].valid()) {
      const std::string name = "nvidia_smi." + column.name;
      const auto unit = read_nvidia_quantity("1", column.unit);
      gpu.series[i] = out_.series(
          MetricDesc{.name = name, .unit = unit ? unit->unit : "1", .help = "As nvidia-smi printed it."}, gpu.label);
    }
    out_.sample(gpu.series[i], t_ns,
                quantity ? Value::of(quantity->number) : Value::missing(missing.value_or(MissingReason::kReadFailed)));
  }

  void tell(Gpu& gpu, std::size_t i, std::string_view text) {
    if (gpu.is_told[i] || nvidia_missing(text)) return;
    gpu.is_told[i] = true;
    std::string_view name = columns_[i].name;
    if (name.starts_with("gpu_")) name.remove_prefix(4);
    if (name == "driver_version") return out_.attribute("gpu.driver", strip_control(text));
    if (name == "pci.bus_id" || name == "bus_id") name = "pci";
    out_.attribute(format("{}.{}", gpu.label, name), strip_control(text.substr(0, 512)));
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  std::optional<Error> refusal_;
  std::vector<Column> columns_;
  std::size_t key_ = 0;  // the column that says which GPU; none when there is no such
  std::vector<Gpu> gpus_;
  std::map<std::string, std::size_t, std::less<>> gpu_of_key_;
  std::map<std::string, int> processes_;
  Places places_;
  std::vector<Row> pending_;
  std::optional<std::int64_t> last_t_ns_;
  std::int64_t set_back_ns_ = 0;
  std::int64_t tick_ = 0;
  std::vector<bool> in_tick_;
  std::uint64_t rows_ = 0;
  std::uint64_t lines_seen_ = 0;  // below titles, whether they can be read or not
  std::size_t lines_before_ = 0;
  std::array<bool, kReasons> has_reason_{};
  bool has_titles_ = false;
  bool has_time_ = false;
  bool is_of_processes_ = false;
  bool last_has_unit_ = false;  // the values of the last column so far
  bool is_clock_told_ = false;
  bool is_count_told_ = false;
};

// Titles of one's own beside one of nvidia-smi's make a table of one's own (table_csv).
bool are_mostly_its_own(const std::vector<Column>& titles) {
  const auto foreign = std::ranges::count_if(titles, [](const Column& column) {
    return column.kind == ColumnKind::kOther && column.unit.empty() && column.name.find('.') == std::string::npos;
  });
  return 2 * foreign <= std::ssize(titles);
}

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  std::string_view rest = text;
  std::string_view line;
  bool is_first = true;
  for (std::size_t i = 0; i < kLinesBeforeTitleMax && next_line(rest, line); ++i) {
    if (trim(line).empty()) continue;
    if (const std::vector<Column> titles = read_titles(line); !titles.empty()) return are_mostly_its_own(titles);
    // Without titles it is refused, and says so; only a first line that can be nothing else is taken for it.
    if (is_first && looks_like_row(line)) {
      return line.find(" %") != std::string_view::npos || line.find(" MiB") != std::string_view::npos ||
             line.find(" W") != std::string_view::npos || line.find(" MHz") != std::string_view::npos ||
             line.find("[N/A]") != std::string_view::npos;
    }
    is_first = false;
  }
  return false;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<NvidiaSmiImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_nvidia_smi{
    .name = "nvidia_smi",
    .summary = "nvidia-smi --query-gpu=… --format=csv, of any query; also --query-compute-apps.",
    .extensions = ".csv .txt .log",
    .priority = 200,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
