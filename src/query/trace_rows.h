#pragma once
// What the tables of work inside the step share: operators, kernels, copies, collectives. The same columns first and
// last, and rows that are made of a walk over the spans of a trace, in which a row may have to wait for spans that come
// later. Confined to one thread.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/kernel_names.h"
#include "analysis/launch_links.h"
#include "model/step.h"
#include "query/span_walk.h"
#include "query/table.h"

namespace hotlap {

inline constexpr std::array kTraceHead{
    ColumnDesc{"start_s", ColumnType::kReal, "seconds since the run's first sample"},
    ColumnDesc{"start_ns", ColumnType::kInteger, "the recording's monotonic clock"},
    ColumnDesc{"duration_ms", ColumnType::kReal, "NULL: its end was not seen"},
    ColumnDesc{"name", ColumnType::kText, "as the trace has it; NULL: none"},
};
inline constexpr std::array kTraceTail{
    ColumnDesc{"step", ColumnType::kInteger, "of the host's code that called or launched it; NULL: outside of steps"},
    ColumnDesc{"process", ColumnType::kText, "whose code called or launched it; NULL: not known"},
    ColumnDesc{"rank", ColumnType::kInteger, "NULL: not distributed"},
    ColumnDesc{"node", ColumnType::kText, "", ColumnFilter::kEquals},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};

// Head, a table's own columns, tail.
template <std::size_t N>
constexpr auto trace_columns(const std::array<ColumnDesc, N>& own) {
  std::array<ColumnDesc, kTraceHead.size() + N + kTraceTail.size()> out{};
  std::size_t at = 0;
  for (const ColumnDesc& column : kTraceHead) out[at++] = column;
  for (const ColumnDesc& column : own) out[at++] = column;
  for (const ColumnDesc& column : kTraceTail) out[at++] = column;
  return out;
}

class TraceRows : public RowSource {
 public:
  Result<bool> next() final;
  std::span<const Cell> row() const final { return rows_.row(); }

 protected:
  using Values = std::vector<ListedRows::Value>;
  // `kinds`: what the walk goes over. `columns`: of the table, so that the node's is found.
  TraceRows(QueriedRun& run, const RowFilter& filter, std::vector<SpanKind> kinds, std::size_t columns);

  // A recording begins; nothing of the one before is known any more.
  virtual Result<void> begin() { return {}; }
  virtual void on_span(const Span& span) = 0;
  // It is over: rows that still wait are added.
  virtual void end() {}

  // Where a row belongs: to the host's code at a moment.
  struct Place {
    std::uint32_t process = 0;  // slot; 0: not known
    std::int64_t at_ns = 0;
  };
  void add(const Span& span, Values own, const Place& place);
  Place place_of_work(const Span& work) const;  // of a kernel or copy: where it was launched

  const QueriedRecording& recording() const { return *recording_; }
  std::string label_of(std::uint32_t process) const;  // empty: not known
  LaunchLinks& links() { return links_; }
  const LaunchLinks& links() const { return links_; }

 private:
  Result<void> enter(const QueriedRecording& recording);
  ListedRows::Value step_of(const Place& place) const;

  SpanWalk walk_;
  const QueriedRecording* recording_ = nullptr;
  LaunchLinks links_;
  std::map<std::uint32_t, std::vector<Step>> steps_;  // by process, by start
  ListedRows rows_;                                   // made and not given yet
  bool is_over_ = false;
};

// Columns of what ran on a device, and what they hold: device, stream, and who launched it.
inline constexpr std::array kDeviceWork{
    ColumnDesc{"device", ColumnType::kText, "'gpu0'"},
    ColumnDesc{"stream", ColumnType::kInteger, "NULL: not known"},
    ColumnDesc{"queued_ms", ColumnType::kReal, "from its launch to its begin; NULL: no launch in the trace"},
    ColumnDesc{"correlation", ColumnType::kInteger, "ties it to its launch"},
    ColumnDesc{"operator", ColumnType::kText, "that launched it, the innermost; NULL: not known"},
    ColumnDesc{"operator_id", ColumnType::kInteger, "of it, as in the table operator"},
};

class DeviceRows : public TraceRows {
 protected:
  DeviceRows(QueriedRun& run, const RowFilter& filter, std::vector<SpanKind> kinds, std::size_t columns)
      : TraceRows(run, filter, with_host(std::move(kinds)), columns) {}
  // The values of kDeviceWork, behind `own`.
  Values with_device(const Span& work, Values own) const;
  const KernelTraits& traits_of(std::uint32_t kernel_name);

 private:
  static std::vector<SpanKind> with_host(std::vector<SpanKind> kinds);

  std::map<std::pair<std::int64_t, std::uint32_t>, KernelTraits> traits_;  // by recording and name
};

// `own`, then kDeviceWork.
template <std::size_t N>
constexpr auto device_columns(const std::array<ColumnDesc, N>& own) {
  std::array<ColumnDesc, N + kDeviceWork.size()> out{};
  std::size_t at = 0;
  for (const ColumnDesc& column : own) out[at++] = column;
  for (const ColumnDesc& column : kDeviceWork) out[at++] = column;
  return trace_columns(out);
}

inline double ms_of_ns(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }
inline ListedRows::Value known_or_null(std::int64_t value) {
  if (value >= 0) return value;
  return {};
}

}  // namespace hotlap
