// Hostile foreign files: any bytes in chunks of any size (the first byte gives it), to every importer of streams.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "ingest/registry.h"
#include "model/losses.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kHeadBytes = 4096;

class Discard final : public hotlap::ImportSink {
 public:
  void clock(const hotlap::ImportClock&) override {}
  hotlap::SeriesHandle series(const hotlap::MetricDesc& metric, std::string_view) override {
    if (metric.name.empty()) std::abort();
    return {.index = 0};
  }
  void sample(hotlap::SeriesHandle, std::int64_t, hotlap::Value) override {}
  std::uint32_t name(std::string_view) override { return 0; }
  std::uint32_t process(const hotlap::ProcessInfo&) override { return 0; }
  void span(const hotlap::Span&) override {}
  void event(const hotlap::Event&) override {}
  void attribute(std::string_view, std::string_view) override {}
  // A loss that has no name in the table would be lost twice.
  void count_loss(std::string_view counter, std::uint64_t, std::int64_t byte_offset) override {
    const bool is_known = std::any_of(hotlap::kLosses.begin(), hotlap::kLosses.end(),
                                      [&](const hotlap::LossDesc& loss) { return loss.counter == counter; });
    if (!is_known || byte_offset < 0) std::abort();
  }
};

void run(const hotlap::ImporterSpec& spec, hotlap::ByteView bytes, std::size_t chunk_bytes) {
  Discard out;
  const auto importer = spec.open_stream(out);
  while (!bytes.empty()) {
    const std::size_t n = std::min(chunk_bytes, bytes.size());
    if (!importer->push(bytes.first(n)).ok()) return;
    bytes = bytes.subspan(n);
  }
  (void)importer->finish().ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t chunk_bytes = std::size_t{1} + data[0];
  const hotlap::ByteView bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const hotlap::ByteView head = bytes.first(std::min(bytes.size(), kHeadBytes));
  for (const hotlap::ImporterSpec* spec : hotlap::all_importers()) {
    (void)spec->sniff(head, "fuzz");
    if (spec->open_stream != nullptr) run(*spec, bytes, chunk_bytes);
  }
  return 0;
}
