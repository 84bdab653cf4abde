// Tables of throughput by number of GPUs ("gpus,images_per_s"): each row is a run of its own, so that its place on the
// time axis means nothing; the efficiency against the smallest number is worked out.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/lines.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = 4096;
constexpr std::size_t kColumnsMax = 32;
constexpr std::size_t kRowsMax = 4096;
constexpr std::array<std::string_view, 15> kCounts{"gpus",      "gpu",     "n_gpus",     "num_gpus",  "ngpus",
                                                   "workers",   "n_nodes", "world_size", "nodes",     "ranks",
                                                   "gpu_count", "n_gpu",   "num_nodes",  "processes", "np"};
struct Rate {
  std::string_view title;
  std::string_view unit;
  bool is_time = false;           // less is better
  bool is_of_whole_work = false;  // the time of an epoch: a run of twice the number should take half of it
};
constexpr std::array kRates{Rate{"images_per_s", "{image}/s"},
                            Rate{"images_per_sec", "{image}/s"},
                            Rate{"images_per_second", "{image}/s"},
                            Rate{"images/s", "{image}/s"},
                            Rate{"images/sec", "{image}/s"},
                            Rate{"img/s", "{image}/s"},
                            Rate{"samples_per_s", "{sample}/s"},
                            Rate{"samples_per_sec", "{sample}/s"},
                            Rate{"samples_per_second", "{sample}/s"},
                            Rate{"samples/s", "{sample}/s"},
                            Rate{"samples/sec", "{sample}/s"},
                            Rate{"tokens_per_s", "{token}/s"},
                            Rate{"tokens_per_sec", "{token}/s"},
                            Rate{"tokens_per_second", "{token}/s"},
                            Rate{"tokens/s", "{token}/s"},
                            Rate{"tokens/sec", "{token}/s"},
                            Rate{"steps_per_s", "{step}/s"},
                            Rate{"steps/s", "{step}/s"},
                            Rate{"throughput", "1/s"},
                            Rate{"steps_per_sec", "{step}/s"},
                            Rate{"it/s", "{step}/s"},
                            Rate{"img_per_s", "{image}/s"},
                            Rate{"img_per_sec", "{image}/s"},
                            Rate{"imgs_per_s", "{image}/s"},
                            Rate{"img/sec", "{image}/s"},
                            Rate{"imgs/s", "{image}/s"},
                            Rate{"img_s", "{image}/s"},
                            Rate{"step_time_ms", "ms", true},
                            Rate{"step_ms", "ms", true},
                            Rate{"ms_per_step", "ms", true},
                            Rate{"step_time_s", "s", true},
                            Rate{"step_s", "s", true},
                            Rate{"seconds_per_step", "s", true}};

struct Titles {
  std::size_t count = 0;           // the column of the number of GPUs
  std::vector<const Rate*> rates;  // by column; null: not read
  std::vector<std::string> names;  // by column
  std::string_view counted;        // what is counted
};

// "epoch_time_s", "Epoch time [min]", "sec/iter", "ms per step": the time of the same work, or of a step.
const Rate* time_of(std::string_view title) {
  static constexpr Rate kEpochS{"epoch_time_s", "s", true, true};
  static constexpr Rate kEpochMin{"epoch_time_min", "min", true, true};
  static constexpr Rate kStepS{"step_time_s", "s", true};
  static constexpr Rate kStepMs{"step_time_ms", "ms", true};
  std::string words;  // one '_' for whatever is no letter
  for (const char c : title) {
    const bool is_letter = c >= 'a' && c <= 'z';
    if (is_letter) words += c;
    if (!is_letter && !words.empty() && words.back() != '_') words += '_';
  }
  while (words.ends_with('_')) words.pop_back();
  constexpr std::array kOfEpochs{std::string_view{"epoch_time"},    std::string_view{"time_per_epoch"},
                                 std::string_view{"epoch"},         std::string_view{"total_time"},
                                 std::string_view{"training_time"}, std::string_view{"wall_time"}};
  constexpr std::array kOfSteps{std::string_view{"step_time"},      std::string_view{"iter_time"},
                                std::string_view{"iteration_time"}, std::string_view{"time_per_step"},
                                std::string_view{"time_per_iter"},  std::string_view{"time_per_iteration"},
                                std::string_view{"batch_time"},     std::string_view{"iter"},
                                std::string_view{"iteration"},      std::string_view{"batch"}};
  constexpr std::array kSeconds{std::string_view{"s"}, std::string_view{"sec"}, std::string_view{"secs"},
                                std::string_view{"seconds"}};
  const auto is_seconds = [&](std::string_view unit) { return std::ranges::find(kSeconds, unit) != kSeconds.end(); };
  const std::size_t last = words.rfind('_');
  const std::string_view unit =
      last == std::string::npos ? std::string_view{} : std::string_view(words).substr(last + 1);
  const std::string_view name = std::string_view(words).substr(0, last);
  const bool is_epoch = std::ranges::find(kOfEpochs, name) != kOfEpochs.end();
  const bool is_step = std::ranges::find(kOfSteps, name) != kOfSteps.end();
  if (is_epoch && is_seconds(unit)) return &kEpochS;
  if (is_epoch && (unit == "min" || unit == "minutes")) return &kEpochMin;
  if (is_step && is_seconds(unit)) return &kStepS;
  if (is_step && unit == "ms") return &kStepMs;
  // "sec/iter", "s_per_step", "seconds per epoch".
  std::string_view of = unit;
  std::string_view per = name;
  if (per.ends_with("_per")) per.remove_suffix(4);
  if (of == "epoch" && is_seconds(per)) return &kEpochS;
  if (of != "step" && of != "iter" && of != "iteration" && of != "batch" && of != "it") return nullptr;
  return is_seconds(per) ? &kStepS : per == "ms" ? &kStepMs : nullptr;
}

