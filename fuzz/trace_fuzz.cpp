// Chrome traces past the sniffer: what is read must not depend on how the text is cut, nor on whether events are read
// by their shape; and the lenient reader makes the same of an event that is sound. The first byte gives the size of the
// pieces.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/json_reader.h"
#include "ingest/trace_event.h"
#include "ingest/trace_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// Everything that is told, as one text.
class Transcript final : public hotlap::TraceReader::Handler {
 public:
  void on_event(const hotlap::TraceEvent& event, std::int64_t offset) override {
    text += "event ";
    text += event.phase;
    for (const std::string_view part : {event.name.raw, event.category, event.process, event.thread, event.id,
                                        event.argument_name.raw, event.arguments, event.details}) {
      text += ' ';
      text.append(part);
    }
    for (const std::int64_t number :
         {event.start_ns, event.duration_ns, event.correlation, event.external_id, event.device, event.stream,
          event.bytes, event.sequence, event.function_id, event.function_caller, event.step, offset,
          std::int64_t{event.arguments_skipped}, std::int64_t{event.has_start}, std::int64_t{event.has_duration},
          std::int64_t{event.has_bad_duration}, std::int64_t{event.is_repaired}}) {
      text += ' ' + std::to_string(number);
    }
    text += '\n';
  }
  void on_member(std::string_view key, std::string_view value) override {
    text.append(key);
    text += ' ' + std::to_string(value.size()) + '\n';
  }
  void on_loss(std::string_view counter, std::int64_t offset) override {
    text.append(counter);
    text += '@' + std::to_string(offset) + '\n';
  }
  std::string text;
};

std::string told(hotlap::ByteView bytes, std::size_t piece_bytes, bool uses_shapes) {
  Transcript transcript;
  hotlap::TraceReader reader(
      transcript, {.is_strict = false, .uses_shapes = uses_shapes, .kept = &hotlap::KeptArguments::standard()});
  while (!bytes.empty()) {
    const std::size_t n = std::min(piece_bytes, bytes.size());
    reader.push(bytes.first(n));
    bytes = bytes.subspan(n);
  }
  reader.finish();
  return transcript.text;
}

// Sound JSON with members of events alone, each once, and nothing nested but the arguments' own values: what else there
// is the lenient reader may take for members of the event.
bool is_plain(std::string_view text, const hotlap::TraceEvent& event) {
  if (event.has_repeated_member || event.damage.has_bad_text || event.damage.has_bad_number) return false;
  const auto parsed = hotlap::JsonDocument::parse(text);
  if (!parsed.ok()) return false;
  const hotlap::JsonValue root = parsed->root();
  for (const std::string& key : root.keys()) {
    constexpr std::array<std::string_view, 8> kPlain{"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"};
    if (std::find(kPlain.begin(), kPlain.end(), key) == kPlain.end()) return false;
    if (key != "args" && (root[key].is_object() || root[key].is_array())) return false;
    if (key == "name" && !root[key].text()) return false;
  }
  return text.find('\\') == std::string_view::npos && (!root["args"].exists() || root["args"].is_object());
}

bool is_same(const hotlap::TraceEvent& a, const hotlap::TraceEvent& b) {
  return a.phase == b.phase && a.name.raw == b.name.raw && a.category == b.category && a.process == b.process &&
         a.thread == b.thread && a.has_start == b.has_start && a.start_ns == b.start_ns &&
         a.has_duration == b.has_duration && a.duration_ns == b.duration_ns && a.correlation == b.correlation &&
         a.external_id == b.external_id && a.step == b.step && a.arguments == b.arguments;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece_bytes = std::size_t{1} + data[0];
  const hotlap::ByteView bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const std::string whole = told(bytes, SIZE_MAX, true);
  if (whole != told(bytes, piece_bytes, true) || whole != told(bytes, SIZE_MAX, false)) std::abort();

  const std::string_view text = hotlap::as_text(bytes);
  const std::size_t brace = text.find('{');
  if (brace == std::string_view::npos) return 0;
  const char* at = text.data() + brace;
  hotlap::TraceEvent fast;
  if (hotlap::scan_event(at, text.data() + text.size(), fast) != hotlap::json::Scan::kOk) return 0;
  const std::string_view event(text.data() + brace, static_cast<std::size_t>(at - text.data() - brace));
  hotlap::TraceEvent slow;
  const bool is_read = hotlap::scan_damaged_event(event, slow);
  if (!is_plain(event, fast)) return 0;
  if (is_read != (fast.phase != 0 && !fast.name.raw.empty())) std::abort();
  if (is_read && !is_same(fast, slow)) std::abort();
  return 0;
}
