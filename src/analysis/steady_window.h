#pragma once
// The time that facts about a run speak of: its typical steps, since start-up and tail are not steady state.
#include <cstdint>
#include <optional>

#include "analysis/step_table.h"
#include "base/clock.h"

namespace hotlap {

struct SteadyWindow {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  bool is_of_steps = false;  // false: nobody saw a step, the window is all that was observed
  double seconds() const { return static_cast<double>(to_ns - from_ns) / static_cast<double>(kNsPerS); }
};

// Of the process with the most steps; nothing when they took less than a second.
inline std::optional<SteadyWindow> steady_window(const StepTable& table) {
  const auto entries = table.entries();
  if (entries.empty()) return std::nullopt;
  const SteadySteps steady = entries.front().steps->steady();
  const SteadyWindow window{steady.from_ns, steady.to_ns, true};
  return window.seconds() >= 1 ? std::optional(window) : std::nullopt;
}

// The same, or [from_ns, to_ns) of what was observed where there are no steps.
inline std::optional<SteadyWindow> steady_or_observed(const StepTable& table, std::int64_t from_ns,
                                                      std::int64_t to_ns) {
  if (const auto window = steady_window(table)) return window;
  if (!table.entries().empty() || to_ns <= from_ns) return std::nullopt;
  return SteadyWindow{from_ns, to_ns, false};
}

}  // namespace hotlap
