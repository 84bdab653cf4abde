#pragma once
// The processes of a run. A slot is stable over restarts of the process behind it: "loader 3", not a pid.
#include <cstdint>
#include <string>
#include <string_view>

namespace hotlap {

// Stored as one byte: append only.
enum class ProcessRole : std::uint8_t {
  kOther = 0,
  kMain = 1,
  kRank = 2,
  kLoader = 3,
  kRecorder = 4,
  kWatcher = 5,
  kSupervisor = 6
};
std::string_view to_string(ProcessRole role);

struct ProcessInfo {
  std::uint32_t slot = 0;  // from 1; 0: unknown
  std::int32_t pid = 0;
  ProcessRole role = ProcessRole::kOther;
  std::int32_t index = -1;  // rank or loader worker number; -1: none
  // Slot of the process that started it (a loader's rank), or, of a device, whose work was seen there; 0: unknown.
  std::uint32_t parent = 0;
  std::string label;           // names its series, unique among the live: "loader 3"; empty: made from the role
  std::int64_t start_ns = -1;  // CLOCK_MONOTONIC; -1: unknown
  std::int64_t end_ns = -1;    // -1: alive, or end not seen
  std::string command;         // redacted command line, at most 4 KiB
  bool has_hook = false;
  std::string hook_absent_reason;  // why not, when it is known
  friend bool operator==(const ProcessInfo&, const ProcessInfo&) = default;
};

// Its label, else one made from the role: "main", "rank 2", "loader 3", "python (4711)".
std::string slot_label(const ProcessInfo& process);

}  // namespace hotlap
