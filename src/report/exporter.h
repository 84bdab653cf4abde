#pragma once
// The exporter contract: one file per output format; a function is enough.
#include <iosfwd>
#include <string_view>

#include "base/result.h"
#include "model/finding.h"
#include "store/run_reader.h"
#include "view/analysis_document.h"

namespace hotlap {

struct ReportView {
  RunReader& run;
  const AnalysisDocument& analysis;
};

struct ExporterSpec {
  std::string_view name;  // hotlap export --format NAME
  std::string_view summary;
  std::string_view media_type;
  std::string_view extension;
  bool is_report = false;        // the answer, for people: what `hotlap report` writes
  bool needs_unix_time = false;  // samples of a recording without it have no time in this format
  Result<void> (*write)(const ReportView& view, std::ostream& out) = nullptr;
};

}  // namespace hotlap
