// SageMaker Debugger's timelines of the framework: one file of profiler-output/framework/pevents.
#include "ingest/importer.h"
#include "ingest/smdebug.h"

namespace hotlap {
namespace {

class SmdebugTimelineImporter final : public StreamImporter {
 public:
  explicit SmdebugTimelineImporter(ImportSink& out) : reader_(out, processes_, {}) {}
  Result<void> push(ByteView chunk_untrusted) override {
    reader_.push(chunk_untrusted);
    return {};
  }
  Result<ImportStats> finish() override { return reader_.finish(); }

 private:
  SmdebugProcesses processes_;
  SmdebugTimeline reader_;
};

bool sniff(ByteView head_untrusted, std::string_view) { return looks_like_smdebug_timeline(head_untrusted); }

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<SmdebugTimelineImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_smdebug_timeline{
    .name = "smdebug_timeline",
    .summary = "Timelines of SageMaker Debugger: profiler-output/framework/pevents/….json.",
    .extensions = ".json",
    .priority = 320,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
