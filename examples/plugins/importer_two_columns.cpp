// Skeleton of an importer: lines "<seconds> <value>". Copy it to src/ingest/plugins/<name>.cpp.
#include <cmath>
#include <string>

#include "base/text.h"
#include "ingest/importer.h"

namespace hotlap {
namespace {

constexpr std::string_view kMagic = "# two columns";
constexpr std::size_t kLineBytesMax = 4096;  // all that is kept of a file whose line never ends
constexpr double kTimeMaxS = 9e9;            // beyond, nanoseconds leave int64

class TwoColumnsImporter final : public StreamImporter {
 public:
  explicit TwoColumnsImporter(ImportSink& out) : out_(out) {}

  // Chunks end anywhere, also inside a line: what is incomplete waits in line_.
  Result<void> push(ByteView chunk_untrusted) override {
    for (const char c : as_text(chunk_untrusted)) {
      ++stats_.bytes;
      if (c == '\n') {
        take_line();
      } else if (line_.size() < kLineBytesMax) {
        line_ += c;
      }
    }
    return {};
  }

  Result<ImportStats> finish() override {
    if (!line_.empty()) take_line();
    return stats_;
  }

 private:
  void take_line() {
    std::string_view rest = line_;
    if (!rest.starts_with('#')) {
      const auto t_s = parse_f64(next_word(rest));
      const auto value = parse_f64(next_word(rest));
      if (t_s && value && std::fabs(*t_s) < kTimeMaxS) {
        const SeriesHandle series = out_.series(MetricDesc{.name = "example.value", .unit = "1"}, {});
        out_.sample(series, std::llround(*t_s * 1e9), Value::of(*value));
        ++stats_.events;
      } else {
        // One bad line costs one line, and users are told.
        out_.count_loss("ingest.events_dropped", 1, static_cast<std::int64_t>(stats_.bytes - line_.size()));
      }
    }
    line_.clear();
  }

  ImportSink& out_;
  ImportStats stats_;
  std::string line_;
};

bool sniff(ByteView head_untrusted, std::string_view) { return as_text(head_untrusted).starts_with(kMagic); }

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<TwoColumnsImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_two_columns{.name = "two_columns",
                                                         .summary = "Seconds and a value in each line.",
                                                         .extensions = ".txt",
                                                         .priority = 1,
                                                         .sniff = sniff,
                                                         .open_stream = open_stream};

}  // namespace hotlap
