// Python stacks as they were counted, "main;training;MainThread;train (job.py:12) 40": for flamegraph.pl and
// speedscope.
#include <ostream>

#include "report/exporter.h"
#include "store/stack_files.h"

namespace hotlap {
namespace {

std::string label_of(const ReportView& view, std::int32_t pid) {
  for (const std::unique_ptr<RecordingReader>& reader : view.run.recordings()) {
    if (is_profile_window(reader->info())) continue;
    const auto processes = reader->read_processes();
    if (!processes.ok()) continue;
    for (const ProcessInfo& process : *processes) {
      if (process.pid == pid) return slot_label(process);
    }
  }
  return "process " + std::to_string(pid);
}

Result<void> write(const ReportView& view, std::ostream& out) {
  std::int32_t pid = 0;
  std::string label;
  HOTLAP_TRY(read_stacks(view.run.folder().path(), [&](const SampledStack& stack) -> Result<void> {
    if (stack.pid != pid) {
      pid = stack.pid;
      label = label_of(view, pid);
    }
    out << label << ';' << stack.phase << ';' << stack.thread << ';' << stack.frames << ' ' << stack.samples << '\n';
    return {};
  }));
  if (pid != 0) return {};
  return Error{ErrorCode::kNotFound,
               "no stacks were counted: record with hotlap run --profile functions=20hz, or hotlap set RUN --profile "
               "functions=20hz"};
}

}  // namespace

extern constinit const ExporterSpec exporter_stacks{.name = "stacks",
                                                    .summary = "Python stacks by phase, folded, for flame graphs",
                                                    .media_type = "text/plain",
                                                    .extension = ".stacks",
                                                    .write = write};

}  // namespace hotlap
