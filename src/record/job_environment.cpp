#include "record/job_environment.h"

#include <algorithm>
#include <utility>

namespace hotlap {
namespace {

void unset(std::vector<std::string>& environment, std::string_view name) {
  const std::string prefix = std::string(name) + "=";
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(prefix); });
}

void set(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
  unset(environment, name);
  environment.push_back(std::string(name) + "=" + std::string(value));
}

}  // namespace

std::vector<std::string> job_environment(const char* const* inherited, const HookDelivery& delivery) {
  std::vector<std::string> environment;
  for (; inherited != nullptr && *inherited != nullptr; ++inherited) environment.emplace_back(*inherited);
  set(environment, "HOTLAP_RUN_ID", delivery.run_id);
  if (!delivery.observer_folder.empty()) {
    set(environment, "HOTLAP_OBSERVER_RING_DIR", delivery.observer_folder);
    for (const auto& [name, value] : delivery.observer_variables) set(environment, name, value);
  }
  if (delivery.ring_folder.empty()) return environment;

  set(environment, "HOTLAP_RING_DIR", delivery.ring_folder);
  set(environment, "HOTLAP_HOOK_PATH", delivery.hook_folder);
  for (const auto& [name, value] : {std::pair("HOTLAP_PROFILE", std::string_view(delivery.profile)),
                                    std::pair("HOTLAP_PROFILE_DIR", std::string_view(delivery.profile_folder))}) {
    value.empty() ? unset(environment, name) : set(environment, name, value);
  }
  constexpr std::string_view kPath = "PYTHONPATH=";
  std::string path = delivery.hook_folder + "/hotlap/_bootstrap";
  const auto before = std::find_if(environment.begin(), environment.end(),
                                   [&](const std::string& entry) { return entry.starts_with(kPath); });
  // An empty PYTHONPATH means none; as an empty part of a longer one it would mean the working directory.
  if (before != environment.end() && before->size() > kPath.size()) path += ":" + before->substr(kPath.size());
  set(environment, "PYTHONPATH", path);
  return environment;
}

}  // namespace hotlap
