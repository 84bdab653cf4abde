// hotlap's own plain series format as JSON lines (docs/reference/ingest.md): samples, series, steps and facts, an
// object each. Objects in one array are read as well.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/json_objects.h"
#include "ingest/series_processes.h"

namespace hotlap {
namespace {

constexpr std::size_t kObjectBytesMax = std::size_t{4} << 20;
constexpr double kTimeMaxS = 9e9;                                 // beyond, nanoseconds leave int64
constexpr std::int64_t kUnixTimeMinNs = 1'000'000'000 * kNsPerS;  // 2001
constexpr std::size_t kMetricNameMax = 256;
constexpr std::size_t kProcessesMax = 65'536;
constexpr std::size_t kShapeMax = 120;  // characters

// As the analyzer of shapes reads it.
std::string step_shape_name(std::string_view shape) { return "shape " + strip_control(shape.substr(0, kShapeMax)); }

std::optional<std::int64_t> time_ns(const JsonValue& value) {
  const auto t_s = value.number();
  if (!t_s || !(std::fabs(*t_s) < kTimeMaxS)) return std::nullopt;
  return std::llround(*t_s * 1e9);
}

class SeriesJsonImporter final : public StreamImporter {
 public:
  explicit SeriesJsonImporter(ImportSink& out) : out_(out), processes_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    objects_.push(chunk_untrusted, [&](const JsonObjectText& object) { take(object); });
    return {};
  }
  Result<ImportStats> finish() override {
    objects_.finish([&](const JsonObjectText& object) { take(object); });
    return ImportStats{.bytes = objects_.bytes(), .events = events_};
  }

 private:
  void take(const JsonObjectText& object) {
    const bool is_read = object.is_whole && take_object(object.text);
    if (!is_read) out_.count_loss("ingest.events_dropped", 1, object.offset);
  }

  bool take_object(std::string_view text_untrusted) {
    const auto document = JsonDocument::parse(text_untrusted, true);
    if (!document.ok()) return false;
    const JsonValue root = document->root();
    if (root["clock"].exists()) return take_clock(root);
    if (root["attribute"].exists()) return take_attribute(root);
    if (root["step"].exists()) return take_step(root);
    if (root["values"].exists()) return take_values(root);
    if (root["points"].exists()) return take_points(root);
    return take_sample(root);
  }

  // {"clock": "unix", "uncertainty_s": 0.01}
  bool take_clock(const JsonValue& root) {
    const auto clock = root["clock"].text();
    if (clock != "unix" && clock != "relative") return false;
    const auto uncertainty = time_ns(root["uncertainty_s"]);
    is_clock_told_ = true;
    out_.clock({.offset_ns = 0, .uncertainty_ns = uncertainty.value_or(-1), .is_absolute = clock == "unix"});
    return true;
  }

