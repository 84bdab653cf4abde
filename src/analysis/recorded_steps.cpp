#include "analysis/recorded_steps.h"

#include "analysis/step_builder.h"
#include "analysis/trace_phases.h"

namespace hotlap {

Result<void> read_steps(RecordingReader& reader, const std::function<void(const Step&)>& visit) {
  if (is_profile_window(reader.info())) return {};
  StepBuilder builder(visit);
  HOTLAP_TRY_ASSIGN(const std::vector<ProcessInfo> processes, reader.read_processes());
  HOTLAP_TRY_ASSIGN(const auto attributes, reader.read_attributes());
  for (const ProcessInfo& process : processes) {
    if (process.role == ProcessRole::kRank) builder.set_rank(process.slot, process.index);
    const auto source = attributes.find("process." + slot_label(process) + ".step_source");
    if (source != attributes.end() && source->second == "loader") builder.set_inferred(process.slot);
  }
  if (is_of_trace(reader.info())) {
    TracePhases phases([&](std::uint32_t name) { return reader.name(name); },
                       {.span = [&](const Span& span) { builder.add(span); },
                        .set_inferred = [&](std::uint32_t process) { builder.set_inferred(process); }},
                       TracePhases::host_of(reader.info()));
    HOTLAP_TRY(reader.read_spans(TracePhases::kinds(), {}, [&](std::span<const Span> spans) {
      for (const Span& span : spans) phases.add(span);
    }));
    phases.finish();
    builder.finish();
    return {};
  }
  HOTLAP_TRY(reader.read_spans(StepBuilder::kinds(), {}, [&](std::span<const Span> spans) {
    for (const Span& span : spans) builder.add(span);
  }));
  builder.finish();
  return {};
}

}  // namespace hotlap
