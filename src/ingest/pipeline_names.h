#pragma once
// What a job's timeline calls its threads: the stage of a pipeline that one belongs to. Thread-safe: no state.
#include <cstdint>
#include <optional>
#include <string_view>

namespace hotlap {

// "PP rank 3, TP rank 0, compute", "pp_rank[3]", "pipeline stage 3": 3. Nothing where no stage is told, or no number.
std::optional<std::int32_t> pipeline_stage_in_name(std::string_view name);

}  // namespace hotlap
