// The answer about a run as a Jupyter notebook (nbformat 4): the page of Markdown, and cells that look further. What
// they need is in them, so that the notebook opens anywhere with the standard library alone; where NumPy, pandas,
// Matplotlib or the program hotlap are there, they do more.
#include <algorithm>
#include <map>
#include <ostream>
#include <sstream>

#include "analysis/recorded_steps.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "report/exporter.h"
#include "report/registry.h"

namespace hotlap {
namespace {

constexpr std::size_t kPointsMax = 600;  // of the curve of step times; of more steps, means

constexpr std::string_view kCurve = R"(# Step times: a curve with Matplotlib, or as text.
points = DATA["step_points"]
try:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 3))
    axes.plot([p["start_s"] for p in points], [p["ms"] for p in points], linewidth=0.8)
    axes.set_xlabel("seconds since the first step")
    axes.set_ylabel("step, ms")
    plt.show()
except ImportError:
    top = max([p["ms"] for p in points], default=0) or 1
    for p in points[:: max(1, len(points) // 40)]:
        print("%9.1f s %9.1f ms %s" % (p["start_s"], p["ms"], "#" * round(50 * p["ms"] / top)))
)";

constexpr std::string_view kParts = R"(# Where the time of a typical step goes. None: not measured.
parts = DATA["analysis"]["steps"]["breakdown_pct"]
for name, share in parts.items():
    print("%-16s %s" % (name, "not measured" if share is None else "%5.1f %%  %s" % (share, "#" * round(share / 2))))
)";

constexpr std::string_view kFindings = R"(# Every finding with its evidence.
for finding in DATA["analysis"]["findings"]:
    print(finding["id"], "|", finding["cause"], "|", finding["certainty"])
    for name, value in finding["evidence"].items():
        print("    %-32s %s" % (name, value))
    for advice in finding["advice"]:
        print("    ->", advice["change"], advice["step_ms_low"], advice["step_ms_high"], advice["basis"])
)";

// The Python source of a text. JSON's escapes are Python's.
std::string python_text(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

std::string more_source(std::string_view run_id) {
  return format(
      R"(# Anything else, by SQL: docs/reference/sql.md. Needs the program hotlap and the recording on this machine.
try:
    import hotlap

    run = hotlap.open({})
    steps = run.sql("SELECT process, count(*) AS steps, median(ms) AS median_ms FROM step GROUP BY process")
    try:
        print(steps.to_pandas())
    except hotlap.Error:
        print(steps.columns, *steps.rows(), sep="\n")
except Exception as error:
    print("not here:", error)
)",
      python_text(run_id));
}

void write_source(std::string_view text, JsonWriter& json) {
  json.key("source").begin_array();
  std::string_view rest(text);
  for (std::string_view line; next_line(rest, line);) {
    json.value(std::string_view(rest.empty() ? std::string(line) : std::string(line) + "\n"));
  }
  json.end_array();
}

class Notebook {
 public:
  Notebook() { json_.begin_object().key("cells").begin_array(); }

  void markdown(std::string_view text) {
    begin("markdown");
    write_source(text, json_);
    json_.end_object();
  }
  void code(std::string_view text) {
    begin("code");
    json_.key("execution_count").null();
    json_.key("outputs").begin_array().end_array();
    write_source(text, json_);
    json_.end_object();
  }
  std::string take() {
    json_.end_array().key("metadata").begin_object();
    json_.key("kernelspec").begin_object().field("display_name", "Python 3").field("language", "python");
    json_.field("name", "python3").end_object();
    json_.key("language_info").begin_object().field("name", "python").end_object().end_object();
    json_.field("nbformat", 4).field("nbformat_minor", 5).end_object();
    return json_.take();
  }

 private:
  void begin(std::string_view type) {
    json_.begin_object().field("cell_type", type);
    json_.field("id", std::string_view(format("hotlap-{}", ++cells_)));
    json_.key("metadata").begin_object().end_object();
  }

  JsonWriter json_{JsonWriter::Style::kPretty};
  int cells_ = 0;
};

struct Point {
  double start_s = 0;
  double ms = 0;
};

// The steps of the process with the most of them, as at most kPointsMax means.
Result<std::vector<Point>> step_points(RunReader& run) {
  std::map<std::pair<const RecordingReader*, std::uint32_t>, std::vector<Point>> by_process;
  for (const auto& recording : run.recordings()) {
    HOTLAP_TRY(read_steps(*recording, [&](const Step& step) {
      by_process[{recording.get(), step.process}].push_back(
          {static_cast<double>(step.start_ns) / static_cast<double>(kNsPerS),
           static_cast<double>(step.duration_ns) / static_cast<double>(kNsPerMs)});
    }));
  }
  std::vector<Point> longest;
  for (auto& [process, points] : by_process) {
    if (points.size() > longest.size()) longest = std::move(points);
  }
  const std::size_t each = (longest.size() + kPointsMax - 1) / kPointsMax;
  std::vector<Point> out;
  for (std::size_t i = 0; i < longest.size(); i += each) {
    const std::size_t end = std::min(i + each, longest.size());
    Point mean{.start_s = longest[i].start_s - longest.front().start_s, .ms = 0};
    for (std::size_t k = i; k < end; ++k) mean.ms += longest[k].ms / static_cast<double>(end - i);
    out.push_back(mean);
  }
  return out;
}

Result<void> write(const ReportView& view, std::ostream& out) {
  HOTLAP_TRY_ASSIGN(const std::vector<Point> points, step_points(view.run));
  JsonWriter data;
  data.begin_object().key("analysis").raw(to_json(view.analysis)).key("step_points").begin_array();
  for (const Point& point : points) {
    data.begin_object().field("start_s", point.start_s).field("ms", point.ms).end_object();
  }
  data.end_array().end_object();
  std::ostringstream page;
  for (const ExporterSpec* spec : all_exporters()) {
    if (spec->name == "md") HOTLAP_TRY(spec->write(view, page));
  }
  Notebook notebook;
  notebook.markdown(page.str());
  notebook.code(
      format("# What the cells below show: the answer about the run, and its steps.\nimport json\n\nDATA = "
             "json.loads({})\nprint(DATA[\"analysis\"][\"verdict\"][\"text\"])\n",
             python_text(data.take())));
  notebook.code(kParts);
  notebook.code(kCurve);
  notebook.code(kFindings);
  notebook.code(more_source(view.analysis.run_id));
  out << notebook.take() << '\n';
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_ipynb{.name = "ipynb",
                                                   .summary = "the answer as a Jupyter notebook",
                                                   .media_type = "application/x-ipynb+json",
                                                   .extension = ".ipynb",
                                                   .is_report = true,
                                                   .write = write};

}  // namespace hotlap
