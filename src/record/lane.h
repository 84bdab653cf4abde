#pragma once
// The collectors that share one thread: which is due, how long it took, and what happens when it fails.
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/thread.h"
#include "collect/collector.h"
#include "record/batch.h"

namespace hotlap {

// What the recorder tells about one collector.
struct CollectorUse {
  std::string_view name;
  std::uint64_t time_ns = 0;  // wall time spent in it
  std::uint64_t samples = 0;  // calls that succeeded
  std::uint64_t errors = 0;
  std::uint64_t skipped = 0;  // periods left out while it was backed off
};

// Confined to one thread. `host`, `clock` and `series` outlive it. Memory is bounded by the series table.
class CollectorLane {
 public:
  struct Setup {
    const Host* host = nullptr;
    const Clock* clock = nullptr;
    SeriesTable* series = nullptr;
    std::int64_t interval_ns = 0;
  };
  explicit CollectorLane(Setup setup);
  ~CollectorLane();
  CollectorLane(const CollectorLane&) = delete;
  CollectorLane& operator=(const CollectorLane&) = delete;

  // Opens it at the first tick. A source that this machine lacks is left out in silence; another failure is tried
  // again.
  void add(const CollectorSpec& spec);
  // A collector that is already open: the recorder's own metrics.
  void adopt(const CollectorSpec& spec, std::unique_ptr<Collector> collector);
  void set_interval(std::int64_t interval_ns) { interval_ns_ = interval_ns; }

  // Samples whatever is due at `t_ns` into `out`. One failing collector does not affect the others: it pauses for
  // 1, 2, 4 … 64 of its periods.
  void tick(std::int64_t t_ns, const JobView& job, Batch& out);
  // The same of the collectors that want to see the job's end, whether they are due or not. `t_ns`: after the last
  // tick's.
  void last_tick(std::int64_t t_ns, const JobView& job, Batch& out);
  // The next time at which something is due; INT64_MAX when the lane is empty.
  std::int64_t next_due_ns() const;
  std::vector<CollectorUse> use() const;

 private:
  class Sink;
  struct Member;
  void run(Member& member, const TickInfo& tick, Batch& out);
  bool open(Member& member, Batch& out);
  std::int64_t period_ns(const Member& member) const;
  void back_off(Member& member, const Error& error, Batch& out);

  const Host& host_;
  const Clock& clock_;
  SeriesTable& series_;
  std::int64_t interval_ns_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::uint64_t> last_tick_of_series_;  // by series number: where a second value in one tick is noticed
  std::uint64_t tick_number_ = 0;
  std::set<std::pair<const MetricDesc*, std::string>> refused_;
  ThreadChecker thread_;
};

}  // namespace hotlap
