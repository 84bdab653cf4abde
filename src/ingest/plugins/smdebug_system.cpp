// SageMaker Debugger's system metrics: one file of profiler-output/system.
#include "ingest/importer.h"
#include "ingest/smdebug.h"

namespace hotlap {
namespace {

class SmdebugSystemImporter final : public StreamImporter {
 public:
  explicit SmdebugSystemImporter(ImportSink& out) : reader_(out) {}
  Result<void> push(ByteView chunk_untrusted) override {
    reader_.push(chunk_untrusted);
    return {};
  }
  Result<ImportStats> finish() override { return reader_.finish(); }

 private:
  SmdebugSystem reader_;
};

bool sniff(ByteView head_untrusted, std::string_view) { return looks_like_smdebug_system(head_untrusted); }

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<SmdebugSystemImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_smdebug_system{
    .name = "smdebug_system",
    .summary = "System metrics of SageMaker Debugger: profiler-output/system/….json.",
    .extensions = ".json",
    .priority = 310,
    .sniff = sniff,
    .open_stream = open_stream};

}  // namespace hotlap
