#include "ingest/trace_series.h"

#include <algorithm>
#include <string>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {

// PyTorch's allocator: every allocation with the totals after it.
void TraceSeries::add_memory(const TraceEvent& event) {
  std::string_view rest = event.arguments;
  std::string_view key;
  std::string_view value;
  std::int64_t device = -1;
  std::int64_t type = -1;
  std::int64_t allocated = -1;
  std::int64_t reserved = -1;
  while (next_argument(rest, key, value)) {
    const std::int64_t number = json::whole_number(value).value_or(-1);
    if (key == "Device Id") device = number;
    if (key == "Device Type") type = number;
    if (key == "Total Allocated") allocated = number;
    if (key == "Total Reserved") reserved = number;
  }
  const std::string instance = type == 0 ? "cpu" : format("gpu{}", std::max<std::int64_t>(device, 0));
  const auto put = [&](std::string_view metric, std::string_view help, std::int64_t bytes) {
    if (bytes < 0) return;
    const TextTable::Place place = table_.place_of(metric, instance);
    if (place.index == TextTable::kNone) return;
    if (place.is_new) series_.push_back(out_.series({.name = metric, .unit = "By", .help = help}, instance));
    out_.sample(series_[place.index], event.start_ns, Value::of(bytes));
  };
  put("torch.memory.allocated.bytes", "Memory that tensors hold.", allocated);
  put("torch.memory.reserved.bytes", "Memory that PyTorch's allocator holds.", reserved);
}

TraceSeries::Lost TraceSeries::add_counter(const TraceEvent& event) {
  Lost lost;
  std::string metric = "trace.counter.";
  (void)json::append_clean({.raw = event.name.raw.substr(0, kMetricTextMax)}, metric);
  std::string_view rest = event.arguments;
  std::string_view key;
  std::string_view value;
  if (rest.empty()) ++lost.values_unreadable;
  while (next_argument(rest, key, value)) {
    std::string instance(event.process.substr(0, 64));
    instance += ' ';
    instance += key.substr(0, 256);
    const TextTable::Place place = table_.place_of(metric, instance);
    if (place.index == TextTable::kNone) {
      ++lost.series_refused;
      continue;
    }
    if (place.is_new) series_.push_back(out_.series({.name = metric, .unit = "1"}, to_valid_utf8(instance)));
    const auto number = parse_f64(value);
    const Value sample =
        number && *number - *number == 0 ? Value::of(*number) : Value::missing(MissingReason::kReadFailed);
    if (sample.is_missing()) ++lost.values_unreadable;
    out_.sample(series_[place.index], event.start_ns, sample);
  }
  return lost;
}

}  // namespace hotlap
