// The run for chrome://tracing, Perfetto and TensorBoard: spans as slices by process and thread, sampled series as
// counters, findings and events as instants. Times are microseconds since the run's first sample.
#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "base/clock.h"
#include "base/format.h"
#include "base/json_writer.h"
#include "model/counter.h"
#include "model/wall_clock.h"
#include "report/exporter.h"

namespace hotlap {
namespace {

constexpr std::int64_t kMachinePid = 0;  // counters and findings; slots of processes begin at 1
constexpr std::int64_t kPidsPerRecording = 1'000'000;
constexpr std::size_t kSpansAtOnceMax = 50'000;
constexpr double kRowsAtOnceMax = 100e3;

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {
    out_ << "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"made by\":\"hotlap\"},\"traceEvents\":[";
  }
  void event(JsonWriter& json) { out_ << (count_++ == 0 ? "\n" : ",\n") << json.take(); }
  void end() { out_ << "\n]}\n"; }
  bool good() const { return out_.good(); }

 private:
  std::ostream& out_;
  std::uint64_t count_ = 0;
};

// {"name", "ph", "pid", "tid", …} left open.
void begin(JsonWriter& json, std::string_view name, std::string_view phase, std::int64_t pid, std::int64_t tid) {
  json.begin_object().field("name", name).field("ph", phase).field("pid", pid).field("tid", tid);
}

class RecordingExport {
 public:
  RecordingExport(RecordingReader& reader, std::int64_t number, std::int64_t begin_ns, Writer& out)
      : reader_(reader), first_pid_(number * kPidsPerRecording), begin_ns_(begin_ns), out_(out) {}

  Result<void> write() {
    HOTLAP_TRY(name_processes());
    HOTLAP_TRY_ASSIGN(extent_, reader_.extent());
    if (extent_.from_ns > extent_.to_ns) return {};
    HOTLAP_TRY(write_spans());
    HOTLAP_TRY(write_counters());
    return write_events();
  }

  double us(std::int64_t t_ns) const {
    return (static_cast<double>(t_ns) - static_cast<double>(begin_ns_)) / static_cast<double>(kNsPerUs);
  }
  std::int64_t machine() const { return first_pid_ + kMachinePid; }

 private:
  void name_process(std::int64_t pid, const std::string& name, std::int64_t place) {
    JsonWriter json;
    begin(json, "process_name", "M", pid, 0);
    json.key("args").begin_object().field("name", std::string_view(name)).end_object().end_object();
    out_.event(json);
    JsonWriter order;
    begin(order, "process_sort_index", "M", pid, 0);
    order.key("args").begin_object().field("sort_index", place).end_object().end_object();
    out_.event(order);
  }

  Result<void> name_processes() {
    const std::string node = reader_.info().node.empty() ? "machine" : reader_.info().node;
    name_process(machine(), node + ": machine", first_pid_ + kPidsPerRecording - 1);
    HOTLAP_TRY_ASSIGN(const std::vector<ProcessInfo> processes, reader_.read_processes());
    for (const ProcessInfo& process : processes) {
      if (process.slot >= kPidsPerRecording) continue;
      name_process(first_pid_ + process.slot, format("{}: {} (pid {})", node, slot_label(process), process.pid),
                   first_pid_ + process.slot);
    }
    return {};
  }

  void write_span(const Span& span) {
    const bool has_end = span.duration_ns >= 0;
    std::string name(to_string(span.kind));
    if (const std::string own = span.name == 0 ? std::string() : reader_.name(span.name); !own.empty()) {
      name = span.kind == SpanKind::kUser ? own : format("{} {}", name, own);
    } else if (span.kind == SpanKind::kStep && span.step >= 0) {
      name = format("step {}", span.step);
    }
    JsonWriter json;
    // A slice whose end was not seen has begun, and that is all that is known.
    begin(json, name, has_end ? "X" : "i", first_pid_ + span.process, span.thread);
    json.field("cat", to_string(span.kind)).field("ts", us(span.start_ns));
    if (has_end) {
      json.field("dur", static_cast<double>(span.duration_ns) / static_cast<double>(kNsPerUs));
    } else {
      json.field("s", "t");
    }
    json.key("args").begin_object();
    if (!has_end) json.field("end", "not seen");
    if (span.step >= 0) json.field("step", span.step);
    if (span.value_a != -1) json.field("value_a", span.value_a);
    if (span.value_b != -1) json.field("value_b", span.value_b);
    json.end_object().end_object();
    out_.event(json);
  }

