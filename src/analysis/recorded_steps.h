#pragma once
// The training steps of one recording, for readers that are no analyzers: exporters, SQL.
#include <functional>

#include "base/result.h"
#include "model/step.h"
#include "store/recording_reader.h"

namespace hotlap {

// Every step that a StepBuilder makes of the recording as it is now, per process in the order of time.
Result<void> read_steps(RecordingReader& reader, const std::function<void(const Step&)>& visit);

}  // namespace hotlap
