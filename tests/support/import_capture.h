#pragma once
// Keeps what importers push, as text for golden files, and runs an importer over bytes in chunks of any size.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/importer.h"

namespace hotlap::test {

// Not thread-safe.
class ImportCapture final : public ImportSink {
 public:
  void clock(const ImportClock& clock) override;
  SeriesHandle series(const MetricDesc& metric, std::string_view instance) override;
  void sample(SeriesHandle series, std::int64_t t_ns, Value value) override;
  std::uint32_t name(std::string_view text) override;
  std::uint32_t process(const ProcessInfo& process) override;
  void span(const Span& span) override;
  void event(const Event& event) override;
  void attribute(std::string_view key, std::string_view value) override;
  void count_loss(std::string_view counter, std::uint64_t count, std::int64_t byte_offset) override;

  std::size_t series_count() const { return series_.size(); }
  std::size_t sample_count() const;
  std::size_t span_count() const { return spans_.size(); }
  std::uint64_t loss(std::string_view counter) const;
  // Clock, attributes, processes, series with their samples by name, spans and events in the order of their coming,
  // losses with their first byte.
  std::string to_text() const;

 private:
  struct Series {
    std::string title;
    std::vector<std::pair<std::int64_t, Value>> samples;
  };
  struct Loss {
    std::uint64_t count = 0;
    std::int64_t first_offset = -1;
  };

  std::vector<std::string> clocks_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> series_index_;
  std::vector<Series> series_;
  std::map<std::string, std::uint32_t, std::less<>> name_ids_;
  std::vector<std::string> names_;
  std::vector<ProcessInfo> processes_;
  std::vector<std::string> spans_;
  std::vector<std::string> events_;
  std::map<std::string, std::string> attributes_;
  std::map<std::string, Loss, std::less<>> losses_;
};

// The importer that recognises a file by the beginning of its bytes and by its name; null: none.
const ImporterSpec* importer_of(std::string_view content, std::string_view file_name);

// The whole outcome as text: what was captured and the counts, or the error.
std::string import_stream(const ImporterSpec& spec, std::string_view content, std::size_t chunk_bytes);
std::string import_path(const ImporterSpec& spec, const std::filesystem::path& path);

}  // namespace hotlap::test