  Result<void> write_spans() {
    std::int64_t window_ns = 10 * kNsPerS;
    for (std::int64_t from_ns = extent_.from_ns; from_ns <= extent_.to_ns && out_.good();) {
      const std::int64_t to_ns = extent_.to_ns - from_ns > window_ns ? from_ns + window_ns : extent_.to_ns + 1;
      std::vector<Span> spans;
      HOTLAP_TRY(reader_.read_spans({}, {.from_ns = from_ns, .to_ns = to_ns}, [&](std::span<const Span> some) {
        spans.insert(spans.end(), some.begin(), some.end());
      }));
      // Viewers nest slices by their order: the outer one of two that begin together first.
      std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
      });
      for (const Span& span : spans) {
        if (span.process < kPidsPerRecording) write_span(span);
      }
      from_ns = to_ns;
      window_ns =
          spans.size() > kSpansAtOnceMax ? std::max(window_ns / 2, kNsPerMs) : std::min(window_ns * 2, 3'600 * kNsPerS);
    }
    return {};
  }

  void write_counter(const StoredSeries& series, std::int64_t t_ns, double value) {
    if (!std::isfinite(value)) return;
    JsonWriter json;
    const std::string name = series.instance.empty() ? series.metric : format("{} {}", series.metric, series.instance);
    begin(json, name, "C", machine(), 0);
    json.field("ts", us(t_ns)).key("args").begin_object();
    const bool is_rate = series.kind == MetricKind::kCounter;
    json.field(is_rate               ? std::string_view("per s")
               : series.unit.empty() ? std::string_view("value")
                                     : std::string_view(series.unit),
               value);
    json.end_object().end_object();
    out_.event(json);
  }

  // Gauges as they are; of counters the rate, since the height of a counter says nothing. What is missing is left out:
  // a viewer has no form for it, and 0 would be one.
  Result<void> write_counters() {
    std::vector<SeriesHandle> wanted;
    std::map<std::uint32_t, const StoredSeries*> by_handle;
    std::map<std::uint32_t, SamplePoint> last;
    for (const StoredSeries& series : reader_.series()) {
      wanted.push_back(series.handle);
      by_handle[series.handle.index] = &series;
    }
    if (wanted.empty()) return {};
    const auto interval_ns = static_cast<double>(std::max(reader_.info().interval_ns, kNsPerMs));
    const double window = kRowsAtOnceMax / static_cast<double>(wanted.size()) * interval_ns;
    const std::int64_t window_ns = std::max(static_cast<std::int64_t>(std::min(window, 1e15)), kNsPerS);
    for (std::int64_t from_ns = extent_.from_ns; from_ns <= extent_.to_ns && out_.good();) {
      const std::int64_t to_ns = extent_.to_ns - from_ns > window_ns ? from_ns + window_ns : extent_.to_ns + 1;
      const auto take = [&](SeriesHandle handle, std::span<const SamplePoint> points) {
        const StoredSeries& series = *by_handle[handle.index];
        for (const SamplePoint& point : points) {
          if (series.kind != MetricKind::kCounter) {
            if (const auto value = point.value.number()) write_counter(series, point.t_ns, *value * series.scale);
            continue;
          }
          const auto [before, is_first] = last.try_emplace(handle.index, point);
          if (is_first) continue;
          const auto delta = counter_delta(before->second.value, point.value).number();
          const std::int64_t dt_ns = point.t_ns - before->second.t_ns;
          if (delta && dt_ns > 0) {
            write_counter(series, point.t_ns, *delta * series.scale * 1e9 / static_cast<double>(dt_ns));
          }
          before->second = point;
        }
      };
      HOTLAP_TRY(reader_.read_samples(wanted, {.from_ns = from_ns, .to_ns = to_ns}, take));
      from_ns = to_ns;
    }
    return {};
  }

