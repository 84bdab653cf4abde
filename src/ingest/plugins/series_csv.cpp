// hotlap's own plain series format: "t_s,metric,instance,value" with a header line; an empty value is missing.
#include <cmath>
#include <string>

#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/series_processes.h"

namespace hotlap {
namespace {

constexpr std::string_view kHeader = "t_s,metric,instance,value";
constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;  // a longer line is not one of ours
constexpr double kUnixTimeMinS = 1e9;                         // 2001; smaller ones count from any moment
constexpr double kTimeMaxS = 9e9;                             // beyond, nanoseconds leave int64

class SeriesCsvImporter final : public StreamImporter {
 public:
  explicit SeriesCsvImporter(ImportSink& out) : out_(out), processes_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    std::string_view rest = as_text(chunk_untrusted);
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      append(rest.substr(0, end));
      if (end == std::string_view::npos) break;
      ++stats_.bytes;
      take_line();
      rest = rest.substr(end + 1);
    }
    return {};
  }

  Result<ImportStats> finish() override {
    if (!line_.empty() || is_overlong_) take_line();
    return stats_;
  }

 private:
  void append(std::string_view part) {
    stats_.bytes += part.size();
    if (line_.size() + part.size() > kLineBytesMax) {
      is_overlong_ = true;
      return;
    }
    line_ += part;
  }

  void take_line() {
    const std::string_view line = trim(line_);
    const bool is_header = lines_++ == 0 && line == kHeader;
    const bool is_read = is_header || (!is_overlong_ && (line.empty() || take_row(line)));
    if (!is_read) out_.count_loss("ingest.events_dropped", 1, line_begin_);
    line_begin_ = static_cast<std::int64_t>(stats_.bytes);
    line_.clear();
    is_overlong_ = false;
  }

  bool take_row(std::string_view line) {
    const auto fields = split(line, ',');
    if (fields.size() != 4) return false;
    const auto t_s = parse_f64(fields[0]);
    if (!t_s || !(std::fabs(*t_s) < kTimeMaxS) || fields[1].empty()) return false;
    Value value = Value::missing(MissingReason::kNotSupported);
    if (!fields[3].empty()) {
      const auto number = parse_f64(fields[3]);
      if (!number) return false;
      if (std::isfinite(*number)) value = Value::of(*number);
    }
    const std::int64_t t_ns = std::llround(*t_s * 1e9);
    if (stats_.events == 0) {
      out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = *t_s >= kUnixTimeMinS});
    }
    processes_.see(fields[1], fields[2]);
    const SeriesHandle series = out_.series(MetricDesc{.name = fields[1], .unit = "1"}, fields[2]);
    out_.sample(series, t_ns, value);
    ++stats_.events;
    return true;
  }

  ImportSink& out_;
  SeriesProcesses processes_;
  ImportStats stats_;
  std::string line_;
  std::int64_t line_begin_ = 0;
  std::uint64_t lines_ = 0;
  bool is_overlong_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) { return as_text(head_untrusted).starts_with(kHeader); }

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<SeriesCsvImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_series_csv{.name = "series_csv",
                                                        .summary = "Plain series: t_s,metric,instance,value.",
                                                        .extensions = ".csv",
                                                        .priority = 100,
                                                        .sniff = sniff,
                                                        .open_stream = open_stream};

}  // namespace hotlap
