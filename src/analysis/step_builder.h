#pragma once
// Puts spans together to steps, per process. Spans come in the order in which they were recorded, of all processes
// mixed; steps come out per process in time order, each once. What comes out depends on that order only, not on how
// the spans were cut into calls: live and offline give the same.
//
// A step is cut by its kStep span; its parts are the spans of the same process that begin inside it. A step is held
// back until the next one of its process, since some parts are recorded after it. Where a process waits for data
// but never has a step, its steps are inferred from the waits. A checkpoint that another thread saves is none of it.
//
// While the framework's profiler was on, and where a pause for switching it reached into a step of any process here
// (the other ranks wait), steps are marked as profiled.
//
// Bounded: kProcessesMax processes, kPendingMax spans each and kNamedMax named ones; what is beyond is counted.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/span.h"
#include "model/step.h"

namespace hotlap {

class StepBuilder {
 public:
  static constexpr std::size_t kProcessesMax = 1024;
  static constexpr std::size_t kPendingMax = 8192;
  static constexpr std::size_t kNamedMax = 256;  // stretches that the program has named, in one step
  // Without a step after so many waits there will be none (the hook itself gives up after 128).
  static constexpr std::size_t kWaitsBeforeInference = 256;

  // The kinds that it needs to see.
  static std::span<const SpanKind> kinds();

  using Emit = std::function<void(const Step&)>;
  explicit StepBuilder(Emit emit) : emit_(std::move(emit)) {}

  // Where the texts of names are known, what the program has named itself is told of each step.
  void set_names(std::function<std::string(std::uint32_t)> name_of) { name_of_ = std::move(name_of); }
  void set_rank(std::uint32_t process, std::int32_t rank) { ranks_[process] = rank; }
  // Its steps are marked as inferred: the hook cut them by the loader's cadence.
  void set_inferred(std::uint32_t process) { inferred_.insert(process); }
  // What its steps communicate is not seen, or only in part: then it is missing, whatever calls are seen.
  void set_communication_unseen(std::uint32_t process, bool is_unseen);
  void add(const Span& span);
  // Nothing more will come: gives out what is held back.
  void finish();

  struct Counts {
    std::uint64_t spans_refused = 0;  // a bound was reached
    std::uint64_t steps_damaged = 0;  // without an end
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Process {
    std::vector<Span> pending;   // parts whose step is not known yet
    std::vector<Span> named;     // by the program, likewise
    std::vector<Span> waits;     // of a process that had no step so far
    std::optional<Span> step;    // held back
    bool is_profiling = false;   // the profiler is on
    bool was_profiling = false;  // when `step` ended
    bool has_hook_spans = false;
    std::optional<std::int64_t> hook_ns;  // per step, as last told
    bool is_inferring = false;
    bool has_steps = false;
    std::uint32_t measured = 0;  // parts seen at least once: one that is absent from a later step took no time
    std::uint32_t shed = 0;      // parts that the hook has stopped watching
    std::int64_t index_inferred = 0;
    std::int64_t last_end_ns = INT64_MIN;
  };

  Process* process_of(std::uint32_t slot);
  void add_part(Process& process, const Span& span);
  void add_named(Process& process, const Span& span);
  static std::vector<Span> take_named(Process& process, const Span& step);
  void add_pause(Process& process, const Span& span);
  bool has_pause(const Span& step) const;
  void close_held(std::uint32_t slot, Process& process);
  void infer(std::uint32_t slot, Process& process, bool is_last);
  using Parts = std::vector<Span>;
  Parts take_parts(Process& process, std::int64_t start_ns, std::int64_t end_ns);
  void emit_step(std::uint32_t slot, Process& process, const Span& span, bool is_inferred);

  Emit emit_;
  std::function<std::string(std::uint32_t)> name_of_;
  std::map<std::uint32_t, Process> processes_;
  std::set<std::uint32_t> inferred_;
  std::set<std::uint32_t> communication_unseen_;
  struct Pause {
    std::int64_t from_ns;
    std::int64_t to_ns;
  };
  static constexpr std::size_t kPausesMax = 64;
  std::vector<Pause> pauses_;   // the last ones, of all processes
  std::size_t next_pause_ = 0;  // to be overwritten
  std::map<std::uint32_t, std::int32_t> ranks_;
  Counts counts_;
};

}  // namespace hotlap
