#include "view/run_details.h"

#include <algorithm>

#include "base/clock.h"
#include "model/value.h"
#include "view/recording_gaps.h"

namespace hotlap {
namespace {

constexpr double kSamplesReadMax = 4e6;  // 100 MB in memory, some 50 ms
constexpr std::size_t kTierPoints = 1'000;
constexpr std::uint64_t kSpanFileBytesMax = std::uint64_t{256} << 20U;
constexpr std::size_t kEventsInJsonMax = 10'000;

struct SeriesCount {
  std::uint64_t values = 0;
  std::uint64_t missing = 0;
  std::map<std::string, std::uint64_t> reasons;
};
using SeriesCounts = std::map<std::uint32_t, SeriesCount>;  // by handle

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

void count_samples(std::span<const SamplePoint> points, bool with_totals, SeriesCount& into) {
  for (const SamplePoint& point : points) {
    if (point.value.is_missing()) ++into.reasons[std::string(to_string(point.value.reason()))];
    if (with_totals) ++(point.value.is_missing() ? into.missing : into.values);
  }
}

class DetailsReader {
 public:
  DetailsReader(RecordingReader& reader, std::vector<std::string>& problems) : reader_(reader), problems_(problems) {}

  void read(RecordingDetails& out) {
    out.info = reader_.info();
    out.is_closed = reader_.is_closed();
    const Result<TimeRange> extent = reader_.extent();
    if (extent.ok() && extent->from_ns <= extent->to_ns) out.extent = *extent;
    if (out.extent) read_series(out);
    if (out.bytes <= kSpanFileBytesMax) read_spans(out);
    take(reader_.read_processes(), out.processes);
    take(reader_.read_events({}), out.events);
    take(reader_.read_attributes(), out.attributes);
    read_phases(out);
    take(reader_.read_losses(), out.losses);  // last: what reading skipped is in it
  }

 private:
  template <class T>
  void take(Result<T> got, T& into) {
    if (got.ok()) {
      into = std::move(got).value();
    } else {
      problems_.push_back(got.error().message);
    }
  }
  void note(const Result<void>& done) {
    if (!done.ok()) problems_.push_back(done.error().message);
  }

  void read_series(RecordingDetails& out) {
    std::vector<SeriesHandle> all;
    for (const StoredSeries& series : reader_.series()) all.push_back(series.handle);
    const double length_s = seconds(out.extent->to_ns - out.extent->from_ns);
    const double interval_s = seconds(std::max(out.info.interval_ns, kNsPerMs));
    const double samples_per_s = static_cast<double>(all.size()) / interval_s;
    out.is_every_sample_read = length_s * samples_per_s <= kSamplesReadMax;
    SeriesCounts counts;
    if (out.is_every_sample_read) {
      note(reader_.read_samples(all, {}, [&](SeriesHandle series, std::span<const SamplePoint> points) {
        count_samples(points, true, counts[series.index]);
      }));
    } else {
      note(reader_.read_tiers(all, {}, kTierPoints, [&](SeriesHandle series, std::span<const TierPoint> points) {
        for (const TierPoint& point : points) {
          counts[series.index].values += point.count;
          counts[series.index].missing += point.missing;
        }
      }));
      const auto window_ns = static_cast<std::int64_t>(kSamplesReadMax / samples_per_s * static_cast<double>(kNsPerS));
      const TimeRange last{.from_ns = out.extent->to_ns - window_ns, .to_ns = INT64_MAX};
      note(reader_.read_samples(all, last, [&](SeriesHandle series, std::span<const SamplePoint> points) {
        count_samples(points, false, counts[series.index]);
      }));
    }
    group(counts, length_s, out);
  }

  void group(const SeriesCounts& counts, double length_s, RecordingDetails& out) {
    std::map<std::string, SeriesGroup> groups;
    for (const StoredSeries& series : reader_.series()) {
      SeriesGroup& group = groups[series.metric.substr(0, series.metric.find('.'))];
      ++group.series;
      const auto found = counts.find(series.handle.index);
      if (found == counts.end()) continue;
      const SeriesCount& count = found->second;
      group.values += count.values;
      group.missing += count.missing;
      for (const auto& [reason, times] : count.reasons) group.missing_by_reason[reason] += times;
      const std::uint64_t samples = count.values + count.missing;
      if (length_s <= 0 || samples < 2) continue;
      group.samples_per_s = std::max(group.samples_per_s.value_or(0), static_cast<double>(samples - 1) / length_s);
    }
    for (auto& [name, group] : groups) {
      group.collector = name;
      out.groups.push_back(std::move(group));
    }
  }

  void read_spans(RecordingDetails& out) {
    std::map<SpanKind, std::uint64_t> counts;
    note(reader_.read_spans({}, {}, [&](std::span<const Span> spans) {
      for (const Span& span : spans) ++counts[span.kind];
    }));
    for (const auto& [kind, count] : counts) out.spans.push_back({kind, count});
  }

  static void read_phases(RecordingDetails& out) {
    for (const Event& event : out.events) {
      if (event.kind != EventKind::kPhase) continue;
      if (!out.phases.empty()) out.phases.back().to_ns = event.t_ns;
      out.phases.push_back({event.text, event.t_ns, event.t_ns});
    }
    if (!out.phases.empty() && out.extent) {
      out.phases.back().to_ns = std::max(out.phases.back().from_ns, out.extent->to_ns);
    }
  }

