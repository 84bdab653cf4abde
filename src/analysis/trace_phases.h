#pragma once
// Steps and their parts from a profiler's trace, for the step builder. A trace marks some of them (ProfilerStep, the
// loader's next(), the optimizer) and shows the rest as operators: what the training thread runs at the top level
// before the backward pass is the forward pass, what autograd's engine runs is the backward pass. Where no step is
// marked, but spans tell the number of theirs (timelines of jobs), a step is from the first begin to the last end of
// those with its number. Else steps are the ranges that the program labelled so ("step 5"), where they cover most of
// the time between the first and the last. Else they are cut where a batch is fetched, else where the optimizer ends,
// else where the backward pass ends. All these are said to be inferred.
//
// Where the host only hands programs to the device (XLA), what it runs is no forward pass: there labels and waits for
// data alone are parts, on whichever thread they are.
//
// Spans come by start, what holds others first. Bounded: kProcessesMax processes, kSegmentsMax segments each between
// two steps, kNumbersMax numbers or labels of steps; what is beyond is counted.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/phase_names.h"
#include "model/span.h"
#include "model/trace_source.h"

namespace hotlap {

class TracePhases {
 public:
  static constexpr std::size_t kProcessesMax = 1024;
  static constexpr std::size_t kSegmentsMax = 262'144;
  static constexpr std::size_t kNumbersMax = 262'144;

  static std::span<const SpanKind> kinds();  // that say something of steps

  struct Output {
    std::function<void(const Span&)> span;                    // steps and parts, for the step builder
    std::function<void(std::uint32_t process)> set_inferred;  // before the first step of that process
  };
  enum class Host : std::uint8_t { kRunsOperators, kHandsOverPrograms };
  static Host host_of(const RecordingInfo& recording) {
    return is_of_xla(recording) ? Host::kHandsOverPrograms : Host::kRunsOperators;
  }
  TracePhases(std::function<std::string(std::uint32_t)> name_of, Output out, Host host = Host::kRunsOperators)
      : name_of_(std::move(name_of)), out_(std::move(out)), host_(host) {}

  void add(const Span& span);
  // Nothing more will come: the last step, and the steps of processes that have no marks.
  void finish();
  std::uint64_t spans_refused() const { return refused_; }

 private:
  enum class Part : std::uint8_t { kDataWait, kForward, kBackward, kOptimizer, kOther };
  // Work of one sort at the top level of one thread, without other work in between.
  struct Segment {
    std::int64_t start_ns;
    std::int64_t end_ns;
    std::uint32_t thread;
    Part part;
    bool is_marked;  // named so by the trace itself
  };
  struct Thread {
    std::int64_t top_end_ns = INT64_MIN;
    std::vector<Segment> segments;
    std::int64_t work_ns = 0;
    bool has_marks = false;
    bool may_join = true;
  };
  struct Extent {
    std::int64_t start_ns;
    std::int64_t end_ns;
  };
  // Ranges with one label on one thread.
  struct Labelled {
    std::uint32_t thread;
    std::string words;
    std::vector<Span> ranges;  // their numbers as step
  };
  struct Process {
    std::map<std::uint32_t, Thread> threads;
    std::map<std::pair<std::uint32_t, std::string>, Labelled> labelled;
    std::size_t labels = 0;                   // ranges in it
    std::map<std::int64_t, Extent> numbered;  // of the spans that tell this number of a step
    std::size_t segments = 0;
    std::int64_t last_backward_ns = INT64_MIN;  // begin of the last operator of autograd's engine
    std::int64_t last_other_ns = INT64_MIN;     // of the last one that is none
    std::vector<Span> step;                     // the one that is open: none or one
    bool has_steps = false;
    bool has_marked_forward = false;
    bool has_marked_backward = false;
    std::int64_t index = 0;
    std::int64_t last_number = -1;
  };

  struct Meaning {
    PhaseName phase = PhaseName::kNone;
    std::optional<StepLabel> step;
  };
  const Meaning& meaning_of(std::uint32_t name);
  Process* process_of(std::uint32_t slot);
  void add_number(Process& process, const Span& span);
  void add_operator(Process& process, const Span& span);
  void add_segment(Process& process, const Span& span, Part part, bool is_marked);
  void begin_step(std::uint32_t slot, Process& process, const Span& span);
  void end_step(std::uint32_t slot, Process& process);
  std::vector<Segment> take_segments(Process& process, std::uint32_t main, std::int64_t end_ns);
  std::uint32_t main_thread(const Process& process) const;
  void add_label(Process& process, const Span& span, const StepLabel& label);
  const Labelled* best_label(const Process& process) const;
  bool take_labelled(std::uint32_t slot, Process& process);
  bool take_numbered(std::uint32_t slot, Process& process);
  void emit_all(std::uint32_t slot, const Process& process, std::span<const Span> steps, std::vector<Segment> all);
  void infer(std::uint32_t slot, Process& process);
  void emit(std::uint32_t slot, const Process& process, const Span& step, std::vector<Segment> inside);

  std::function<std::string(std::uint32_t)> name_of_;
  Output out_;
  std::map<std::uint32_t, Process> processes_;
  Host host_;
  std::vector<std::optional<Meaning>> names_;  // by id; nothing: not looked at
  std::uint64_t refused_ = 0;
};

}  // namespace hotlap
