// Somebody's own table of steps or of samples, with titles: a row a step ("step,step_time_ms,data_wait_ms") or a row a
// moment ("time,gpu,gpu_util,mem_used_mb"). Titles are known by their names and units (ingest/table_columns.h); what is
// not known is a series of its own name.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/civil_time.h"
#include "ingest/importer.h"
#include "ingest/lines.h"
#include "ingest/table_columns.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;
constexpr std::size_t kColumnsMax = 512;
constexpr std::size_t kProcessesMax = 65'536;
constexpr double kUnixTimeMinS = 1e9;
constexpr double kSecondsMax = 9e9;
constexpr std::int64_t kSmallestJumpNs = kNsPerS / 2;
constexpr std::size_t kRowsLookedAt = 256;  // to learn whether a column of times is a clock
constexpr std::size_t kPairsMin = 4;
constexpr std::array kParts{std::pair{TableRole::kDataWait, SpanKind::kDataWait},
                            std::pair{TableRole::kForward, SpanKind::kForward},
                            std::pair{TableRole::kBackward, SpanKind::kBackward},
                            std::pair{TableRole::kCommunication, SpanKind::kCollective},
                            std::pair{TableRole::kOptimizer, SpanKind::kOptimizer},
                            std::pair{TableRole::kGarbage, SpanKind::kGarbage},
                            std::pair{TableRole::kCheckpoint, SpanKind::kCheckpoint}};

struct Titles {
  std::vector<TableColumn> columns;
  char separator = ',';

  std::size_t of(TableRole role) const {
    const auto found = std::ranges::find(columns, role, &TableColumn::role);
    return static_cast<std::size_t>(found - columns.begin());
  }
  bool has(TableRole role) const { return of(role) < columns.size(); }
  // Two parts of a step or more: together they are what is known of it.
  bool has_parts() const {
    return std::ranges::count_if(kParts, [&](const auto& part) { return has(part.first); }) >= 2;
  }
};

