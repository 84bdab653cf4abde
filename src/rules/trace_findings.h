#pragma once
// What rules about traces share: the device that they speak of, how its lost time is split among them so that each
// second has one owner, what the replay says could be won, and the head of a finding. Thread-safe: nothing here has
// state.
//
// Of the wall of a device: waits for data belong to InputBound, copies that nothing hides to PageableCopy, host code
// outside of operators to OtherCode, the rest of the idle time of which the host is the cause to HostSync, as far as
// the replay confirms it, and to LaunchBound.
#include <optional>
#include <string>
#include <string_view>

#include "rules/step_findings.h"

namespace hotlap {

struct TraceCase {
  const Fact* device = nullptr;  // device.time, of the one that idles longest
  const Fact* steps = nullptr;   // steps.summary; null: the trace has no steps, marked or inferred
  double wall_ms = 0;
  std::optional<double> steps_watched;  // of the device; of a trace: all of them
  std::optional<double> step_ms;
  std::optional<double> sync_ms;  // lost to waits of the host; absent where the replay cannot be trusted
  double launch_ms = 0;           // lost because the host is not ahead
  bool is_replayed = false;       // the replay comes near to what was recorded
  double all_wall_ms = 0;         // of all devices: tables of kernels are of all of them
  double share_pct(double ms) const { return wall_ms > 0 ? 100 * ms / wall_ms : 0; }
  double share_of_all_pct(double ms) const { return all_wall_ms > 0 ? 100 * ms / all_wall_ms : 0; }
};
// Nothing: no device, or too little of it to judge (few steps, few kernels, hardly any time).
std::optional<TraceCase> trace_case(const FactTable& facts);

// How many steps a device was watched for: those of its trace, of the profiler's windows, or of a job that was watched
// in windows of its device as many as fit into them. Nothing: there are none, or how long they are is not known.
std::optional<double> steps_watched(const FactTable& facts, const Fact& device, const Fact* steps);

// How much shorter the whole would be if `freed` took no time, in percent; nothing where there is no replay to trust.
std::optional<double> saved_pct(const FactTable& facts, const TraceCase& c, std::string_view freed);

// "TPU" of "tpu0": what a device of that label is called in words.
std::string_view device_word(std::string_view label);

struct TraceHead {
  std::string cause;
  std::string loss;  // in words
  std::string claims;
  double lost_ms = 0;  // of the device's wall
};
Finding trace_finding(const TraceCase& c, TraceHead head);

// "step 210 -> 98-112 ms": from what the replay saves, down to a part of it, since a replay knows no contention.
void set_gain(const TraceCase& c, double saved_pct_high, double saved_pct_low, Basis basis, Advice& advice);

// "12 kernels per step" of a device that was watched; where there are no steps of the whole: "148 kernels".
std::string counted_per_step(const TraceCase& c, double count, std::string_view one, std::string_view many);

}  // namespace hotlap