  RecordingReader& reader_;
  std::vector<std::string>& problems_;
};

void add_group(const SeriesGroup& group, JsonWriter& json) {
  json.begin_object().field("collector", group.collector).field("series", group.series);
  json.field("values", group.values).field("missing", group.missing).field("samples_per_s", group.samples_per_s);
  json.key("missing_by_reason").begin_object();
  for (const auto& [reason, count] : group.missing_by_reason) json.field(reason, count);
  json.end_object().end_object();
}

void add_process(const ProcessInfo& process, JsonWriter& json) {
  json.begin_object().field("slot", slot_label(process)).field("role", to_string(process.role));
  json.field("index", process.index < 0 ? std::nullopt : std::optional<std::int64_t>(process.index));
  json.field("pid", int{process.pid});
  add_time_field("start_mono_ns", process.start_ns, json);
  add_time_field("end_mono_ns", process.end_ns, json);
  json.field("hook", process.has_hook).key("hook_absent_reason");
  if (process.has_hook || process.hook_absent_reason.empty()) {
    json.null();
  } else {
    json.value(process.hook_absent_reason);
  }
  json.field("command", process.command).end_object();
}

void add_events(const RecordingDetails& recording, JsonWriter& json) {
  const std::size_t shown = std::min(recording.events.size(), kEventsInJsonMax);
  json.key("events").begin_array();
  for (std::size_t i = 0; i < shown; ++i) {
    const Event& event = recording.events[i];
    json.begin_object().field("kind", to_string(event.kind));
    add_time_field("t_mono_ns", event.t_ns, json);
    json.field("value", event.value).field("text", event.text).end_object();
  }
  json.end_array().field("events_left_out", std::uint64_t{recording.events.size() - shown});
}

void add_recording(const RecordingDetails& recording, JsonWriter& json) {
  json.begin_object().field("id", recording.info.id).field("node", recording.info.node);
  json.field("file", recording.file.string()).field("bytes", recording.bytes).field("closed", recording.is_closed);
  json.field("hotlap_version", recording.info.hotlap_version);
  add_time_field("from_mono_ns", recording.extent ? recording.extent->from_ns : -1, json);
  add_time_field("to_mono_ns", recording.extent ? recording.extent->to_ns : -1, json);
  json.key("series").begin_array();
  for (const SeriesGroup& group : recording.groups) add_group(group, json);
  json.end_array().field("every_sample_read", recording.is_every_sample_read).key("spans").begin_object();
  for (const SpanCount& count : recording.spans) json.field(to_string(count.kind), count.count);
  json.end_object().key("processes").begin_array();
  for (const ProcessInfo& process : recording.processes) add_process(process, json);
  json.end_array().key("phases").begin_array();
  for (const PhaseStretch& phase : recording.phases) {
    json.begin_object().field("phase", phase.name);
    add_time_field("from_mono_ns", phase.from_ns, json);
    json.field("duration_s", seconds(phase.to_ns - phase.from_ns)).end_object();
  }
  json.end_array();
  add_events(recording, json);
  json.key("losses").begin_array();
  for (const Loss& loss : recording.losses) {
    json.begin_object().field("counter", loss.counter).field("count", loss.count);
    json.field("first_offset", loss.first_offset < 0 ? std::nullopt : std::optional(loss.first_offset));
    json.field("help", loss.help).end_object();
  }
  json.end_array().key("attributes").begin_object();
  for (const auto& [key, text] : recording.attributes) json.field(key, text);
  json.end_object().end_object();
}

}  // namespace

RunDetails read_run_details(const RunFolder& folder, std::int64_t now_wall_ns) {
  RunDetails details;
  details.summary = summarize_run(folder, now_wall_ns);
  const Result<RunReader> run = RunReader::open(folder);
  if (!run.ok()) {
    details.problems.push_back(run.error().message);
    return details;
  }
  for (const Error& problem : run->problems()) details.problems.push_back(problem.message);
  if (run->recordings().empty() && details.problems.empty() && details.summary.status != RunStatus::kRunning) {
    details.problems.push_back(folder.path().string() + ": " + std::string(why_no_recording(details.summary.status)));
  }
  for (std::size_t i = 0; i < run->recordings().size(); ++i) {
    RecordingDetails& recording = details.recordings.emplace_back();
    recording.file = run->files()[i];
    std::error_code unknown;
    const std::uintmax_t bytes = std::filesystem::file_size(recording.file, unknown);
    recording.bytes = unknown ? 0 : bytes;
    DetailsReader(*run->recordings()[i], details.problems).read(recording);
  }
  return details;
}

std::string run_details_json(const RunDetails& details) {
  const RunInfo& info = details.summary.info;
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("schema", 1).key("run").begin_object();
  add_run_members(details.summary, json);
  json.field("script", info.script).field("working_directory", info.working_directory);
  json.field("hotlap_version", info.hotlap_version).key("price");
  if (info.price) {
    json.begin_object().field("per_hour", info.price->per_hour).field("currency", info.price->currency);
    json.field("source", info.price->source).end_object();
  } else {
    json.null();
  }
  json.key("environment").begin_object();
  for (const auto& [name, value] : info.environment) json.field(name, value);
  json.end_object().key("join_keys").begin_object();
  for (const auto& [name, value] : info.join_keys) json.field(name, value);
  json.end_object().end_object();
  add_verdict(details.summary, json);
  json.key("recordings").begin_array();
  for (const RecordingDetails& recording : details.recordings) add_recording(recording, json);
  json.end_array().key("problems").begin_array();
  for (const std::string& problem : details.problems) json.value(problem);
  json.end_array().end_object();
  return json.take();
}

}  // namespace hotlap
