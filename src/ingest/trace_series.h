#pragma once
// Events of a trace that are samples of series: counters, and what PyTorch's allocator tells. Bounded: kSeriesMax.
// Confined to the importing thread.
#include <cstdint>
#include <vector>

#include "ingest/importer.h"
#include "ingest/text_table.h"
#include "ingest/trace_event.h"

namespace hotlap {

class TraceSeries {
 public:
  static constexpr std::size_t kSeriesMax = 20'000;
  static constexpr std::size_t kMetricTextMax = std::size_t{16} << 10;

  // `out` outlives this.
  explicit TraceSeries(ImportSink& out) : out_(out) {}

  struct Lost {
    std::uint64_t values_unreadable = 0;
    std::uint64_t series_refused = 0;
  };
  Lost add_counter(const TraceEvent& event);
  void add_memory(const TraceEvent& event);

 private:
  ImportSink& out_;
  TextTable table_{kSeriesMax, std::size_t{2} << 20};
  std::vector<SeriesHandle> series_;
};

}  // namespace hotlap