  Result<void> write_events() {
    HOTLAP_TRY_ASSIGN(const std::vector<Event> events, reader_.read_events({}));
    for (const Event& event : events) {
      JsonWriter json;
      const std::string kind(to_string(event.kind));
      begin(json, event.text.empty() ? kind : format("{}: {}", kind, event.text), "i", machine(), 0);
      json.field("cat", "event").field("s", "p").field("ts", us(event.t_ns)).key("args").begin_object();
      json.field("value", event.value).end_object().end_object();
      out_.event(json);
    }
    return {};
  }

  RecordingReader& reader_;
  std::int64_t first_pid_;
  std::int64_t begin_ns_;
  Writer& out_;
  TimeRange extent_;
};

void write_findings(const AnalysisDocument& d, const RecordingExport& recording, Writer& out) {
  for (const Finding& finding : d.findings) {
    JsonWriter json;
    begin(json, format("{}: {}", finding.rule, finding.cause), "i", recording.machine(), 1);
    json.field("cat", "finding").field("s", "g").field("ts", std::max(recording.us(finding.from_ns), 0.0));
    json.key("args").begin_object().field("severity", to_string(finding.severity));
    json.field("certainty", to_string(finding.certainty)).field("lost_pct", finding.lost_pct);
    json.field("lost_s", finding.lost_s);
    if (!finding.advice.empty()) json.field("advice", std::string_view(finding.advice.front().change));
    json.end_object().end_object();
    out.event(json);
  }
}

// Where 0 lies on the clock of each recording: at the first sample of the run, where Unix time brings the clocks of
// several nodes together, else at each one's own.
Result<std::vector<std::int64_t>> begins(RunReader& run) {
  std::vector<std::int64_t> out;
  std::vector<std::optional<std::int64_t>> walls_ns;
  std::optional<std::int64_t> first_wall_ns;
  for (const std::unique_ptr<RecordingReader>& reader : run.recordings()) {
    HOTLAP_TRY_ASSIGN(const TimeRange extent, reader->extent());
    HOTLAP_TRY_ASSIGN(std::vector<ClockReading> readings, reader->read_clock());
    const bool is_empty = extent.from_ns > extent.to_ns;
    out.push_back(is_empty ? 0 : extent.from_ns);
    walls_ns.push_back(is_empty ? std::nullopt : WallClock(std::move(readings)).wall_ns(extent.from_ns));
    if (walls_ns.back()) first_wall_ns = std::min(first_wall_ns.value_or(*walls_ns.back()), *walls_ns.back());
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!walls_ns[i]) continue;
    const std::uint64_t later = static_cast<std::uint64_t>(*walls_ns[i]) - static_cast<std::uint64_t>(*first_wall_ns);
    out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(out[i]) - later);
  }
  return out;
}

Result<void> write(const ReportView& view, std::ostream& out) {
  Writer writer(out);
  HOTLAP_TRY_ASSIGN(const std::vector<std::int64_t> begins_ns, begins(view.run));
  std::int64_t number = 0;
  for (const std::unique_ptr<RecordingReader>& reader : view.run.recordings()) {
    const std::int64_t begin_ns = begins_ns[static_cast<std::size_t>(number)];
    RecordingExport recording(*reader, number++, begin_ns, writer);
    HOTLAP_TRY(recording.write());
    if (number == 1) write_findings(view.analysis, recording, writer);
  }
  writer.end();
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_chrome{
    .name = "chrome",
    .summary = "spans, series and findings for Perfetto and chrome://tracing",
    .media_type = "application/json",
    .extension = ".trace.json",
    .write = write};

}  // namespace hotlap
