#pragma once
// What rules share that speak of how a job ended: when the machine said something, and whether that is what the end of
// the job's log is about. Thread-safe: nothing here has state.
#include <optional>
#include <string>

#include "rules/rule.h"

namespace hotlap {

// What says how the job ended: of several the one nearest to the cause is it.
inline constexpr std::string_view kClaimsEnd = "end";

// Something that the kernel or the driver told.
struct MachineEvent {
  std::optional<double> at_s;  // on the recording's clock
  std::optional<double> pid;   // of the process that it is about
  std::string_view failure;    // kind of a log.failure that it brings about: "gpu", "worker_killed"; empty: any
  bool has_time = true;        // false: since the machine was started is all that is known of when
};
// The fields at_s, boot_s and pid of a fact of a kernel's log.
MachineEvent machine_event(const Fact& fact, std::string_view failure);

enum class AtEnd {
  kNo,
  kPerhaps,  // the log ends in an error of that kind; when the other was is not known
  kNear,     // the job's steps end then
  kSame,     // the log names the process
};
AtEnd at_end(const FactTable& facts, const MachineEvent& event);
// Sets what a finding about it claims, how certain that is, and says what ties the two together.
void tie_to_end(AtEnd at, Finding& finding);

// "2026-12-01 15:37:49 UTC", "1,209,600 s after the machine was started"; empty: not known.
std::string when_words(const Fact& fact);

}  // namespace hotlap
