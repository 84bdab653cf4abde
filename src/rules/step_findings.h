#pragma once
// What rules share that speak of a share of the steps or of the run: the facts of one place, the parameters by which
// they are silenced, and the head of the finding. Thread-safe: nothing here has state.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace hotlap {

// A wait that shows on the GPU. It is a symptom: any finding that says where the time of the steps goes explains it.
inline constexpr std::string_view kClaimsGpuIdle = "gpu_idle";

// Absent parts of a place mean "all" and fit any.
bool same_place(const Where& a, const Where& b);
// The first fact of `kind` that holds at `where`; null: there is none.
const Fact* fact_for(const FactTable& facts, std::string_view kind, const Where& where);

constexpr ParamDesc share_param(std::string_view default_text, std::string_view help) {
  return {.name = "share_pct", .default_text = default_text, .min = 0.1, .max = 100, .unit = "%", .help = help};
}
constexpr ParamDesc steps_min_param(std::string_view help) {
  return {.name = "steps_min", .default_text = "30", .min = 1, .max = 1e6, .unit = "{step}", .help = help};
}

// A profiler's trace has few steps, chosen after a warm-up of their own.
inline constexpr double kChosenStepsMin = 3;
// Typical steps that must have been seen: the parameter steps_min; of a trace kChosenStepsMin suffice.
double steps_needed(const Fact& steps, const Params& params);

// A training process whose typical steps give a part of them to something that counts.
struct StepShare {
  const Fact* steps = nullptr;  // steps.summary
  double share_pct = 0;         // of a typical step
};
// Those where `part`, a field of breakdown.parts, is at least the parameter share_pct, over steps_min typical steps.
std::vector<StepShare> step_shares(const FactTable& facts, const Params& params, std::string_view part);

// A finding's loss as a share of the typical steps, in percent and in seconds so far.
void set_step_loss(const Fact& steps, double share_pct, Finding& finding);

// From this share on a finding is critical, where its rule knows nothing better.
inline constexpr double kCriticalShare = 15;
// So often something must have been seen for a finding to be certain.
inline constexpr double kCertainCount = 3;

// The job's framework can use a GPU and there is one: a thread outside the model may only wait for it.
bool may_have_gpu(const FactTable& facts);
// Of the GPU that works most at `where`: the one that a thread would wait for. Nothing: not recorded, or missing.
std::optional<double> gpu_busy_pct(const FactTable& facts, const Where& where);

// The use of cores by the process whose steps these are; null: not recorded.
const Fact* process_of(const FactTable& facts, const Fact& steps);
// Of the time of these steps, what the training thread could not run for want of a core that other programs had, in
// percent. Nothing: not measured, or they take less than a quarter of the cores.
std::optional<double> taken_by_others_pct(const FactTable& facts, const Fact& steps);
inline constexpr double kTakenByOthersPct = 10;  // of the time: from here on it explains why steps are slow
inline constexpr std::string_view kClaimsNeighbour = "neighbour";

struct ShareHead {
  std::string cause;
  std::string loss;    // in words
  std::string claims;  // part of the step or of the run
  double share_pct = 0;
  LostOf lost_of = LostOf::kSteps;
  std::optional<double> lost_s;
  double count = std::numeric_limits<double>::infinity();  // times that it was seen
};
// The head of a finding that takes a share of the steps or of the run: cause, loss, severity, certainty.
Finding share_finding(const Where& where, ShareHead head);

}  // namespace hotlap
