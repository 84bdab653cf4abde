// Tables that rocprofv3 and rocprof write with --output-format csv, one file a domain: kernels (kernel_trace.csv),
// copies (memory_copy_trace.csv), calls and marker ranges (…_api_trace.csv), rocprof's kernels (results.csv). One row
// is one span.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/lines.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;  // names of kernels are long
constexpr std::size_t kAgentsMax = 4096;
constexpr std::size_t kNameMax = 4096;
constexpr std::int64_t kTimeMaxNs = INT64_MAX / 4;

enum Title : std::uint8_t { kStart, kEnd, kName, kAgent, kQueue, kThread, kCorrelation, kDomain, kTitleCount };
// In lower case; those of rocprofv3 first, rocprof's behind them.
struct Known {
  std::string_view text;
  Title title;
};
constexpr std::array<Known, 15> kKnown{{{"start_timestamp", kStart},
                                        {"end_timestamp", kEnd},
                                        {"kernel_name", kName},
                                        {"function", kName},
                                        {"direction", kName},
                                        {"agent_id", kAgent},
                                        {"destination_agent_id", kAgent},
                                        {"queue_id", kQueue},
                                        {"thread_id", kThread},
                                        {"correlation_id", kCorrelation},
                                        {"domain", kDomain},
                                        {"beginns", kStart},
                                        {"endns", kEnd},
                                        {"kernelname", kName},
                                        {"gpu-id", kAgent}}};

// Fields of a row; a quote inside quotes is written twice. Nothing: a quote is open at the end.
std::optional<std::vector<std::string>> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += c;
        ++i;
      } else {
        is_quoted = !is_quoted;
      }
    } else if (c == ',' && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (is_quoted) return std::nullopt;
  return fields;
}

struct Titles {
  std::array<std::size_t, kTitleCount> columns{};  // from 1; 0: it has none
  std::size_t count = 0;
  bool is_of_copies = false;
  bool is_of_kernels = false;

  bool is_table() const { return columns[kStart] > 0 && columns[kEnd] > 0 && columns[kName] > 0; }
};

Titles read_titles(std::string_view line) {
  Titles titles;
  const auto fields = fields_of(line);
  if (!fields) return titles;
  titles.count = fields->size();
  for (std::size_t i = 0; i < fields->size(); ++i) {
    std::string title(trim((*fields)[i]));
    std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto known = std::ranges::find(kKnown, title, &Known::text);
    if (known != kKnown.end()) titles.columns[known->title] = i + 1;
    if (title == "queue-id") titles.columns[kQueue] = i + 1;
    if (title == "tid") titles.columns[kThread] = i + 1;
    titles.is_of_copies |= title == "direction";
    titles.is_of_kernels |= title == "kernel_name" || title == "kernelname";
  }
  return titles;
}

// "Agent 4": 4.
std::optional<std::int64_t> number_in(std::string_view text) {
  const std::size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return std::nullopt;
  return parse_i64(trim(text.substr(at)));
}

// "MEMORY_COPY_HOST_TO_DEVICE", "HOST_TO_DEVICE" as other profilers name it.
std::string_view copy_name(std::string_view direction) {
  if (direction.ends_with("HOST_TO_DEVICE")) return "Memcpy HtoD";
  if (direction.ends_with("DEVICE_TO_HOST")) return "Memcpy DtoH";
  if (direction.ends_with("DEVICE_TO_DEVICE")) return "Memcpy DtoD";
  if (direction.ends_with("HOST_TO_HOST")) return "Memcpy HtoH";
  return "Memcpy";
}

class RocprofCsvImporter final : public StreamImporter {
 public:
  explicit RocprofCsvImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    // Of the machine's monotonic clock, as all times of ROCm.
    out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = false});
    return ImportStats{.bytes = lines_.bytes(), .events = events_};
  }

 private:
  void take(const TextLine& line) {
    if (trim(line.text).empty()) return;
    if (!titles_.is_table()) {
      titles_ = read_titles(line.text);
      return;
    }
    const auto fields = line.is_too_long ? std::nullopt : fields_of(line.text);
    if (fields && fields->size() == titles_.count && take_row(*fields)) return;
    out_.count_loss(line.has_end ? "ingest.events_dropped" : "ingest.input_truncated", 1, line.offset);
  }

  bool take_row(const std::vector<std::string>& fields) {
    const auto field = [&](Title title) {
      const std::size_t column = titles_.columns[title];
      return column == 0 ? std::string_view{} : trim(fields[column - 1]);
    };
    const auto start = parse_i64(field(kStart));
    const auto end = parse_i64(field(kEnd));
    if (!start || *start < 0 || *start > kTimeMaxNs) return false;
    const bool has_end = end && *end >= *start && *end <= kTimeMaxNs;
    if (!has_end) out_.count_loss("ingest.durations_invalid", 1, 0);
    Span span{.start_ns = *start, .duration_ns = has_end ? *end - *start : -1};
    span.value_a = parse_i64(field(kCorrelation)).value_or(-1);
    const std::string name = strip_control(field(kName).substr(0, kNameMax));
    if (titles_.is_of_kernels || titles_.is_of_copies) {
      span.kind = titles_.is_of_copies ? SpanKind::kTransfer : SpanKind::kKernel;
      span.process = agent(field(kAgent));
      span.thread = narrow(field(kQueue));
      span.name = out_.name(titles_.is_of_copies ? copy_name(name) : std::string_view(name));
    } else {
      span.kind = field(kDomain).starts_with("MARKER") ? SpanKind::kUser : SpanKind::kRuntime;
      span.process = main_slot();
      span.thread = narrow(field(kThread));
      span.name = out_.name(name);
    }
    ++events_;
    out_.span(span);
    return true;
  }

  // GPUs are numbered as the file numbers its agents, among which there are the host's processors.
  std::uint32_t agent(std::string_view text) {
    const auto number = number_in(text);
    if (!number) return 0;
    const auto found = agents_.find(*number);
    if (found != agents_.end()) return found->second;
    if (agents_.size() == kAgentsMax) return 0;
    return agents_.emplace(*number, out_.process({.label = format("amd{}", *number)})).first->second;
  }
  std::uint32_t main_slot() {
    if (main_ == 0) main_ = out_.process({.role = ProcessRole::kMain});
    return main_;
  }
  static std::uint32_t narrow(std::string_view text) {
    const auto value = parse_i64(text);
    return value && *value >= 0 && *value <= UINT32_MAX ? static_cast<std::uint32_t>(*value) : 0;
  }

  ImportSink& out_;
  LineCutter lines_{kLineBytesMax};
  Titles titles_;
  std::map<std::int64_t, std::uint32_t> agents_;
  std::uint32_t main_ = 0;
  std::uint64_t events_ = 0;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  return read_titles(first_row(text)).is_table();
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<RocprofCsvImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_rocprof_csv{
    .name = "rocprof_csv",
    .summary = "rocprofv3 --output-format csv: traces of kernels, copies, calls.",
    .extensions = ".csv",
    .priority = 120,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
