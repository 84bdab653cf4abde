#pragma once
// The collector contract: one file per source, described by a constinit spec; help, docs and API read only the spec.
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/host.h"
#include "base/result.h"
#include "model/metric.h"
#include "model/sink.h"

namespace hotlap {

enum class Outcome : std::uint8_t {
  kSampled,
  kNoData,  // nothing to say this time (the source is absent for now); not an error, no back-off
};

// A live process of the job's tree. `slot` names its series ("main", "loader 3"): unique among the live ones; when a
// process is given another slot, its values go to that slot's series from then on.
struct JobProcess {
  std::int32_t pid = 0;
  std::string_view slot;
};

// What a collector may ask about the job that is recorded. Filled by the recorder before each tick; valid during it.
struct JobView {
  std::int32_t root_pid = 0;              // 0: none (host recording)
  std::span<const JobProcess> processes;  // sorted by pid
};

// One tick as the collector sees it.
struct TickInfo {
  std::int64_t t_ns = 0;     // the tick's one timestamp, CLOCK_MONOTONIC
  std::uint64_t number = 0;  // counts ticks of this collector from 0
  JobView job;
  bool is_last = false;  // the job has ended: what is asked for at longer intervals is asked for once more
};

// Confined to its lane's thread. Keeps descriptors open and reuses buffers: no allocation in the steady state.
class Collector {
 public:
  virtual ~Collector() = default;
  // Reads the source once and adds its values. An Error backs the collector off (1, 2, 4 … 64 periods); other
  // collectors are not affected. A value that the source does not give is added as Value::missing(reason).
  virtual Result<Outcome> sample(const TickInfo& tick, SampleSink& out) = 0;
};

// Where a collector runs. kMayBlock: its own thread, since its source may hang (statvfs of a dead NFS server).
enum class Lane : std::uint8_t { kFast, kMayBlock };

struct CollectorSpec {
  std::string_view name;     // the file's name
  std::string_view summary;  // one sentence
  std::span<const MetricDesc> metrics;
  std::int64_t min_period_ns = 0;  // not sampled more often than this; 0: at every tick
  Lane lane = Lane::kFast;
  bool on_by_default = true;
  bool sees_end = false;  // sampled once more when the job has ended: it may know what ended it
  // When `open` says that this machine has none of it, it is asked again after this time, then after twice as long,
  // up to 64 times as long: for drivers that come later. 0: never again.
  std::int64_t look_again_ns = 0;
  // kUnsupported or kNotFound: this machine has none of it (silent). `host` outlives the collector.
  Result<std::unique_ptr<Collector>> (*open)(const Host& host) = nullptr;
};

}  // namespace hotlap
