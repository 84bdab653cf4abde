// Chrome trace JSON: PyTorch's profilers (Kineto, legacy), and every other program that writes this format. The
// importer of last resort for JSON: what is JSON and no trace is named for what it looks like.
#include <algorithm>
#include <string>

#include "base/format.h"
#include "ingest/importer.h"
#include "ingest/json_looks.h"
#include "ingest/trace_assembler.h"
#include "ingest/trace_reader.h"

namespace hotlap {
namespace {

constexpr std::size_t kHeadBytes = 4096;

class ChromeTraceImporter final : public StreamImporter {
 public:
  explicit ChromeTraceImporter(ImportSink& out)
      : assembler_(out), reader_(assembler_, {.is_strict = out.is_strict(), .kept = &out.kept_arguments()}) {}

  Result<void> push(ByteView chunk_untrusted) override {
    if (head_.size() < kHeadBytes) {
      head_ += as_text(chunk_untrusted.first(std::min(chunk_untrusted.size(), kHeadBytes - head_.size())));
    }
    reader_.push(chunk_untrusted);
    return {};
  }

  Result<ImportStats> finish() override {
    reader_.finish();
    if (!assembler_.has_content()) {
      const std::uint64_t unread = assembler_.events_unread();
      std::string why = json_looks(head_);
      if (assembler_.events() > 0) {
        why = "it only describes processes: there is no event with a time";
      } else if (unread > 0) {
        why = format("none of its {} events can be read", unread);
      }
      return Error{ErrorCode::kUnsupported, "no trace: " + why};
    }
    assembler_.finish();
    return ImportStats{.bytes = reader_.bytes(), .events = assembler_.events()};
  }

 private:
  TraceAssembler assembler_;
  TraceReader reader_;
  std::string head_;
};

// Also behind a line or two of something else, as programs print that write their trace to a terminal's output.
bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string_view head = as_text(head_untrusted);
  const bool has_events =
      head.find("\"traceEvents\"") != std::string_view::npos ||
      (head.find("\"ph\"") != std::string_view::npos && head.find("\"ts\"") != std::string_view::npos);
  return is_json_container(head) || has_events;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<ChromeTraceImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_chrome_trace{
    .name = "chrome_trace",
    .summary = "Chrome trace JSON: PyTorch's profiler (Kineto and legacy) and every other writer of the format.",
    .extensions = ".json .json.gz .json.zst .pt.trace.json",
    .priority = 10,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
