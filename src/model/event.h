#pragma once
// Things that happen to a run at one time: phases, clock jumps, restarts, kills.
#include <cstdint>
#include <string>
#include <string_view>

namespace hotlap {

// Stored as one byte: append only.
enum class EventKind : std::uint8_t {
  kPhase = 1,         // text: the phase that begins
  kClockStep = 2,     // the wall clock jumped; value: ns, forward positive
  kSuspend = 3,       // the machine slept; value: ns
  kRecorderGap = 4,   // nothing was recorded; value: ns
  kProcessStart = 5,  // value: slot
  kProcessEnd = 6,    // value: slot; text: "exit 0", "signal 9", "unknown"
  kOomKill = 7,       // value: kills since the last sample
  kCpuOffline = 8,    // value: core id
  kCpuOnline = 9,
  kMountStuck = 10,       // text: mount point that does not answer
  kIntervalChanged = 11,  // value: new interval, ns
  kSignal = 12,           // passed to the job; value: number
  kJobStopped = 13,       // SIGSTOP / SIGTSTP
  kJobContinued = 14,
  kNote = 15,      // text for the reader
  kTransfer = 16,  // a download or upload ended; value: bytes moved; text: command
  kGpuFound = 17,  // text: "gpu0: NVIDIA H100 80GB HBM3, GPU-…, driver 590.48.01"
  kGpuLost = 18,   // text: "gpu0: why"
  kGpuBack = 19,   // text: "gpu0"
  kGpuXid = 20,    // the driver's error report; value: its number; text: "gpu0"
};
std::string_view to_string(EventKind kind);

struct Event {
  std::int64_t t_ns = 0;
  EventKind kind = EventKind::kNote;
  std::int64_t value = 0;
  std::string text;
  friend bool operator==(const Event&, const Event&) = default;
};

// Phases of a run, in order (blueprint 2).
enum class Phase : std::uint8_t {
  kStarting,
  kDownloading,
  kInitialisation,
  kTraining,
  kEvaluation,
  kFinalisation,
  kUploading
};
std::string_view to_string(Phase phase);

}  // namespace hotlap