  // Nobody told: seconds since 1970 are Unix time, small ones are not.
  void tell_clock(std::int64_t t_ns) {
    if (std::exchange(is_clock_told_, true)) return;
    out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = t_ns >= kUnixTimeMinNs});
  }

  // {"attribute": "gpu0.name", "text": "…"}
  bool take_attribute(const JsonValue& root) {
    const auto key = root["attribute"].text();
    const auto text = root["text"].text();
    if (!key || !text || key->empty() || key->size() > kMetricNameMax) return false;
    out_.attribute(strip_control(*key), strip_control(*text));
    return true;
  }

  // {"step": 12, "start_s": 1.5, "duration_s": 0.25, "rank": 0, "data_wait_s": 0.1, "samples": 64, "tokens": 8192}
  bool take_step(const JsonValue& root) {
    const auto index = root["step"].integer();
    const auto start_ns = time_ns(root["start_s"]);
    const auto duration_ns = time_ns(root["duration_s"]);
    if (!index || *index < 0 || !start_ns || !duration_ns || *duration_ns < 0) return false;
    const auto rank = root["rank"].integer();
    if (rank && (*rank < 0 || *rank > INT32_MAX)) return false;
    tell_clock(*start_ns);
    const std::uint32_t slot = process_of(rank);
    // What makes a step unlike others: its input's shape.
    std::string shape = root["shape"].text().value_or("");
    if (const auto number = root["shape"].integer()) shape = std::to_string(*number);
    Span step{.start_ns = *start_ns,
              .duration_ns = *duration_ns,
              .kind = SpanKind::kStep,
              .process = slot,
              .name = shape.empty() ? 0 : out_.name(step_shape_name(shape)),
              .step = *index,
              .value_a = root["samples"].integer().value_or(-1),
              .value_b = root["tokens"].integer().value_or(-1)};
    if (const auto wait_ns = time_ns(root["data_wait_s"]); wait_ns && *wait_ns >= 0) {
      // Its place in the step is not told; it is put at the beginning, where loops fetch.
      out_.span({.start_ns = *start_ns,
                 .duration_ns = std::min(*wait_ns, *duration_ns),
                 .kind = SpanKind::kDataWait,
                 .process = slot,
                 .step = *index});
    }
    out_.span(step);
    ++events_;
    return true;
  }

  std::uint32_t process_of(std::optional<std::int64_t> rank) {
    const std::int64_t key = rank.value_or(-1);
    const auto found = slots_.find(key);
    if (found != slots_.end()) return found->second;
    if (slots_.size() == kProcessesMax) return 0;
    ProcessInfo process{.role = rank ? ProcessRole::kRank : ProcessRole::kMain};
    if (rank) process.index = static_cast<std::int32_t>(*rank);
    return slots_.emplace(key, out_.process(process)).first->second;
  }

  // {"t_s": 1.5, "metric": "a.b", "instance": "x", "value": 1, "unit": "By", "kind": "counter"}
  bool take_sample(const JsonValue& root) {
    const auto metric = root["metric"].text();
    const auto t_ns = time_ns(root["t_s"]);
    if (!metric || !t_ns || !root["value"].exists()) return false;
    return give(root, *metric, *t_ns, root["value"]);
  }

  // {"t_s": 1.5, "instance": "x", "values": {"a.b": 1, "c.d": null}}
  bool take_values(const JsonValue& root) {
    const auto t_ns = time_ns(root["t_s"]);
    if (!t_ns || !root["values"].is_object()) return false;
    const std::vector<std::string> keys = root["values"].keys();
    bool is_read = true;
    for (const std::string& metric : std::set<std::string>(keys.begin(), keys.end())) {
      is_read &= give(root, metric, *t_ns, root["values"][metric]);
    }
    return is_read;
  }

  // {"metric": "a.b", "instance": "x", "points": [[1.5, 1], [2.5, null]]}
  bool take_points(const JsonValue& root) {
    const auto metric = root["metric"].text();
    if (!metric || !root["points"].is_array()) return false;
    bool is_read = true;
    for (const JsonValue& point : root["points"].items()) {
      const std::vector<JsonValue> pair = point.items();
      const auto t_ns = pair.size() == 2 ? time_ns(pair[0]) : std::nullopt;
      is_read &= t_ns && give(root, *metric, *t_ns, pair[1]);
    }
    return is_read;
  }

  bool give(const JsonValue& root, const std::string& metric, std::int64_t t_ns, const JsonValue& number) {
    if (metric.empty() || metric.size() > kMetricNameMax) return false;
    Value value = Value::missing(MissingReason::kNotSupported);
    if (!number.is_null()) {
      const auto found = number.number();
      if (!found) return false;
      if (std::isfinite(*found)) value = Value::of(*found);
    }
    const std::string unit = root["unit"].text().value_or("1");
    const std::string instance = root["instance"].text().value_or("");
    tell_clock(t_ns);
    const bool is_counter = root["kind"].text() == "counter";
    processes_.see(metric, instance);
    const SeriesHandle series = out_.series(
        MetricDesc{.name = metric, .unit = unit, .kind = is_counter ? MetricKind::kCounter : MetricKind::kGauge},
        instance);
    out_.sample(series, t_ns, value);
    ++events_;
    return true;
  }

  ImportSink& out_;
  SeriesProcesses processes_;
  JsonObjectCutter objects_{kObjectBytesMax};
  std::map<std::int64_t, std::uint32_t> slots_;  // by rank; -1: none is told
  std::uint64_t events_ = 0;
  bool is_clock_told_ = false;
};

// An object with "t_s", "points", "step" or "clock" as this format has them.
bool sniff(ByteView head_untrusted, std::string_view) {
  bool is_ours = false;
  bool has_other = false;
  JsonObjectCutter objects(head_untrusted.size());
  objects.push(head_untrusted, [&](const JsonObjectText& object) {
    if (is_ours || has_other || !object.is_whole) return;
    const auto document = JsonDocument::parse(object.text, true);
    if (!document.ok()) return;
    const JsonValue root = document->root();
    const bool is_sample = root["t_s"].exists() && (root["metric"].exists() || root["values"].exists());
    const bool is_series = root["metric"].exists() && root["points"].is_array();
    const bool is_step = root["step"].exists() && root["start_s"].exists() && root["duration_s"].exists();
    const bool is_clock = root["clock"].text() == "unix" || root["clock"].text() == "relative";
    const bool is_attribute = root["attribute"].text().has_value() && root["text"].text().has_value();
    is_ours = is_sample || is_series || is_step || is_clock || is_attribute;
    has_other = !is_ours;
  });
  if (is_ours || has_other) return is_ours;
  // One long series: its object does not end in what is seen.
  const std::string_view head = as_text(head_untrusted);
  return trim(head).starts_with("{\"metric\"") && head.find("\"points\"") != std::string_view::npos;
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<SeriesJsonImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_series_json{.name = "series_json",
                                                         .summary = "Plain series, steps and facts as JSON lines.",
                                                         .extensions = ".json .jsonl",
                                                         .priority = 110,
                                                         .sniff = sniff,
                                                         .open_stream = open_stream};

}  // namespace hotlap
