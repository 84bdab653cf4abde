#pragma once
// What `--profile` asks for: windows of the framework's profiler inside the job, and stacks. Written as text into the
// job's environment, where the hook reads it (python/src/hotlap/_plan.py), and packed into the argument of a command.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hotlap {

struct ProfilePlan {
  std::optional<std::int64_t> start_step;  // of the first window
  std::optional<std::int64_t> step_count;  // of each window
  std::optional<std::int64_t> every_s;
  bool is_on_outlier = false;
  bool is_now = false;
  bool is_off = false;
  std::optional<double> functions_hz;
  std::string ranks;  // "0+3" or "all"; empty: rank 0
  bool has_shapes = false;
  std::optional<double> budget_pct;  // of the job's time
  std::optional<std::int64_t> memory_mb;
  std::optional<std::int64_t> disk_mb;

  // Something is to be looked into, or stacks are.
  bool is_wanted() const { return start_step || every_s || is_on_outlier || functions_hz || is_now; }
};

// "steps=10:3", "every=10min,steps=2", "on-outlier", "functions=20hz", "off"; `is_live`: of a run that is there
// already, where "now" is known and what only a new job can be told is not. kInvalidInput with what was meant.
Result<ProfilePlan> parse_profile_plan(std::string_view text, bool is_live);

// HOTLAP_PROFILE of the job; empty when nothing is wanted.
std::string profile_text(const ProfilePlan& plan);

// The argument of HookCommand::kProfile: bits 0-15 steps (0: as before), 16-19 mode (0 now, 1 off, 2 on-outlier,
// 3 every, 4 functions), 20-51 period in s, 52-63 Hz.
enum class ProfileMode : std::uint8_t { kNow = 0, kOff = 1, kOnOutlier = 2, kEvery = 3, kFunctions = 4 };
std::uint64_t profile_argument(const ProfilePlan& plan);
inline ProfileMode profile_mode(std::uint64_t argument) { return static_cast<ProfileMode>(argument >> 16 & 0xF); }

}  // namespace hotlap
