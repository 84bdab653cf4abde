#include "analysis/recorded_steps.h"

#include "analysis/step_builder.h"

namespace hotlap {

Result<void> read_steps(RecordingReader& reader, const std::function<void(const Step&)>& visit) {
  StepBuilder builder(visit);
  HOTLAP_TRY_ASSIGN(const std::vector<ProcessInfo> processes, reader.read_processes());
  HOTLAP_TRY_ASSIGN(const auto attributes, reader.read_attributes());
  for (const ProcessInfo& process : processes) {
    if (process.role == ProcessRole::kRank) builder.set_rank(process.slot, process.index);
    const auto source = attributes.find("process." + slot_label(process) + ".step_source");
    if (source != attributes.end() && source->second == "loader") builder.set_inferred(process.slot);
  }
  HOTLAP_TRY(reader.read_spans(StepBuilder::kinds(), {}, [&](std::span<const Span> spans) {
    for (const Span& span : spans) builder.add(span);
  }));
  builder.finish();
  return {};
}

}  // namespace hotlap
