#include "rules/trace_findings.h"

#include <algorithm>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr double kKernelsMin = 100;  // where it has no steps
constexpr double kWallMsMin = 20;    // where it has no steps
constexpr double kReplayErrorMax = 0.1;

const Fact* scenario(const FactTable& facts, std::string_view freed) {
  for (const Fact* fact : facts.all("replay.scenario")) {
    if (fact->text("free") == freed) return fact;
  }
  return nullptr;
}

bool is_replayed(const FactTable& facts) {
  const Fact* nothing = scenario(facts, "nothing");
  const auto wall = number_in(nothing, "wall_ms");
  const auto replayed = number_in(nothing, "replayed_ms");
  return wall && replayed && *wall > 0 && std::fabs(*replayed / *wall - 1) <= kReplayErrorMax;
}

}  // namespace

std::string_view device_word(std::string_view label) { return label.starts_with("tpu") ? "TPU" : "GPU"; }

std::optional<double> saved_pct(const FactTable& facts, const TraceCase& c, std::string_view freed) {
  return c.is_replayed ? number_in(scenario(facts, freed), "saved_pct") : std::nullopt;
}

std::optional<double> steps_watched(const FactTable& facts, const Fact& device, const Fact* steps) {
  const auto seen_ms = number_in(facts.find("device.windows"), "seen_ms");
  if (!seen_ms) return device.number("steps");
  const auto count = number_in(steps, "count");
  if (!count) return std::nullopt;
  const auto mean_ms = steps->number("mean_ms");
  return mean_ms && *mean_ms > 0 ? std::optional(std::min(*count, *seen_ms / *mean_ms)) : std::nullopt;
}

std::optional<TraceCase> trace_case(const FactTable& facts) {
  TraceCase c;
  double most_idle_ms = -1;
  for (const Fact* device : facts.all("device.time")) {
    c.all_wall_ms += device->number("wall_ms").value_or(0);
    const double idle_ms = device->number("idle_ms").value_or(0) + device->number("exposed_copy_ms").value_or(0);
    if (idle_ms <= most_idle_ms) continue;
    most_idle_ms = idle_ms;
    c.device = device;
  }
  if (c.device == nullptr) return std::nullopt;
  c.wall_ms = c.device->number("wall_ms").value_or(0);
  c.steps = fact_for(facts, "steps.summary", c.device->where);
  if (c.steps != nullptr) {
    if (c.steps->number("steady_count").value_or(0) < kChosenStepsMin) return std::nullopt;
    c.step_ms = c.steps->number("mean_ms");
  } else if (c.wall_ms < kWallMsMin || number_in(facts.find("kernels.summary"), "calls").value_or(0) < kKernelsMin) {
    return std::nullopt;
  }
  c.steps_watched = steps_watched(facts, *c.device, c.steps);
  if (c.steps_watched && facts.find("device.windows") != nullptr) {
    *c.steps_watched *= static_cast<double>(facts.all("device.time").size());  // tables of kernels are of all devices
  }
  c.is_replayed = is_replayed(facts);
  const double idle_sync_ms = c.device->number("idle_sync_ms").value_or(0);
  c.launch_ms = c.device->number("idle_dispatch_ms").value_or(0) + c.device->number("idle_launch_ms").value_or(0);
  // Where the host is the slower one, it would be late without its waits, too.
  if (const auto saved = saved_pct(facts, c, "waits")) {
    c.sync_ms = std::min(idle_sync_ms, *saved / 100 * c.wall_ms);
    c.launch_ms += idle_sync_ms - *c.sync_ms;
  }
  return c;
}

Finding trace_finding(const TraceCase& c, TraceHead head) {
  const double share = c.share_pct(head.lost_ms);
  Finding finding = share_finding(c.device->where, {.cause = std::move(head.cause),
                                                    .loss = std::move(head.loss),
                                                    .claims = std::move(head.claims),
                                                    .share_pct = share,
                                                    .lost_of = c.steps == nullptr ? LostOf::kRun : LostOf::kSteps,
                                                    .lost_s = head.lost_ms / 1000});
  if (c.steps != nullptr) set_step_loss(*c.steps, share, finding);
  if (c.step_ms) finding.evidence["step_ms"] = *c.step_ms;
  finding.evidence["device_wall_ms"] = c.wall_ms;
  finding.evidence["lost_ms"] = head.lost_ms;
  return finding;
}

void set_gain(const TraceCase& c, double saved_pct_high, double saved_pct_low, Basis basis, Advice& advice) {
  advice.basis = basis;
  if (c.step_ms) {
    advice.step_ms_low = *c.step_ms * (1 - saved_pct_high / 100);
    advice.step_ms_high = *c.step_ms * (1 - saved_pct_low / 100);
  } else {
    advice.gain = format("{}-{} % less time in what was traced", figure(saved_pct_low), figure(saved_pct_high));
  }
}

std::string counted_per_step(const TraceCase& c, double count, std::string_view one, std::string_view many) {
  if (!c.steps_watched || *c.steps_watched <= 0) return counted(count, one, many);
  return counted(count / *c.steps_watched, one, many) + " per step";
}

}  // namespace hotlap
