#pragma once
// The job's environment: the one we got, plus the documented additions and nothing else.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hotlap {

struct HookDelivery {
  std::string run_id;
  std::string ring_folder;      // empty: no hook in this run
  std::string hook_folder;      // holds the package `hotlap`
  std::string profile;          // HOTLAP_PROFILE: when to look into steps; empty: only when asked later
  std::string profile_folder;   // HOTLAP_PROFILE_DIR: where what was seen goes; empty: never look
  std::string observer_folder;  // where native observers put their rings; empty: there are none
  std::vector<std::pair<std::string, std::string>> observer_variables;  // that have them loaded
};

// HOTLAP_RUN_ID; with a hook also HOTLAP_RING_DIR, HOTLAP_HOOK_PATH, HOTLAP_PROFILE, HOTLAP_PROFILE_DIR and the hook's
// bootstrap first on PYTHONPATH; with native observers HOTLAP_OBSERVER_RING_DIR and their own variables.
std::vector<std::string> job_environment(const char* const* inherited, const HookDelivery& delivery);

}  // namespace hotlap
