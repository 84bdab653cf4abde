#pragma once
// One training step of one rank, put together from its spans.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hotlap {

// Time on the training thread that the program has named itself, hotlap.span(name).
struct NamedTime {
  std::string name;
  std::int64_t ns = 0;  // without the parts and the named stretches inside
};

// Parts are absent when the hook did not measure them; they never add up to more than the duration. Checkpoint,
// compilation and evaluation are rare and seen in each step, also where the others are watched in turns (is_hooked
// false).
struct Step {
  std::uint32_t process = 0;  // slot
  std::uint32_t thread = 0;   // that trains; 0: unknown
  std::int32_t rank = -1;     // -1: not distributed, or unknown
  std::int64_t index = 0;     // from 0 within the process
  std::int64_t start_ns = 0;  // end of the step before, or of the start-up
  std::int64_t duration_ns = 0;
  std::optional<std::int64_t> data_wait_ns;
  std::optional<std::int64_t> forward_ns;
  std::optional<std::int64_t> backward_ns;
  std::optional<std::int64_t> optimizer_ns;
  std::optional<std::int64_t> communication_ns;
  std::optional<std::int64_t> checkpoint_ns;
  std::optional<std::int64_t> gc_ns;
  std::optional<std::int64_t> compile_ns;
  std::optional<std::int64_t> evaluation_ns;
  std::optional<std::int64_t> hook_ns;          // our own time in it
  std::optional<std::int64_t> loader_start_ns;  // of data_wait_ns: making an iterator, to its first batch
  std::vector<NamedTime> named;                 // outside of all parts; each name once
  std::int32_t batches = -1;  // taken from the loader in this step (accumulation: several); -1: unknown
  std::int64_t samples = -1;  // -1: unknown
  std::int64_t tokens = -1;
  bool is_profiled = false;  // slower by the framework's profiler, or by a pause of ours on its node
  bool is_inferred = false;  // cut by cadence, not by a marker
  bool is_hooked = true;     // false: not its turn to be watched, or inside a shadow block
};

}  // namespace hotlap
