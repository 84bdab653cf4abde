#pragma once
// Talking to the recorder of a live run, through a FIFO in its folder that only the user can open.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace hotlap {

// In the run folder while a recorder is at work; it reads lines: "interval <ns>", "profile
// <argument>" (record/profile_plan.h).
inline constexpr std::string_view kControlFifo = "control";

// Makes the FIFO and opens it for reading; −1 when that cannot be done.
int open_control(const std::filesystem::path& run_folder);

// Whether a recorder of this machine is at work on the run; nothing when that cannot be told: it has not begun yet, has
// ended in order, or could make no FIFO.
std::optional<bool> has_recorder(const std::filesystem::path& run_folder);

// Asks the run's recorder for another interval and waits until run.json says that it is in force. kNotFound when nobody
// records the run (on this machine).
Result<void> request_interval(const std::filesystem::path& run_folder, std::int64_t interval_ns);

// Asks the run's recorder to ask its processes. It answers in the recording: a note. kNotFound as above.
Result<void> request_profile(const std::filesystem::path& run_folder, std::uint64_t argument);

}  // namespace hotlap
