// Chrome traces past the sniffer: what is read must not depend on how the text is cut, nor on whether events are read
// by their shape; an event that is sound goes through the lenient reader as well. The first byte gives the size of the
// pieces.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

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
                                        event.argument_name.raw, event.arguments}) {
      text += ' ';
      text.append(part);
    }
    for (const std::int64_t number :
         {event.start_ns, event.duration_ns, event.correlation, event.external_id, event.device, event.stream,
          event.bytes, event.sequence, event.function_id, event.function_caller, offset,
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
  hotlap::TraceReader reader(transcript, {.is_strict = false, .uses_shapes = uses_shapes});
  while (!bytes.empty()) {
    const std::size_t n = std::min(piece_bytes, bytes.size());
    reader.push(bytes.first(n));
    bytes = bytes.subspan(n);
  }
  reader.finish();
  return transcript.text;
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
  hotlap::TraceEvent slow;
  (void)hotlap::scan_damaged_event({text.data() + brace, static_cast<std::size_t>(at - text.data() - brace)}, slow);
  return 0;
}
