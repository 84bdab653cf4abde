// Skeleton of an exporter: the findings, one a line. Copy it to src/report/plugins/<name>.cpp.
#include <algorithm>
#include <ostream>
#include <string>

#include "base/format.h"
#include "base/text.h"
#include "report/exporter.h"

namespace hotlap {
namespace {

// Text comes from outside: what would end a field or a line, or reach a terminal raw, becomes a space.
std::string field(std::string_view text_untrusted) {
  std::string text = strip_control(text_untrusted);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return text;
}

Result<void> write(const ReportView& view, std::ostream& out) {
  out << "rule\tlost_s\tcause\n";
  for (const Finding& finding : view.analysis.findings) {
    // What is not known stays empty.
    out << finding.rule << '\t' << (finding.lost_s ? format("{:.3f}", *finding.lost_s) : "") << '\t'
        << field(finding.cause) << '\n';
  }
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_findings_tsv{.name = "findings_tsv",
                                                          .summary = "The findings, one a line.",
                                                          .media_type = "text/tab-separated-values",
                                                          .extension = ".tsv",
                                                          .write = write};

}  // namespace hotlap
