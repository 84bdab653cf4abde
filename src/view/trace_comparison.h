#pragma once
// Two traces beside each other: the step and where its time goes, why the devices idle, and the operators and kernels
// that were added, are gone, take longer or take less. Times are per step where both traces have steps, else of the
// whole trace. A trace is one sample of a program: there are no intervals, so that small changes are left out.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/fact.h"
#include "store/run_folder.h"

namespace hotlap {

inline constexpr int kTraceComparisonSchema = 1;

struct TraceSide {
  std::string name;
  FactTable facts;
};
// Reads and analyses it. kUnsupported: it is no trace.
Result<TraceSide> read_trace_side(const RunFolder& folder, std::string name);

struct ComparedTime {
  std::string name;
  std::optional<double> before_ms;  // absent: not measured there
  std::optional<double> after_ms;
};

enum class RowChange : std::uint8_t { kSlower, kFaster, kAdded, kGone };
std::string_view to_string(RowChange change);

struct ComparedRow {
  std::string name;
  RowChange change = RowChange::kSlower;
  double before_ms = 0;
  double after_ms = 0;
  double before_calls = 0;
  double after_calls = 0;
  double difference_ms() const { return after_ms - before_ms; }
};

// What two tables of one kind have of difference; by size of the difference, largest first.
struct ComparedTable {
  std::string kind;   // fact: "kernels.kernel"
  std::string title;  // "Kernels"
  std::vector<ComparedRow> rows;
  std::size_t unchanged = 0;  // differ by less than is said
  bool is_cut = false;        // a table had more rows than facts keep: what is said to be added or gone may be small
};

struct TraceComparison {
  std::string before;
  std::string after;
  bool is_per_step = false;
  std::vector<ComparedTime> times;  // the step first, where there is one, then its parts and the devices' time
  std::vector<ComparedTable> tables;
};

TraceComparison compare_traces(const TraceSide& before, const TraceSide& after);

std::string trace_comparison_text(const TraceComparison& comparison);
std::string trace_comparison_json(const TraceComparison& comparison);

}  // namespace hotlap
