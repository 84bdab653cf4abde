// What DCGM's exporter serves to Prometheus, one answer or many one behind the other: "## t=<seconds>" before each, or
// the time behind each value; else a series that comes again begins the next answer, a second later.
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/dcgm_fields.h"
#include "ingest/dump_clock.h"
#include "ingest/importer.h"
#include "ingest/lines.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;
constexpr std::size_t kLabelsMax = 128;
constexpr std::size_t kSeriesMax = 65'536;
constexpr std::size_t kNodesMax = 1024;
constexpr std::uint64_t kGpuMax = 9999;
constexpr std::string_view kPrefix = "DCGM_FI_";

// NAME{label="text",…} value [milliseconds]
struct ExportedLine {
  std::string_view name;
  std::map<std::string_view, std::string> labels;
  std::string_view value;
  std::string_view time;
};

bool read_labels(std::string_view& rest, std::map<std::string_view, std::string>& labels) {
  while (!rest.empty() && rest.front() != '}') {
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos || labels.size() == kLabelsMax) return false;
    const std::string_view key = trim(rest.substr(0, equals));
    rest = trim(rest.substr(equals + 1));
    if (!rest.starts_with('"')) return false;
    std::string text;
    std::size_t at = 1;
    for (; at < rest.size() && rest[at] != '"'; ++at) {
      if (rest[at] == '\\' && at + 1 < rest.size()) ++at;
      text += rest[at];
    }
    if (at >= rest.size()) return false;
    labels.emplace(key, std::move(text));
    rest = trim(rest.substr(at + 1));
    if (rest.starts_with(',')) rest = trim(rest.substr(1));
  }
  if (!rest.starts_with('}')) return false;
  rest.remove_prefix(1);
  return true;
}

std::optional<ExportedLine> read_line(std::string_view text) {
  ExportedLine line;
  std::string_view rest = trim(text);
  const std::size_t end = rest.find_first_of("{ \t");
  if (!rest.starts_with(kPrefix) || end == std::string_view::npos) return std::nullopt;
  line.name = rest.substr(0, end);
  rest = trim(rest.substr(end));
  if (rest.starts_with('{')) {
    rest.remove_prefix(1);
    if (!read_labels(rest, line.labels)) return std::nullopt;
  }
  line.value = next_word(rest);
  line.time = next_word(rest);
  return line.value.empty() ? std::nullopt : std::optional(std::move(line));
}

class DcgmExporterImporter final : public StreamImporter {
 public:
  explicit DcgmExporterImporter(ImportSink& out) : out_(out), readings_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    lines_.push(chunk_untrusted, [&](const TextLine& line) { take(line); });
    return {};
  }
  Result<ImportStats> finish() override {
    lines_.finish([&](const TextLine& line) { take(line); });
    if (!has_clock_) tell_clock(false, "the exporter's answers tell no times: one a second is assumed");
    return ImportStats{.bytes = lines_.bytes(), .events = values_};
  }

 private:
  void tell_clock(bool is_absolute, std::string_view words) {
    has_clock_ = true;
    out_.clock({.offset_ns = 0, .uncertainty_ns = is_absolute ? kNsPerS : -1, .is_absolute = is_absolute});
    if (!words.empty()) out_.attribute("import.time", words);
  }

  void take(const TextLine& line) {
    const std::string_view text = trim(line.text);
    if (const auto header = read_dump_header(text)) {
      header_ns_ = header->t_ns;
      if (!has_clock_) tell_clock(header->is_unix_time(), {});
      return;
    }
    // Comments, and series of others that are served at the same place.
    if (text.empty() || text.starts_with('#') || !text.starts_with(kPrefix)) return;
    const auto read = read_line(text);
    if (!read || line.is_too_long || !line.has_end || !take_value(*read))
      out_.count_loss("ingest.events_dropped", 1, line.offset);
  }

  bool take_value(const ExportedLine& line) {
    const auto label = [&](std::string_view key) {
      const auto found = line.labels.find(key);
      return found == line.labels.end() ? std::string_view{} : std::string_view(found->second);
    };
    const auto gpu = parse_u64(label("gpu"));
    if (!gpu || *gpu > kGpuMax) return false;
    std::string instance = prefix_of(label("Hostname")) + format("gpu{}", *gpu);
    if (const std::string_view model = label("modelName"); !model.empty())
      out_.attribute(instance + ".name", strip_control(model));
    if (const auto mig = parse_u64(label("GPU_I_ID"))) instance += format("/mig{}", *mig);
    const auto number = parse_f64(line.value);
    readings_.take(line.name, instance, time_of(line, instance), number);
    ++values_;
    return true;
  }

  // The first node's GPUs have the names that they have everywhere.
  std::string prefix_of(std::string_view node) {
    if (node.empty()) return {};
    if (first_node_.empty()) first_node_ = node;
    if (node == first_node_) return {};
    const auto known = nodes_.find(node);
    if (known == nodes_.end() && nodes_.size() == kNodesMax) return "other/";
    return (known == nodes_.end() ? *nodes_.emplace(strip_control(node)).first : *known) + "/";
  }

  std::int64_t time_of(const ExportedLine& line, const std::string& instance) {
    if (const auto ms = parse_u64(line.time); ms && *ms < 10'000'000'000'000) {
      if (!has_clock_) tell_clock(true, {});
      return static_cast<std::int64_t>(*ms) * kNsPerMs;
    }
    if (header_ns_) return *header_ns_;
    std::string series = std::string(line.name) + " " + instance;
    if (seen_.contains(series)) {
      ++answer_;
      seen_.clear();
    }
    if (seen_.size() < kSeriesMax) seen_.insert(std::move(series));
    return answer_ * kNsPerS;
  }

  ImportSink& out_;
  DcgmReadings readings_;
  LineCutter lines_{kLineBytesMax};
  std::string first_node_;
  std::set<std::string, std::less<>> nodes_;
  std::set<std::string> seen_;  // of this answer
  std::optional<std::int64_t> header_ns_;
  std::int64_t answer_ = 0;
  std::uint64_t values_ = 0;
  bool has_clock_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string text = sniffed_text(head_untrusted);
  std::string_view rest = text;
  std::string_view line;
  for (int i = 0; i < 32 && next_line(rest, line); ++i) {
    std::string_view words = trim(line);
    if (words.starts_with("# HELP ") || words.starts_with("# TYPE ")) words.remove_prefix(7);
    if (words.starts_with(kPrefix)) return true;
  }
  return false;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<DcgmExporterImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_dcgm_exporter{
    .name = "dcgm_exporter",
    .summary = "What DCGM's exporter serves to Prometheus, again and again.",
    .extensions = ".prom .txt .log",
    .priority = 194,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
