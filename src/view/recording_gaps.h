#pragma once
// What a run or a recording lacks as a whole, in words that its readers share.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/losses.h"
#include "model/run.h"
#include "store/recording_reader.h"

namespace hotlap {

// Of a run that has no .hotlap file: none yet, or none any more.
std::string_view why_no_recording(RunStatus status);

// Processes of the job's control group that the kernel killed for want of memory, as far as a recorder saw it.
std::int64_t oom_kills_of(std::span<RecordingReader* const> recordings);

// It has samples, but no clock that says when they were taken (damaged, or imported from what has none).
bool lacks_unix_time(RecordingReader& recording);
// The same as a counted loss, of a recording that should have had one: a recorder notes the clock with its first tick.
std::vector<Loss> losses_of_clock(RecordingReader& recording);

}  // namespace hotlap
