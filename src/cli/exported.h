#pragma once
// What `export` and `report` share: the exporter that a file's name asks for, and a run written with it.
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/command.h"
#include "report/exporter.h"
#include "rules/engine.h"
#include "store/run_folder.h"

namespace hotlap {

// By the end of the name, the longest that fits: "run.trace.json" is for Perfetto, "run.json" is not. Null: none.
const ExporterSpec* exporter_for(std::string_view file_name);

// To `output`, which appears whole or not at all, or to standard output. The exit code: 1 where part of the run could
// not be read, which is said; the rest is written all the same.
Result<int> write_exported(const ExporterSpec& spec, const RunFolder& folder, const RuleSettings& settings,
                           const std::optional<std::string>& output, Streams& streams);

}  // namespace hotlap
