#pragma once
// What traces call things, and what that says of them: names of events, of processes and of threads. Thread-safe: no
// state.
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/span.h"

namespace hotlap {

// What a name says by itself.
enum class NameMeaning : std::uint8_t { kNone, kStep, kDataWait, kForward, kBackward, kOptimizer, kMemory };
struct NamedMeaning {
  NameMeaning meaning = NameMeaning::kNone;
  std::int64_t step = -1;  // "ProfilerStep#12": 12
};
NamedMeaning meaning_of_name(std::string_view name);
// Of a range that the program pushed, and of what XLA's host waits in: labels count as they read.
SpanKind kind_of_label(std::string_view name);

// "DP rank [3]", "rank3": 3. Nothing where more than one rank or something else is told.
std::optional<std::int32_t> rank_in_name(std::string_view name);

// The stage of a pipeline that a thread is called by: "PP rank 3, TP rank 0, compute", "pp_rank[3]", "pipeline stage
// 3": 3. Nothing where no stage is told, or no number.
std::optional<std::int32_t> pipeline_stage_in_name(std::string_view name);

}  // namespace hotlap
