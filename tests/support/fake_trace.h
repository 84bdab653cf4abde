#pragma once
// A profiler's trace for tests, in microseconds; and what analyzers make of it.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/registry.h"
#include "analysis/step_builder.h"
#include "analysis/trace_phases.h"

namespace hotlap {

// Names get their ids as they come. Process 1 is the program, process 2 its GPU.
class FakeTrace {
 public:
  Span& add(SpanKind kind, std::string_view name, std::int64_t start_us, std::int64_t us, std::uint32_t thread = 1) {
    Span span{.start_ns = start_us * 1000,
              .duration_ns = us < 0 ? -1 : us * 1000,
              .kind = kind,
              .process = 1,
              .thread = thread};
    span.name = id_of(name);
    if (kind == SpanKind::kKernel || kind == SpanKind::kTransfer) span.process = 2;
    return spans_.emplace_back(span);
  }
  // A call on the host, and the work that it launched.
  void launch(std::string_view call, std::string_view work, std::int64_t call_us, std::int64_t call_for_us,
              std::int64_t start_us, std::int64_t us, std::uint32_t stream = 7) {
    const std::int64_t id = ++launches_;
    add(SpanKind::kRuntime, call, call_us, call_for_us).value_a = id;
    add(work.starts_with("Mem") ? SpanKind::kTransfer : SpanKind::kKernel, work, start_us, us, stream).value_a = id;
  }
  std::uint32_t id_of(std::string_view name) {
    for (std::uint32_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return i + 1;
    }
    names_.emplace_back(name);
    return static_cast<std::uint32_t>(names_.size());
  }
  std::vector<Span> sorted() const {
    std::vector<Span> out = spans_;
    std::ranges::stable_sort(out, [](const Span& a, const Span& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
    });
    return out;
  }
  std::function<std::string(std::uint32_t)> name_of() const {
    return [this](std::uint32_t id) { return id == 0 || id > names_.size() ? std::string() : names_[id - 1]; };
  }

  std::vector<Step> steps(TracePhases::Host host = TracePhases::Host::kRunsOperators) const {
    std::vector<Step> steps;
    StepBuilder builder([&](const Step& step) { steps.push_back(step); });
    TracePhases phases(name_of(),
                       {.span = [&](const Span& span) { builder.add(span); },
                        .set_inferred = [&](std::uint32_t process) { builder.set_inferred(process); }},
                       host);
    for (const Span& span : sorted()) phases.add(span);
    phases.finish();
    builder.finish();
    return steps;
  }

  FactTable facts(std::string_view analyzer, std::size_t chunk = SIZE_MAX) const {
    const RunInfo run;
    const RecordingInfo recording;
    const std::vector<ProcessInfo> processes{{.slot = 1, .role = ProcessRole::kMain}, {.slot = 2, .label = "gpu0"}};
    const StepTable steps;
    const RunDescription description{
        .run = &run, .recording = &recording, .steps = &steps, .processes = processes, .name_of = name_of()};
    FactTable out;
    for (const AnalyzerSpec* spec : all_analyzers()) {
      if (spec->id != analyzer) continue;
      const auto one = spec->open(description);
      const std::vector<Span> spans = sorted();
      for (std::size_t at = 0; at < spans.size();) {
        std::vector<Span> lot;
        for (; at < spans.size() && lot.size() < chunk; ++at) {
          if (std::ranges::find(spec->spans, spans[at].kind) != spec->spans.end()) lot.push_back(spans[at]);
        }
        one->on_spans(lot);
      }
      // What is merged into an empty one says the same.
      const auto merged = spec->open(description);
      merged->merge(*one);
      merged->snapshot(out);
    }
    return out;
  }

 private:
  std::int64_t launches_ = 1000;
  std::vector<Span> spans_;
  std::vector<std::string> names_;
};

// A field of the first fact of a kind, or of the one with that name; -1: it is absent, -2: there is no such fact.
inline double field(const FactTable& facts, std::string_view kind, std::string_view name, std::string_view of = {}) {
  for (const Fact* fact : facts.all(kind)) {
    if (of.empty() || fact->text("name") == std::string(of)) return fact->number(name).value_or(-1);
  }
  return -2;
}

}  // namespace hotlap