// "images_per_s", "synthetic_images_per_s".
const Rate* rate_of(std::string_view title) {
  const auto* const known = std::ranges::find_if(kRates, [&](const Rate& rate) {
    return title == rate.title || (title.ends_with(rate.title) && title[title.size() - rate.title.size() - 1] == '_');
  });
  return known == kRates.end() ? time_of(title) : known;
}

// Nothing: the line is not the first of such a table.
std::optional<Titles> read_titles(std::string_view line) {
  const auto columns = split(line, line.find('\t') != std::string_view::npos ? '\t' : ',');
  if (columns.size() < 2 || columns.size() > kColumnsMax) return std::nullopt;
  Titles titles;
  titles.rates.resize(columns.size());
  titles.names.resize(columns.size());
  bool has_rate = false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string title = to_lower(trim(columns[i]));
    const auto* const counted = std::ranges::find(kCounts, std::string_view(title));
    if (counted != kCounts.end() && titles.counted.empty()) {
      titles.count = i;
      titles.counted = *counted;
    }
    titles.rates[i] = rate_of(title);
    titles.names[i] = title;
    has_rate |= titles.rates[i] != nullptr;
  }
  if (titles.counted.empty() || !has_rate) return std::nullopt;
  return titles;
}

// "epoch time (s)" as "epoch_time_s".
std::string plain_name(std::string_view title) {
  std::string out;
  for (const char c : title) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_word) out += c;
    if (!is_word && !out.empty() && out.back() != '_') out += '_';
  }
  while (out.ends_with('_')) out.pop_back();
  return out;
}

class ScalingTableImporter final : public StreamImporter {
 public:
  explicit ScalingTableImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }

  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    if (!titles_) return Error{ErrorCode::kInvalidInput, "scaling table: there is no line \"gpus,images_per_s\""};
    give();
    return ImportStats{.bytes = lines_.bytes(), .events = rows_.size()};
  }

 private:
  struct Row {
    double count = 0;
    std::vector<std::optional<double>> rates;  // by column
  };

  void take(const TextLine& line) {
    const std::string_view text = trim(line.text);
    if (text.empty() || text.starts_with('#')) return;
    if (!titles_) {
      titles_ = read_titles(text);
      if (titles_) return;
    }
    if (!titles_ || line.is_too_long || !take_row(text)) out_.count_loss("ingest.events_dropped", 1, line.offset);
  }

  bool take_row(std::string_view text) {
    const auto fields = split(text, text.find('\t') != std::string_view::npos ? '\t' : ',');
    if (fields.size() != titles_->rates.size() || rows_.size() == kRowsMax) return false;
    const auto count = parse_u64(trim(fields[titles_->count]));
    if (!count || *count == 0 || *count > 10'000'000) return false;
    Row row{.count = static_cast<double>(*count), .rates = {}};
    bool has_rate = false;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      auto rate = titles_->rates[i] != nullptr ? parse_f64(trim(fields[i])) : std::nullopt;
      if (rate && !(*rate > 0 && std::isfinite(*rate))) rate.reset();
      has_rate |= rate.has_value();
      row.rates.push_back(rate);
    }
    if (has_rate) rows_.push_back(std::move(row));
    return has_rate;
  }

  void give() {
    out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = false});
    out_.attribute("import.time", "a table of runs, not of times: a row a second");
    for (std::size_t column = 0; column < titles_->rates.size(); ++column) {
      if (titles_->rates[column] != nullptr) give_column(column, *titles_->rates[column]);
    }
  }

  void give_column(std::size_t column, const Rate& rate) {
    const Row* base = nullptr;  // the smallest number that has the figure
    for (const Row& row : rows_) {
      if (row.rates[column] && (base == nullptr || row.count < base->count)) base = &row;
    }
    if (base == nullptr) return;
    const std::string name = "scaling." + plain_name(titles_->names[column]);
    const MetricDesc metric{.name = name, .unit = rate.unit, .help = "As the table says."};
    const MetricDesc efficiency{.name = "scaling.efficiency.percent",
                                .unit = "%",
                                .help = "Throughput per unit as a share of that of the smallest run."};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      if (!row.rates[column]) continue;
      const std::string instance = format("{} {}", row.count, titles_->counted);
      const std::int64_t t_ns = static_cast<std::int64_t>(i) * kNsPerS;
      out_.sample(out_.series(metric, instance), t_ns, Value::of(*row.rates[column]));
      const double ratio = *base->rates[column] / *row.rates[column];
      const double times = row.count / base->count;
      const double gain = !rate.is_time           ? *row.rates[column] / *base->rates[column] / times
                          : rate.is_of_whole_work ? ratio / times
                                                  : ratio;
      // Of several figures only the first one makes the efficiency; they need not agree.
      if (is_efficiency_given_ && efficiency_column_ != column) continue;
      is_efficiency_given_ = true;
      efficiency_column_ = column;
      out_.sample(out_.series(efficiency, instance), t_ns, Value::of(gain * 100));
    }
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  std::optional<Titles> titles_;
  std::vector<Row> rows_;
  bool is_efficiency_given_ = false;
  std::size_t efficiency_column_ = 0;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  return read_titles(first_row(text)).has_value();
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<ScalingTableImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_scaling_table{
    .name = "scaling_table",
    .summary = "Throughput by number of GPUs: gpus,images_per_s.",
    .extensions = ".csv .tsv",
    .priority = 90,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
