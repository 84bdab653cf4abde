#pragma once
// What rules about GPUs share: which GPUs are meant, how they are named together, and what was going on while one was
// idle. Thread-safe: nothing here has state.
#include <string>
#include <string_view>
#include <vector>

#include "rules/step_findings.h"

namespace hotlap {

// SageMaker's rules count samples, by default two a second.
inline constexpr double kSamplesPerS = 2;

constexpr ParamDesc patience_param() {
  return {.name = "patience",
          .default_text = "60",
          .min = 1,
          .max = 1e7,
          .unit = "{sample}",
          .help = "samples of half a second that must have been seen of the typical steps"};
}
// Theirs judges the last samples, whatever the job did then; ours all typical steps.
constexpr ParamDesc window_param() {
  return {.name = "window",
          .default_text = "500",
          .min = 1,
          .max = 1e7,
          .unit = "{sample}",
          .help = "taken for SageMaker's sake and not used: all typical steps are looked at, not the last samples"};
}
constexpr ParamDesc percent_param(std::string_view name, std::string_view default_text, std::string_view help) {
  return {.name = name, .default_text = default_text, .min = 0, .max = 100, .unit = "%", .help = help};
}

// Facts of `kind` about GPUs that the job uses, or that nobody knows of whether it does.
std::vector<const Fact*> job_gpus(const FactTable& facts, std::string_view kind);
// The fact of `kind` about the same device; null: there is none.
const Fact* same_device(const FactTable& facts, std::string_view kind, const Fact& gpu);
// Some kernel ran on it at some time.
bool is_in_use(const Fact& use);
bool is_seen_for(const Fact& use, double samples);
// "gpu0", "gpu0 and gpu2", "4 GPUs".
std::string devices_words(const std::vector<const Fact*>& gpus);
// The place of a finding about them: the device of a single one.
Where place_of(const std::vector<const Fact*>& gpus);
// "while it is idle: hottest core 98 %, 1.2 cores busy, 3.1 MB/s read"; empty: not known.
std::string host_words(const FactTable& facts, const Fact& gpu);
// Share of time in percent with the GPU below `gpu_pct` and the other above `host_pct`, of a joint of gpu.host.
double joint_pct(std::string_view joint, double gpu_pct, double host_pct);

// The GPU of the job that is idle most while the machine is so: of gpu.host.
struct IdleMeeting {
  const Fact* host = nullptr;  // gpu.host
  const Fact* use = nullptr;   // gpu.use
  double share_pct = 0;        // of the time
};
// By the parameters threshold, gpu_threshold, patience and `host_param`, of the field `joint`; nothing: none exceeds.
std::optional<IdleMeeting> idle_meeting(const FactTable& facts, const Params& params, std::string_view joint,
                                        std::string_view host_param);
// The head of a finding about it.
Finding idle_finding(const Fact& host, std::string_view cause, double share_pct);

}  // namespace hotlap
