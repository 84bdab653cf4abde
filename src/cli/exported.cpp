#include "cli/exported.h"

#include <algorithm>
#include <ostream>

#include "base/descriptor_stream.h"
#include "base/format.h"
#include "cli/shown.h"
#include "report/registry.h"
#include "store/run_reader.h"
#include "view/analyze.h"
#include "view/recording_gaps.h"

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
  const auto write = [&](std::ostream& out) -> Result<void> {
    if (reader.recordings().empty() && !spec.is_report) {
      return Error{ErrorCode::kNotFound,
                   format("{}: {}", folder.path().string(), why_no_recording(folder.info().status))};
    }
    return spec.write(view, out);
  };
  if (!output) {
    HOTLAP_TRY(write(streams.out));
  } else {
    HOTLAP_TRY_ASSIGN(NewFile file, NewFile::create(*output));
    HOTLAP_TRY(write(file.stream()));
    HOTLAP_TRY(file.finish());
  }
  if (spec.needs_unix_time) {
    const auto count =
        std::ranges::count_if(reader.recordings(), [](const auto& one) { return lacks_unix_time(*one); });
    if (count > 0) {
      streams.err << format(
          "hotlap: the Unix time of {} of {} recordings is not known: their samples have no time in "
          "{}; npz and chrome have the time since their start\n",
          count, reader.recordings().size(), spec.name);
    }
  }
  for (const Error& problem : reader.problems()) streams.err << "hotlap: " << one_line(problem.message) << '\n';
  return int{reader.problems().empty() ? kExitSuccess : kExitFailed};
}

}  // namespace hotlap
