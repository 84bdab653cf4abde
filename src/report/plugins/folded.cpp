// Where time went as folded stacks, "main;step;forward 123456" with microseconds: for flamegraph.pl, speedscope and
// Perfetto. A step's time is its parts and "other"; what lies outside of steps has a stack of its own.
#include <algorithm>
#include <array>
#include <map>
#include <ostream>

#include "analysis/recorded_steps.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "report/exporter.h"

namespace hotlap {
namespace {

using Stacks = std::map<std::string, std::int64_t>;  // → ns

// Frames are separated by ';' and the count by a blank.
std::string frame(std::string_view text) {
  std::string out;
  for (const char c : strip_control(to_valid_utf8(text))) out += c == ';' ? ',' : c == '\n' || c == '\t' ? ' ' : c;
  return out;
}

void add_step(const Step& step, const std::string& process, Stacks& stacks) {
  const std::string base = process + ";step";
  std::int64_t rest_ns = step.duration_ns;
  for (const auto& [name, ns] :
       {std::pair{"data wait", step.data_wait_ns}, std::pair{"forward", step.forward_ns},
        std::pair{"backward", step.backward_ns}, std::pair{"optimizer", step.optimizer_ns},
        std::pair{"communication", step.communication_ns}, std::pair{"checkpoint", step.checkpoint_ns},
        std::pair{"garbage collection", step.gc_ns}, std::pair{"compilation", step.compile_ns},
        std::pair{"evaluation", step.evaluation_ns}, std::pair{"hotlap", step.hook_ns}}) {
    if (!ns || *ns <= 0) continue;
    const std::int64_t part_ns = std::min(*ns, std::max<std::int64_t>(rest_ns, 0));
    stacks[base + ";" + name] += part_ns;
    rest_ns -= part_ns;
  }
  if (rest_ns > 0) stacks[base + (step.is_hooked ? ";other" : ";not looked into")] += rest_ns;
}

// Of a worker's batch: what the fetch and the collation took, and the transforms inside the fetch.
void add_worker(const Span& span, const std::string& process, Stacks& stacks) {
  const std::string base = process + ";batch";
  const std::int64_t ns = std::max<std::int64_t>(span.duration_ns, 0);
  switch (span.kind) {
    case SpanKind::kWorkerBatch: stacks[base + ";other"] += ns; break;
    case SpanKind::kWorkerFetch:
      stacks[base + ";fetch"] += ns;
      stacks[base + ";other"] -= ns;
      break;
    case SpanKind::kWorkerCollate:
      stacks[base + ";collate"] += ns;
      stacks[base + ";other"] -= ns;
      break;
    case SpanKind::kWorkerTransform:
      stacks[base + ";fetch;transform"] += ns;
      stacks[base + ";fetch"] -= ns;
      break;
    default: break;
  }
}

Result<void> write_recording(RecordingReader& reader, const std::string& prefix, Stacks& stacks) {
  HOTLAP_TRY_ASSIGN(const std::vector<ProcessInfo> processes, reader.read_processes());
  std::map<std::uint32_t, std::string> labels;
  for (const ProcessInfo& process : processes) labels[process.slot] = prefix + frame(slot_label(process));
  const auto label = [&](std::uint32_t slot) {
    const auto found = labels.find(slot);
    return found == labels.end() ? prefix + format("process {}", slot) : found->second;
  };
  HOTLAP_TRY(read_steps(reader, [&](const Step& step) { add_step(step, label(step.process), stacks); }));
  constexpr std::array kKinds{SpanKind::kWorkerBatch, SpanKind::kWorkerFetch, SpanKind::kWorkerTransform,
                              SpanKind::kWorkerCollate};
  return reader.read_spans(kKinds, {}, [&](std::span<const Span> spans) {
    for (const Span& span : spans) {
      const std::string process = label(span.process);
      // A batch that is made inside next() is a part of the step's wait, which is counted already.
      const bool is_worker = process.substr(prefix.size()).starts_with("loader ");
      if (is_worker) add_worker(span, process, stacks);
    }
  });
}

Result<void> write(const ReportView& view, std::ostream& out) {
  Stacks stacks;
  std::size_t number = 0;
  for (const std::unique_ptr<RecordingReader>& reader : view.run.recordings()) {
    ++number;
    const bool is_one = view.run.recordings().size() == 1;
    HOTLAP_TRY(write_recording(*reader, is_one ? std::string() : format("{} {};", number, frame(reader->info().node)),
                               stacks));
  }
  for (const auto& [stack, ns] : stacks) {
    const std::int64_t us = ns / kNsPerUs;
    if (us > 0) out << stack << ' ' << us << '\n';
  }
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_folded{.name = "folded",
                                                    .summary = "where time went, as folded stacks for flame graphs",
                                                    .media_type = "text/plain",
                                                    .extension = ".folded",
                                                    .write = write};

}  // namespace hotlap
