// The answer about a run and what was recorded, as one JSON document.
#include <ostream>

#include "base/clock.h"
#include "base/json_writer.h"
#include "report/exporter.h"
#include "view/run_details.h"

namespace hotlap {
namespace {

Result<void> write(const ReportView& view, std::ostream& out) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  json.key("analysis").raw(to_json(view.analysis));
  json.key("recorded").raw(run_details_json(read_run_details(view.run.folder(), system_clock().read().wall_ns)));
  json.end_object();
  out << json.take() << '\n';
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_json{.name = "json",
                                                  .summary = "the analysis and what was recorded, without the samples",
                                                  .media_type = "application/json",
                                                  .extension = ".json",
                                                  .is_report = true,
                                                  .write = write};

}  // namespace hotlap
