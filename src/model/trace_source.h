#pragma once
// What the attributes of a recording say of the profiler's trace that it was imported from. Thread-safe.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "model/run.h"

namespace hotlap {

// The recording was imported from a profiler's trace; other formats tell steps and parts as the hook does.
inline bool is_of_trace(const RecordingInfo& recording) {
  constexpr std::array<std::string_view, 5> kFormats{"chrome_trace", "nsys_sqlite", "rocprof", "rocprof_csv", "xplane"};
  const auto format = recording.attributes.find("source.format");
  return format != recording.attributes.end() && std::ranges::find(kFormats, format->second) != kFormats.end();
}

// Attribute of a trace whose host only hands whole programs to the device: what it runs says nothing of passes.
inline constexpr std::string_view kTraceProgramAttribute = "trace.program";
inline constexpr std::string_view kProgramOfXla = "xla";
inline bool is_of_xla(const RecordingInfo& recording) {
  const auto program = recording.attributes.find(std::string(kTraceProgramAttribute));
  return program != recording.attributes.end() && program->second == kProgramOfXla;
}

}  // namespace hotlap
