#include "cli/profile_import.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "ingest/import.h"
#include "record/identity.h"
#include "store/import_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTracesMax = 10'000;

}  // namespace

void ProfileImport::take_new() {
  std::vector<fs::path> traces;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path() / kProfileFolder, failed)) {
    if (entry.path().extension() == ".json" && traces.size() < kTracesMax) traces.push_back(entry.path());
  }
  std::ranges::sort(traces);
  for (const fs::path& trace : traces) {
    const fs::path target = folder_.path() / "trace" / (trace.stem().native() + ".hotlap");
    if (fs::exists(target, failed) || refused_.contains(trace.filename().native())) continue;
    take(trace, target);
  }
}

void ProfileImport::take(const fs::path& trace, const fs::path& target) {
  // Made beside the trace: readers of the run see it when it is whole.
  const fs::path making = fs::path(trace).replace_extension(".making");
  std::error_code ignored;
  if (!is_final_ && fs::exists(making, ignored)) return;
  const auto refuse = [&](const Error& error) {
    HOTLAP_LOG_WARNING("{}: not imported: {}", trace.native(), error.message);
    refused_.insert(trace.filename().native());
    fs::remove(making, ignored);
  };
  fs::remove(making, ignored);  // of one that was killed
  if (const Result<void> made = make_private_folders(target.parent_path()); !made.ok()) return refuse(made.error());
  RecordingInfo info{.id = new_ulid(system_clock()),
                     .run_id = folder_.info().id,
                     .node = folder_.info().node,
                     .hotlap_version = std::string(hotlap_version())};
  info.attributes = {{"source.file", trace.filename().native()}, {std::string(kProfileWindowAttribute), "1"}};
  Result<std::unique_ptr<ImportWriter>> writer = ImportWriter::create(making, info, {});
  if (!writer.ok()) return refuse(writer.error());
  const Result<ImportOutcome> outcome = import_file(trace, **writer, {});
  if (!outcome.ok()) return refuse(outcome.error());
  (*writer)->attribute("source.format", outcome->format);
  if (const Result<void> closed = (*writer)->close(); !closed.ok()) return refuse(closed.error());
  fs::rename(making, target, ignored);
  if (ignored) refuse(Error{ErrorCode::kIo, ignored.message()});
}

}  // namespace hotlap
