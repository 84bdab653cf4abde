#pragma once
// Spans: named stretches of time inside a process, seen by the hook (or imported from a trace).
#include <cstdint>
#include <string_view>

namespace hotlap {

// The numbers are part of the ring and of the store: append only, never reuse. python/src/hotlap/_wire.py mirrors them
// and tests/golden/wire holds both sides to it.
enum class SpanKind : std::uint16_t {
  kStep = 1,      // one optimizer step, from the end of the one before; value_a: samples, value_b: tokens
  kDataWait = 2,  // main thread inside the loader's next(); value_a: samples of the batch, value_b: its bytes
  kForward = 3,   // root module only
  kBackward = 4,
  kOptimizer = 5,
  kCheckpoint = 6,    // torch.save / torch.load; value_a: bytes written or read, value_b: 1 for load
  kGarbage = 7,       // Python's collector; value_a: generation, value_b: objects collected
  kCompile = 8,       // torch.compile or its recompilation
  kEpoch = 9,         // value_a: number from 0
  kEvaluation = 10,   // the root module in eval mode
  kWorkerBatch = 11,  // in a loader worker: fetch + transform + collate; value_a: CPU ns, value_b: bytes of the batch
  kWorkerFetch = 12,  // the dataset's items of one batch; value_a: CPU ns, value_b: samples
  kWorkerTransform = 13,  // the part of the fetch inside a recognisable transform; value_a: CPU ns, value_b: calls
  kWorkerCollate = 14,    // value_a: CPU ns, value_b: samples
  kWorkerStart = 15,      // main process: from making the iterator to the first batch; value_a: workers
  kTransfer = 16,         // a copy or fill of device memory, as the device ran it; value_a: correlation, value_b: bytes
  kCollective = 17,       // reserved for communication
  kUser = 18,             // hotlap.span(name)
  kInitialisation = 19,
  kHook = 20,    // the hook's own time inside a step; value_a: parts that were shed
  kShadow = 21,  // a block of steps with the hook switched off or on; value_a: 1 on, value_b: steps in it
  // From traces of profilers. Of work on a device the process is the device's slot and the thread its stream.
  kOperator = 22,          // of the framework, on a CPU thread; value_a: its id, value_b: autograd's sequence number
  kKernel = 23,            // as the device ran it; value_a: correlation with the call that launched it, value_b: its
                           // operator's id
  kRuntime = 24,           // call of the device's runtime or driver; value_a: correlation, value_b: its operator's id
  kFunction = 25,          // Python function or module; value_a: its id, value_b: that of its caller
  kDeviceAnnotation = 26,  // a user's range as the device saw it
  kProfilePause = 27,      // the job stood still while we switched the framework's profiler; value_a: 1 on, 0 off from
                           // its end; value_b: windows so far
  kDeviceWindow = 28,      // work on a device was watched by --observe kernels; value_a: records of it that were lost
};
inline constexpr std::uint16_t kSpanKindCount = 29;
std::string_view to_string(SpanKind kind);

struct Span {
  std::int64_t start_ns = 0;      // CLOCK_MONOTONIC of the node
  std::int64_t duration_ns = -1;  // -1: its end was not seen (missing)
  SpanKind kind = SpanKind::kUser;
  std::uint32_t process = 0;  // slot of the process in its recording (model/process.h)
  std::uint32_t thread = 0;   // Linux thread id; 0: unknown
  std::uint32_t name = 0;     // id in the recording's table of names; 0: none
  std::int64_t step = -1;     // index of the step it belongs to; -1: none
  std::int64_t value_a = -1;  // meaning by kind; -1: missing
  std::int64_t value_b = -1;
  std::uint32_t detail = 0;  // id in the table of names: kept arguments of a trace's event, a JSON object; 0: none

  friend bool operator==(const Span&, const Span&) = default;
};

}  // namespace hotlap
