// dcgmi dmon: a table that scrolls, its two lines of titles (columns, units) again and again. No times: a reading a
// second is assumed, which is what it does by itself.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/dcgm_fields.h"
#include "ingest/importer.h"
#include "ingest/lines.h"

namespace hotlap {
namespace {

constexpr std::size_t kLineBytesMax = 8192;
constexpr std::size_t kColumnsMax = 128;
constexpr std::uint64_t kEntityMax = 9999;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view word = next_word(line); !word.empty() && words.size() <= kColumnsMax; word = next_word(line)) {
    words.push_back(word);
  }
  return words;
}

// "#Entity   GPUTL  POWER", "# Entity  GPUTL": the columns; empty when the line is no such title.
std::vector<std::string> read_titles(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return {};
  const std::vector<std::string_view> words = words_of(line.substr(1));
  if (words.size() < 2 || words.size() > kColumnsMax || words[0] != "Entity") return {};
  return {words.begin() + 1, words.end()};
}

class DcgmDmonImporter final : public StreamImporter {
 public:
  explicit DcgmDmonImporter(ImportSink& out) : out_(out), readings_(out) {}

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
      return;
    }
    std::string_view rest = text;
    const std::string_view first = next_word(rest);
    if (first == "ID" || first == "Id") return;  // the line of units: each column has its own
    if (line.is_too_long || !line.has_end || columns_.empty() || !take_row(text))
      out_.count_loss("ingest.events_dropped", 1, line.offset);
  }

  void begin(std::vector<std::string> titles) {
    columns_ = std::move(titles);
    if (is_clock_told_) return;
    is_clock_told_ = true;
    out_.clock({});
    out_.attribute("import.time", "dcgmi dmon prints no times: one second per reading is assumed");
  }

  // "GPU 0   98   N/A", "GPU-I 3  0.412". Other entities (switches, cores, links) are not read.
  bool take_row(std::string_view text) {
    const std::vector<std::string_view> words = words_of(text);
    if (words.size() != columns_.size() + 2) return false;
    const auto number = parse_u64(words[1]);
    if (!number || *number > kEntityMax || (words[0] != "GPU" && words[0] != "GPU-I")) return false;
    const std::string instance = format("{}{}", words[0] == "GPU" ? "gpu" : "mig", *number);
    std::int64_t& reading = readings_of_[instance];
    const std::int64_t t_ns = reading++ * kNsPerS;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      readings_.take(columns_[i], instance, t_ns, parse_f64(words[i + 2]));
    ++rows_;
    return true;
  }

  ImportSink& out_;
  DcgmReadings readings_;
  LineCutter lines_{kLineBytesMax};
  std::vector<std::string> columns_;
  std::map<std::string, std::int64_t> readings_of_;  // of each entity so far
  std::uint64_t rows_ = 0;
  bool is_clock_told_ = false;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  return has_line(sniffed_text(head_untrusted), 8, [](std::string_view line) { return !read_titles(line).empty(); });
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<DcgmDmonImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_dcgm_dmon{.name = "dcgm_dmon",
                                                       .summary = "dcgmi dmon, of any fields.",
                                                       .extensions = ".txt .log",
                                                       .priority = 192,
                                                       .sniff = sniff,
                                                       .open_stream = open_stream};

}  // namespace hotlap
