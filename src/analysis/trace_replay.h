#pragma once
// What if this were free: a trace is run again with its recorded dependencies, once for each thing that is taken away.
// Host code keeps its order and length, work on a stream runs in order and not before its launch, a wait of the host
// ends when what it waited for has ended. What the trace does not show (other ranks, workers of a loader that make
// batches at their own pace) stays as it was. Spans come by start. Bounded: kDevicesMax streams, RecentById calls.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/kernel_names.h"
#include "analysis/trace_tables.h"
#include "model/span.h"

namespace hotlap {

// What is taken away in a replay. kNothing tells how far the replay can be trusted.
enum class Freed : std::uint8_t {
  kNothing,
  kWaits,          // the host's waits for the device
  kDispatch,       // operators and launches on the host; not the calls of kSetup
  kHostCode,       // the host outside of operators
  kData,           // waits for the loader
  kCopies,         // copies and fills of memory
  kCommunication,  // kernels of collectives
  kMatrixType,     // matrix work in fp32 without matrix units takes a third: what a narrower type may give
};
inline constexpr std::size_t kFreedCount = 8;
std::string_view to_string(Freed freed);

// What lies on the critical path: kernels by their sort (the first kKernelSortCount), and these.
enum class PathPart : std::uint8_t {
  kCopies = kKernelSortCount,
  kData,
  kDispatch,
  kSetup,  // calls of a millisecond or more: allocating, loading code
  kHostCode,
  kSync,    // from the end of the work that the host waited for until it went on
  kLaunch,  // on the way to the device
  kUnseen,  // a wait for what the trace does not show
};
inline constexpr std::size_t kPathPartCount = kKernelSortCount + 8;
using CriticalPath = std::array<std::int64_t, kPathPartCount>;  // ns, by part
std::string_view name_of_part(std::size_t part);

class TraceReplay {
 public:
  static constexpr std::size_t kStreamsMax = 4096;
  static constexpr double kMatrixGain = 3;  // kMatrixType: so many times as fast

  explicit TraceReplay(std::function<std::string(std::uint32_t)> name_of);
  void add(const Span& span);

  struct Result {
    std::int64_t wall_ns = 0;  // as recorded
    std::array<std::int64_t, kFreedCount> replayed_ns{};
    CriticalPath path{};  // the chain of host code, launches and work that determined the end; adds up to the wall
    bool has_device = false;
  };
  // Of what was added so far.
  Result result() const;

 private:
  using Times = std::array<std::int64_t, kFreedCount>;
  struct Call {
    std::int64_t ready_ns = 0;  // recorded: from when on the device could begin
    Times saved_ns{};           // by how much earlier the host came by
    CriticalPath path{};
  };
  struct Stream {
    std::int64_t end_ns = INT64_MIN;  // recorded
    Times ends_ns{};
    CriticalPath path{};
  };
  // The threads of one process that launch, taken together: they take turns.
  struct Host {
    std::int64_t at_ns = INT64_MIN;        // up to where its time is accounted for
    std::int64_t last_ns = INT64_MIN;      // recorded end
    std::int64_t data_end_ns = INT64_MIN;  // of the last wait for the loader
    Times saved_ns{};
    CriticalPath path{};
    RecentTimes busy;   // operators, calls, waits
    RecentTimes data;   // waits for the loader
    RecentTimes syncs;  // waits for the device
    RecentTimes setups;
    std::vector<Span> open_syncs;
  };
  enum class NameKind : std::uint8_t { kUnseen, kPlain, kSync, kLaunch, kCommunication, kSlowMatrix, kInProcessLoader };
  struct Name {
    NameKind kind = NameKind::kUnseen;
    KernelSort sort = KernelSort::kOther;
    bool may_set_up = false;
  };
  // Why a piece of work began when it did.
  struct Begin {
    const Call* call = nullptr;
    const Stream* other = nullptr;  // of another stream, that it waited for
    std::int64_t ready_ns = 0;      // launched by then
    std::int64_t wait_ns = 0;     // from when it was launched and its stream free; below 0: it overlaps the one before
    bool is_first = false;        // on its stream
    bool is_late_launch = false;  // its stream was free before it was launched
  };

  // How far hosts and devices have come.
  struct Course {
    std::map<std::uint32_t, Host> hosts;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Stream> streams;
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;  // recorded end of hosts and devices
    std::int64_t next_sync_end_ns = INT64_MAX;

    void close_syncs(std::int64_t now_ns);
    void end_sync(Host& host, const Span& sync);
    void advance_host(Host& host, std::int64_t to_ns) const;
  };

  const Name& look_up(std::uint32_t name, SpanKind span);
  Begin begin_of(const Span& work, const Stream& stream) const;
  CriticalPath path_to(const Span& work, const Stream& stream, const Begin& begin) const;
  Host& busy_host(const Span& span);
  void on_call(const Span& span);
  void on_wait(const Span& span);
  void on_device(const Span& span);
  static std::int64_t replayed_start(const Span& work, const Stream& stream, const Begin& begin, std::size_t freed);

  std::function<std::string(std::uint32_t)> name_of_;
  std::vector<Name> names_;
  Name beyond_;  // of names beyond the bound
  Course course_;
  RecentById<Call> calls_;
  bool has_device_ = false;
};

}  // namespace hotlap
