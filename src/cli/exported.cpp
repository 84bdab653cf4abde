#include "cli/exported.h"

#include <ostream>

#include "base/descriptor_stream.h"
#include "cli/shown.h"
#include "report/registry.h"
#include "store/run_reader.h"
#include "view/analyze.h"

namespace hotlap {

const ExporterSpec* exporter_for(std::string_view file_name) {
  const ExporterSpec* best = nullptr;
  for (const ExporterSpec* spec : all_exporters()) {
    if (!file_name.ends_with(spec->extension)) continue;
    if (best == nullptr || spec->extension.size() > best->extension.size()) best = spec;
  }
  return best;
}

Result<int> write_exported(const ExporterSpec& spec, const RunFolder& folder, const RuleSettings& settings,
                           const std::optional<std::string>& output, Streams& streams) {
  HOTLAP_TRY_ASSIGN(RunReader reader, RunReader::open(folder));
  HOTLAP_TRY_ASSIGN(const AnalysisDocument analysis, analyze_run(folder, settings));
  const ReportView view{.run = reader, .analysis = analysis};
  if (!output) {
    HOTLAP_TRY(spec.write(view, streams.out));
  } else {
    HOTLAP_TRY_ASSIGN(NewFile file, NewFile::create(*output));
    HOTLAP_TRY(spec.write(view, file.stream()));
    HOTLAP_TRY(file.finish());
  }
  for (const Error& problem : reader.problems()) streams.err << "hotlap: " << one_line(problem.message) << '\n';
  return int{reader.problems().empty() ? kExitSuccess : kExitFailed};
}

}  // namespace hotlap
