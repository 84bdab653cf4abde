// Chrome traces past the sniffer: what is read must not depend on how the text is cut; an event that is sound goes
// through the lenient reader as well. The first byte gives the size of the pieces.
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
    text += ' ';
    text.append(event.name.raw);
    text += ' ' + std::to_string(event.start_ns) + '+' + std::to_string(event.duration_ns) + '@' +
            std::to_string(offset) + '\n';
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

std::string told(hotlap::ByteView bytes, std::size_t piece_bytes) {
  Transcript transcript;
  hotlap::TraceReader reader(transcript);
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
  if (told(bytes, SIZE_MAX) != told(bytes, piece_bytes)) std::abort();

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