// Fields of a line; quotes hold separators.
std::vector<std::string> fields_of(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == separator && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// Nothing: the line is no head of such a table. It must have a time or a step, and a figure that is known.
std::optional<Titles> read_titles(std::string_view line) {
  Titles titles;
  titles.separator = line.find('\t') != std::string_view::npos  ? '\t'
                     : line.find(';') != std::string_view::npos ? ';'
                                                                : ',';
  const std::vector<std::string> fields = fields_of(line, titles.separator);
  if (fields.size() < 2 || fields.size() > kColumnsMax) return std::nullopt;
  for (const std::string& field : fields) {
    if (parse_f64(trim(field))) return std::nullopt;  // figures: not a head
    titles.columns.push_back(read_table_title(trim(field)));
  }
  const bool is_placed = titles.has(TableRole::kTime) || titles.has(TableRole::kStep) || titles.has(TableRole::kMono);
  const bool is_long = titles.has(TableRole::kMetric) && titles.has(TableRole::kValue);
  const bool is_step = titles.has(TableRole::kStep) &&
                       (titles.has(TableRole::kDuration) || titles.has(TableRole::kTime) || titles.has_parts());
  const bool has_figure = titles.has(TableRole::kGauge) || titles.has(TableRole::kRate);
  return is_placed && (is_long || is_step || has_figure) ? std::optional(std::move(titles)) : std::nullopt;
}

class TableCsvImporter final : public StreamImporter {
 public:
  explicit TableCsvImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    if (!titles_) return Error{ErrorCode::kInvalidInput, "a table without titles that are known"};
    settle_clock();
    if (rows_ == 0) {
      return Error{ErrorCode::kInvalidInput, has_lines_ ? "a table whose rows cannot be read: other fields than titles"
                                                        : "a table of titles only: there is no row below them"};
    }
    return ImportStats{.bytes = lines_.bytes(), .events = rows_};
  }

 private:
  struct Row {
    std::vector<std::string> fields;
    const Titles* titles = nullptr;
    std::int64_t offset = 0;

    std::string_view text(TableRole role) const {
      const std::size_t at = titles->of(role);
      return at < fields.size() ? trim(fields[at]) : std::string_view{};
    }
    std::optional<double> number(TableRole role) const {
      const std::size_t at = titles->of(role);
      const auto value = at < fields.size() ? parse_f64(trim(fields[at])) : std::nullopt;
      return value && std::isfinite(*value) ? std::optional(*value * titles->columns[at].factor) : std::nullopt;
    }
  };
  struct Process {
    std::uint32_t slot = 0;
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();  // of its last step
    std::int64_t steps = 0;
  };

  void take(const TextLine& line) {
    const std::string_view text = trim(line.text);
    if (text.empty() || text.starts_with('#')) return;
    if (!titles_) {
      titles_ = read_titles(text);
      if (titles_) return;
    }
    if (!titles_ || line.is_too_long) return out_.count_loss("ingest.events_dropped", 1, line.offset);
    has_lines_ = true;
    Row row{fields_of(text, titles_->separator), &*titles_, line.offset};
    if (is_settled_) return give(row);
    pending_.push_back(std::move(row));
    if (pending_.size() == kRowsLookedAt || !titles_->has(TableRole::kStep)) settle_clock();
  }

  void drop(const Row& row) { out_.count_loss("ingest.events_dropped", 1, row.offset); }
  void give(const Row& row) {
    if (row.fields.size() != titles_->columns.size() || !take_row(row)) return drop(row);
    ++rows_;
  }

  // A column "time_ms" beside the steps' numbers may be a clock or what each step took: a clock goes forward.
  void settle_clock() {
    if (std::exchange(is_settled_, true)) return;
    if (titles_->has(TableRole::kStep)) {
      for (std::size_t i = 0; i < titles_->columns.size(); ++i) {
        TableColumn& column = titles_->columns[i];
        if (column.role != TableRole::kTime || is_clock(i)) continue;
        column.role = titles_->has(TableRole::kDuration) ? TableRole::kOther : TableRole::kDuration;
        if (column.role == TableRole::kOther) continue;
        out_.attribute("import.step_time",
                       format("{} does not go forward: no clock, but what each step took", column.name));
      }
    }
    if (!titles_->has(TableRole::kDuration) && !titles_->has(TableRole::kTime) && titles_->has_parts())
      out_.attribute("import.step_time", "no title says what a step took: the sum of its parts");
    std::vector<Row> rows;
    rows.swap(pending_);
    for (const Row& row : rows) give(row);
  }

  // Also where too little is known to say that it is none.
  bool is_clock(std::size_t column) const {
    std::map<std::string, double, std::less<>> before;  // by rank
    std::size_t pairs = 0;
    std::size_t back = 0;
    std::size_t forward = 0;
    for (const Row& row : pending_) {
      const auto value = column < row.fields.size() ? parse_f64(trim(row.fields[column])) : std::nullopt;
      if (!value) continue;
      if (std::fabs(*value) * titles_->columns[column].factor >= kUnixTimeMinS) return true;
      const auto [known, is_first] = before.try_emplace(std::string(row.text(TableRole::kRank)), *value);
      if (is_first) continue;
      ++pairs;
      back += *value < known->second ? 1 : 0;
      forward += *value > known->second ? 1 : 0;
      known->second = *value;
    }
    return pairs < kPairsMin || (back * 5 <= pairs && forward > 0);
  }

  // Unix time or seconds, of the first clock that the row has.
  std::optional<std::int64_t> time_of(const Row& row) {
    std::optional<std::int64_t> wall_ns;
    if (const auto seconds = row.number(TableRole::kTime)) {
      // Milliseconds, microseconds or nanoseconds since 1970, where the title does not say.
      double value = *seconds;
      while (value > 1e11) value /= 1e3;
      if (std::fabs(value) < kSecondsMax) wall_ns = std::llround(value * 1e9);
      if (wall_ns) tell_clock(value >= kUnixTimeMinS, -1);
    } else if (const auto civil = read_civil_time(row.text(TableRole::kTime))) {
      wall_ns = civil->unix_ns;
      tell_clock(true, civil->has_zone ? kNsPerS : kZoneUncertaintyNs);
    }
    const auto mono_s = row.number(TableRole::kMono);
    if (!mono_s || !(std::fabs(*mono_s) < kSecondsMax))
      return wall_ns ? std::optional(*wall_ns - jumped_ns_) : std::nullopt;
    const std::int64_t mono_ns = std::llround(*mono_s * 1e9);
    if (!wall_ns) {
      tell_clock(false, -1);
      return mono_ns;
    }
    // Two clocks: what the wall clock does more than the other one is a jump.
    if (last_wall_ns_ && mono_ns >= last_mono_ns_) {
      const std::int64_t jump_ns = (*wall_ns - *last_wall_ns_) - (mono_ns - last_mono_ns_);
      if (std::llabs(jump_ns) >= kSmallestJumpNs) {
        jumped_ns_ += jump_ns;
        out_.event({.t_ns = *wall_ns - jumped_ns_, .kind = EventKind::kClockStep, .value = jump_ns, .text = {}});
      }
    }
    last_wall_ns_ = wall_ns;
    last_mono_ns_ = mono_ns;
    return *wall_ns - jumped_ns_;
  }

  void tell_clock(bool is_unix, std::int64_t uncertainty_ns) {
    if (std::exchange(is_clock_told_, true)) return;
    out_.clock({.offset_ns = 0, .uncertainty_ns = uncertainty_ns, .is_absolute = is_unix});
  }

  bool take_row(const Row& row) {
    const auto t_ns = time_of(row);
    if (titles_->has(TableRole::kMetric)) return t_ns && take_long(row, *t_ns);
    bool is_read = false;
    if (titles_->has(TableRole::kStep)) is_read = take_step(row, t_ns);
    if (t_ns) is_read |= take_levels(row, *t_ns);
    return is_read;
  }

  // "time,metric,instance,value" with other titles than the documented format has.
  bool take_long(const Row& row, std::int64_t t_ns) {
    const std::string metric = strip_control(row.text(TableRole::kMetric));
    const std::string_view text = row.text(TableRole::kValue);
    const auto value = parse_f64(text);
    if (metric.empty() || (!value && !text.empty())) return false;
    const SeriesHandle series = out_.series(MetricDesc{.name = metric, .unit = "1"}, instance_of(row));
    out_.sample(series, t_ns, value && std::isfinite(*value) ? Value::of(*value) : missing());
    return true;
  }

  static Value missing() { return Value::missing(MissingReason::kNotSupported); }

  std::string instance_of(const Row& row) const {
    std::string instance = strip_control(row.text(TableRole::kDevice));
    const std::string_view gpu = row.text(TableRole::kGpu);
    if (instance.empty() && !gpu.empty()) instance = parse_u64(gpu) ? format("gpu{}", gpu) : strip_control(gpu);
    const std::string node = strip_control(row.text(TableRole::kNode));
    if (!node.empty() && !instance.empty()) return node + "/" + instance;
    return instance.empty() ? node : instance;
  }

  Process* process_of(const Row& row) {
    const auto rank = row.number(TableRole::kRank);
    const std::int64_t key = rank && *rank >= 0 && *rank < 1e9 ? std::llround(*rank) : -1;
    const auto found = processes_.find(key);
    if (found != processes_.end()) return &found->second;
    if (processes_.size() == kProcessesMax) return nullptr;
    ProcessInfo info{.role = key < 0 ? ProcessRole::kMain : ProcessRole::kRank};
    if (key >= 0) info.index = static_cast<std::int32_t>(key);
    return &processes_.emplace(key, Process{.slot = out_.process(info)}).first->second;
  }

  // A row with a time says when the step ended; without one steps follow each other.
  bool take_step(const Row& row, std::optional<std::int64_t> t_ns) {
    const auto number = row.number(TableRole::kStep);
    if (!number || *number < 0 || *number > 1e15) return false;
    Process* const process = process_of(row);
    if (process == nullptr) return false;
    const bool is_first = process->steps++ == 0;
    std::optional<std::int64_t> duration_ns;
    if (const auto duration = row.number(TableRole::kDuration); duration && *duration >= 0 && *duration < 1e8) {
      duration_ns = std::llround(*duration * 1e9);
    } else if (!t_ns && !titles_->has(TableRole::kDuration)) {
      duration_ns = sum_of_parts(row);
    } else if (t_ns && !is_first && *t_ns > process->end_ns && !titles_->has(TableRole::kDuration)) {
      duration_ns = *t_ns - process->end_ns;
    }
    if (!t_ns) tell_clock(false, -1);
    const std::int64_t before_ns = is_first ? 0 : process->end_ns;
    const std::int64_t end_ns = t_ns.value_or(before_ns + duration_ns.value_or(0));
    process->end_ns = end_ns;
    if (!duration_ns) return is_first;
    std::string shape = strip_control(row.text(TableRole::kShape));
    Span step{.start_ns = end_ns - *duration_ns,
              .duration_ns = *duration_ns,
              .kind = SpanKind::kStep,
              .process = process->slot,
              .name = shape.empty() ? 0 : out_.name("shape " + shape),
              .step = std::llround(*number)};
    if (const auto samples = row.number(TableRole::kSamples)) step.value_a = std::llround(*samples);
    if (const auto tokens = row.number(TableRole::kTokens)) step.value_b = std::llround(*tokens);
    give_parts(row, step);
    step.value_a = std::max<std::int64_t>(step.value_a, -1);
    out_.span(step);
    return true;
  }

  std::optional<std::int64_t> sum_of_parts(const Row& row) const {
    double sum_s = 0;
    for (const auto& [role, kind] : kParts) sum_s += std::max(row.number(role).value_or(0), 0.0);
    return sum_s > 0 && sum_s < 1e8 ? std::optional(std::llround(sum_s * 1e9)) : std::nullopt;
  }

  // In the order in which loops do them; where in the step they lie is not told.
  void give_parts(const Row& row, const Span& step) {
    std::int64_t at_ns = step.start_ns;
    const std::int64_t end_ns = step.start_ns + step.duration_ns;
    for (const auto& [role, kind] : kParts) {
      const auto seconds = row.number(role);
      if (!seconds || *seconds < 0 || *seconds > 1e8) continue;
      const std::int64_t length_ns = std::min<std::int64_t>(std::llround(*seconds * 1e9), end_ns - at_ns);
      const bool is_rare = kind == SpanKind::kCheckpoint || kind == SpanKind::kGarbage;
      if (length_ns < 0 || (is_rare && length_ns == 0)) continue;
      out_.span(
          {.start_ns = at_ns, .duration_ns = length_ns, .kind = kind, .process = step.process, .step = step.step});
      at_ns += length_ns;
    }
  }

  bool take_levels(const Row& row, std::int64_t t_ns) {
    bool has_any = false;
    for (std::size_t i = 0; i < titles_->columns.size(); ++i) {
      const TableColumn& column = titles_->columns[i];
      const bool is_other = column.role == TableRole::kOther;
      if (column.role != TableRole::kGauge && column.role != TableRole::kRate && !is_other) continue;
      const std::string_view text = trim(row.fields[i]);
      const auto number = parse_f64(text);
      if (is_other && !number) continue;
      const auto value = number && std::isfinite(*number) ? std::optional(*number * column.factor) : std::nullopt;
      const std::string instance = level_instance(row, column);
      const SeriesHandle series =
          is_other ? out_.series(MetricDesc{.name = "table." + column.name, .unit = "1"}, instance_of(row))
                   : out_.series(column.metric, instance);
      has_any = true;
      if (column.role == TableRole::kRate) {
        give_rate(series, t_ns, value);
      } else {
        out_.sample(series, t_ns, value ? Value::of(*value) : missing());
      }
    }
    return has_any;
  }

  std::string level_instance(const Row& row, const TableColumn& column) const {
    const std::string node = strip_control(row.text(TableRole::kNode));
    const std::string told = column.device.empty() ? instance_of(row)
                             : node.empty()        ? column.device
                                                   : node + "/" + column.device;
    if (column.instance == "gpu") return told.empty() ? std::string("gpu0") : told;
    if (column.instance == "allocator") return allocator_of(told);
    if (column.instance == "process") return told.empty() ? std::string("main") : told;
    if (column.instance == "network") return told.empty() ? std::string("eth0") : told;
    if (column.instance == "disk") return told.empty() ? std::string("disk") : told;
    return {};
  }

  static std::string allocator_of(const std::string& told) {
    if (told.empty()) return "main/cuda:0";
    const auto gpu = told.starts_with("gpu") ? parse_u64(std::string_view(told).substr(3)) : std::nullopt;
    return gpu ? format("main/cuda:{}", *gpu) : "main/" + told;
  }

  // Amounts per second, added up over the time since the row before.
  void give_rate(SeriesHandle series, std::int64_t t_ns, std::optional<double> per_s) {
    if (!series.valid()) return out_.sample(series, t_ns, missing());
    auto& [last_ns, sum] = sums_[series.index];
    if (last_ns && per_s && t_ns > *last_ns) {
      sum += std::max(*per_s, 0.0) * static_cast<double>(t_ns - *last_ns) / static_cast<double>(kNsPerS);
    }
    last_ns = t_ns;
    out_.sample(series, t_ns, per_s ? Value::of(sum) : missing());
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  std::optional<Titles> titles_;
  std::map<std::int64_t, Process> processes_;  // by rank; -1: none is told
  std::map<std::uint32_t, std::pair<std::optional<std::int64_t>, double>> sums_;
  std::optional<std::int64_t> last_wall_ns_;
  std::int64_t last_mono_ns_ = 0;
  std::int64_t jumped_ns_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<Row> pending_;  // until it is known which column is a clock
  bool is_settled_ = false;
  bool has_lines_ = false;
  bool is_clock_told_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  return read_titles(first_row(text)).has_value();
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<TableCsvImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_table_csv{
    .name = "table_csv",
    .summary = "Tables of steps or samples with titles of one's own: step,step_time_ms,data_wait_ms.",
    .extensions = ".csv .tsv",
    .priority = 80,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
