#include "support/import_capture.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/registry.h"

namespace hotlap::test {
namespace {

constexpr std::size_t kHeadBytes = 4096;

std::string seconds(std::int64_t ns) {
  const std::uint64_t magnitude = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  const auto unit = static_cast<std::uint64_t>(kNsPerS);
  return format("{}{}.{:09}", ns < 0 ? "-" : "", magnitude / unit, magnitude % unit);
}

std::string shown(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kMissing: return format("missing: {}", to_string(value.reason()));
    case Value::Kind::kI64: return format("{}", value.i64());
    case Value::Kind::kU64: return format("{}", value.u64());
    case Value::Kind::kF64: return format("{}f", value.f64());
  }
  return "?";
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : strip_control(text)) out += c == '\n' || c == '\t' ? ' ' : c;
  return out;
}

}  // namespace

void ImportCapture::clock(const ImportClock& clock) {
  clocks_.push_back(
      format("{}, offset {} s, {}", clock.is_absolute ? "absolute" : "relative", seconds(clock.offset_ns),
             clock.uncertainty_ns < 0 ? "uncertainty unknown" : "uncertainty " + seconds(clock.uncertainty_ns) + " s"));
}

SeriesHandle ImportCapture::series(const MetricDesc& metric, std::string_view instance) {
  const auto key = std::pair(std::string(metric.name), std::string(instance));
  if (const auto found = series_index_.find(key); found != series_index_.end()) return {found->second};
  const auto index = static_cast<std::uint32_t>(series_.size());
  series_.push_back(
      {.title = format("{}{}{} {}, {} x{}", metric.name, instance.empty() ? "" : " ", instance,
                       metric.kind == MetricKind::kCounter ? "counter" : "gauge", metric.unit, metric.scale),
       .samples = {}});
  series_index_.emplace(key, index);
  return {index};
}

void ImportCapture::sample(SeriesHandle series, std::int64_t t_ns, Value value) {
  HOTLAP_CHECK(series.index < series_.size());
  series_[series.index].samples.emplace_back(t_ns, value);
}

std::uint32_t ImportCapture::name(std::string_view text) {
  const auto [found, is_new] = name_ids_.emplace(std::string(text), static_cast<std::uint32_t>(names_.size() + 1));
  if (is_new) names_.emplace_back(text);
  return found->second;
}

std::uint32_t ImportCapture::process(const ProcessInfo& process) {
  if (process.slot != 0) {
    HOTLAP_CHECK(process.slot <= processes_.size());
    processes_[process.slot - 1] = process;
    return process.slot;
  }
  processes_.push_back(process);
  processes_.back().slot = static_cast<std::uint32_t>(processes_.size());
  return processes_.back().slot;
}

void ImportCapture::span(const Span& span) {
  HOTLAP_CHECK(span.process <= processes_.size() && span.name <= names_.size());
  std::string line = format("{} {} {}", seconds(span.start_ns),
                            span.duration_ns < 0 ? "no end" : "+" + seconds(span.duration_ns), to_string(span.kind));
  if (span.name != 0) line += format(" '{}'", one_line(names_[span.name - 1]));
  if (span.process != 0) line += format(" in {}", slot_label(processes_[span.process - 1]));
  if (span.thread != 0) line += format(" thread {}", span.thread);
  if (span.step >= 0) line += format(" step {}", span.step);
  if (span.value_a >= 0) line += format(" a {}", span.value_a);
  if (span.value_b >= 0) line += format(" b {}", span.value_b);
  spans_.push_back(line);
}

void ImportCapture::event(const Event& event) {
  events_.push_back(
      format("{} {} {} {}", seconds(event.t_ns), to_string(event.kind), event.value, one_line(event.text)));
}

void ImportCapture::attribute(std::string_view key, std::string_view value) { attributes_[std::string(key)] = value; }

void ImportCapture::count_loss(std::string_view counter, std::uint64_t count, std::int64_t byte_offset) {
  Loss& loss = losses_[std::string(counter)];
  if (loss.count == 0) loss.first_offset = byte_offset;
  loss.count += count;
}

std::size_t ImportCapture::sample_count() const {
  return std::accumulate(series_.begin(), series_.end(), std::size_t{0},
                         [](std::size_t sum, const Series& series) { return sum + series.samples.size(); });
}

std::uint64_t ImportCapture::loss(std::string_view counter) const {
  const auto found = losses_.find(counter);
  return found == losses_.end() ? 0 : found->second.count;
}

std::string ImportCapture::to_text() const {
  std::string text;
  for (const std::string& clock : clocks_) text += "clock " + clock + "\n";
  for (const auto& [key, value] : attributes_) text += format("attribute {} = {}\n", key, one_line(value));
  for (const ProcessInfo& process : processes_) {
    text += format("process {}: {}", process.slot, slot_label(process));
    if (process.pid != 0) text += format(", pid {}", process.pid);
    if (!process.command.empty()) text += ", " + one_line(process.command);
    text += "\n";
  }
  for (const auto& [key, index] : series_index_) {
    text += "series " + one_line(series_[index].title) + "\n";
    for (const auto& [t_ns, value] : series_[index].samples) text += format("  {} {}\n", seconds(t_ns), shown(value));
  }
  for (const std::string& span : spans_) text += "span " + span + "\n";
  for (const std::string& event : events_) text += "event " + event + "\n";
  for (const auto& [counter, loss] : losses_) {
    text += format("loss {} {} from byte {}\n", counter, loss.count, loss.first_offset);
  }
  return text;
}

const ImporterSpec* importer_of(std::string_view content, std::string_view file_name) {
  const ByteView head = as_bytes(content.substr(0, kHeadBytes));
  const ImporterSpec* best = nullptr;
  for (const ImporterSpec* spec : all_importers()) {
    if (spec->sniff(head, file_name) && (best == nullptr || spec->priority > best->priority)) best = spec;
  }
  return best;
}

namespace {
std::string outcome(const ImportCapture& capture, const Result<ImportStats>& stats) {
  if (!stats.ok()) return capture.to_text() + "error " + stats.error().message + "\n";
  return capture.to_text() + format("{} events of {} bytes\n", stats->events, stats->bytes);
}
}  // namespace

std::string import_stream(const ImporterSpec& spec, std::string_view content, std::size_t chunk_bytes) {
  ImportCapture capture;
  const auto importer = spec.open_stream(capture);
  for (std::size_t at = 0; at < content.size(); at += chunk_bytes) {
    Result<void> pushed = importer->push(as_bytes(content.substr(at, chunk_bytes)));
    if (!pushed.ok()) return outcome(capture, std::move(pushed).error());
  }
  return outcome(capture, importer->finish());
}

std::string import_path(const ImporterSpec& spec, const std::filesystem::path& path) {
  ImportCapture capture;
  return outcome(capture, spec.open_path(path, capture));
}

}  // namespace hotlap::test
