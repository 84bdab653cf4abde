#include "record/recorder.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "base/format.h"
#include "base/log.h"

namespace hotlap {
namespace {

constexpr std::size_t kBatchesMax = 256;
constexpr std::size_t kBatchesWake = 128;
constexpr std::size_t kSparesMax = 64;
constexpr std::size_t kNotesMax = 1024;
constexpr std::size_t kCarriedMax = 4'096;  // of each kind
constexpr std::int64_t kLastPushNs = 5 * kNsPerS;
constexpr std::int64_t kFirstCommitNs = 150 * kNsPerMs;
constexpr std::int64_t kPollNs = 5 * kNsPerMs;

}  // namespace

// Thread-safe: batches go round, so that the steady state allocates nothing.
class Recorder::BatchPool {
 public:
  std::unique_ptr<Batch> get() {
    {
      const MutexLock lock(mutex_);
      if (!spares_.empty()) {
        auto batch = std::move(spares_.back());
        spares_.pop_back();
        return batch;
      }
    }
    return std::make_unique<Batch>();
  }
  void put(std::unique_ptr<Batch> batch) {
    batch->clear();
    const MutexLock lock(mutex_);
    if (spares_.size() < kSparesMax) spares_.push_back(std::move(batch));
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Batch>> spares_ HOTLAP_GUARDED_BY(mutex_);
};

struct Recorder::SlowLane {
  SlowLane(const CollectorSpec& collector, CollectorLane::Setup setup) : spec(&collector), lane(setup) {
    lane.add(collector);
  }
  const CollectorSpec* spec;
  CollectorLane lane;
  std::unique_ptr<Batch> carried;
  std::unique_ptr<NamedThread> thread;
};

Recorder::Recorder(RecorderOptions options, std::unique_ptr<RecordingWriter> writer)
    : options_(std::move(options)),
      series_(options_.series_max),
      pool_(std::make_unique<BatchPool>()),
      queue_(kBatchesMax, kBatchesWake),
      notes_(kNotesMax, kNotesMax),
      loss_notes_(kNotesMax, kNotesMax),
      write_lane_(std::move(writer), series_),
      interval_ns_(std::clamp(options_.interval_ns, kIntervalNsMin, kIntervalNsMax)),
      root_pid_(options_.tree.root_pid),
      lane_(CollectorLane::Setup{options_.host, options_.clock, &series_, interval_ns_}),
      tree_(*options_.host, *options_.clock, options_.tree),
      rings_(options_.ring_folder, options_.owner_uid, tree_, series_),
      interval_in_use_ns_(interval_ns_) {
  for (const CollectorSpec* spec : options_.collectors) {
    if (!spec->on_by_default) continue;
    if (spec->lane == Lane::kFast) {
      lane_.add(*spec);
    } else {
      slow_lanes_.push_back(std::make_unique<SlowLane>(
          *spec, CollectorLane::Setup{options_.host, options_.clock, &series_, interval_ns_}));
    }
  }
  lane_.adopt(kSelfSpec,
              make_self_collector(*options_.host, {.counters = &counters_,
                                                   .collectors = [this] { return collector_use(); },
                                                   .bytes_written = [this] { return write_lane_.bytes_written(); },
                                                   .write_time_ns = [this] { return write_lane_.time_ns(); }}));
}

Recorder::~Recorder() {
  if (!is_finished_) finish("unknown");
}

void Recorder::start() {
  // Without one of these two nothing is recorded: the supervisor starts another process, and tells the gap.
  write_thread_ = std::make_unique<NamedThread>(
      "write", [this](const std::stop_token& stop, const WakeEvent&) { run_writer(stop); }, OnException::kEndsProcess);
  sched_thread_ = std::make_unique<NamedThread>(
      "sched", [this](const std::stop_token& stop, const WakeEvent& wake) { run_ticks(stop, wake); },
      OnException::kEndsProcess);
  for (const auto& slow : slow_lanes_) {
    slow->thread = std::make_unique<NamedThread>(
        format("slow:{}", slow->spec->name),
        [this, lane = slow.get()](const std::stop_token& stop, const WakeEvent& wake) {
          try {
            run_slow(*lane, stop, wake);
          } catch (const std::exception& error) {  // the others go on
            HOTLAP_LOG_ERROR("collector {} is given up: {}", lane->spec->name, error.what());
            count_loss("collect.errors", 1);
          }
        });
  }
}

void Recorder::set_interval(std::int64_t interval_ns) {
  interval_ns_.store(std::clamp(interval_ns, kIntervalNsMin, kIntervalNsMax), std::memory_order_relaxed);
  if (sched_thread_) sched_thread_->wake();
}

void Recorder::ask_profile(std::uint64_t argument) {
  profile_argument_.store(argument, std::memory_order_relaxed);
  must_ask_profile_.store(true, std::memory_order_release);
}

void Recorder::note(Event event) {
  if (!notes_.try_push(std::move(event))) HOTLAP_LOG_WARNING("more events than can be noted");
}

void Recorder::count_loss(std::string_view counter, std::uint64_t count) { loss_notes_.try_push({counter, count}); }

std::vector<CollectorUse> Recorder::collector_use() {
  std::vector<CollectorUse> all = lane_.use();
  const MutexLock lock(use_mutex_);
  all.insert(all.end(), slow_use_.begin(), slow_use_.end());
  return all;
}

void Recorder::run_ticks(const std::stop_token& stop, const WakeEvent& wake) {
  const Clock& clock = *options_.clock;
  std::int64_t deadline_ns = clock.mono_ns();
  while (!stop.stop_requested()) {
    const bool is_due = clock.sleep_until(deadline_ns, wake.fd());
    if (stop.stop_requested()) break;
    const std::int64_t now_ns = clock.mono_ns();
    if (!is_due) {
      wake.clear();
      const std::int64_t interval_ns = interval_ns_.load(std::memory_order_relaxed);
      if (interval_ns != interval_in_use_ns_) {
        interval_in_use_ns_ = interval_ns;
        lane_.set_interval(interval_ns);
        note({now_ns, EventKind::kIntervalChanged, interval_ns, {}});
        deadline_ns = now_ns;
      }
      continue;
    }
    tick(now_ns, now_ns - deadline_ns);
    deadline_ns = next_deadline(deadline_ns, clock.mono_ns());
  }
  last_words();
}

// Keeps the grid; what has passed already is left out and counted.
std::int64_t Recorder::next_deadline(std::int64_t deadline_ns, std::int64_t now_ns) {
  const std::int64_t next_ns = deadline_ns + interval_in_use_ns_;
  if (next_ns > now_ns) return next_ns;
  const std::int64_t missed = (now_ns - next_ns) / interval_in_use_ns_ + 1;
  counters_.ticks_skipped.fetch_add(static_cast<std::uint64_t>(missed), std::memory_order_relaxed);
  count_loss("record.ticks_skipped", static_cast<std::uint64_t>(missed));
  return next_ns + missed * interval_in_use_ns_;
}

void Recorder::tick(std::int64_t t_ns, std::int64_t late_ns) {
  std::unique_ptr<Batch> batch = next_batch(carried_);
  batch->t_ns = t_ns;
  counters_.ticks.fetch_add(1, std::memory_order_relaxed);
  counters_.lateness.add(late_ns);
  if (late_ns > interval_in_use_ns_ / 2) {
    counters_.ticks_late.fetch_add(1, std::memory_order_relaxed);
    batch->losses.push_back({"record.ticks_late", 1});
  }
  clock_watch_.look(options_.clock->read(), *batch);
  const std::int32_t root_pid = root_pid_.load(std::memory_order_relaxed);
  tree_.set_root(root_pid);
  tree_.update(t_ns, *batch);
  rings_.poll(t_ns, *batch);
  if (must_ask_profile_.exchange(false, std::memory_order_acquire)) {
    rings_.ask_profile(profile_argument_.load(std::memory_order_relaxed), t_ns, *batch);
  }
  steps_.store(rings_.progress().steps, std::memory_order_relaxed);
  has_live_rank_.store(rings_.has_live_rank(), std::memory_order_relaxed);
  if (!slow_lanes_.empty()) share_processes();
  lane_.tick(t_ns, {root_pid, tree_.processes()}, *batch);
  take_notes(*batch);
  push(std::move(batch), carried_);
}

void Recorder::share_processes() {
  const std::span<const JobProcess> now = tree_.processes();
  {
    const MutexLock lock(processes_mutex_);
    const bool is_same =
        shared_processes_ != nullptr &&
        std::equal(now.begin(), now.end(), shared_processes_->processes.begin(), shared_processes_->processes.end(),
                   [](const JobProcess& a, const JobProcess& b) { return a.pid == b.pid && a.slot == b.slot; });
    if (is_same) return;
  }
  auto fresh = std::make_shared<SharedProcesses>();
  fresh->slots.reserve(now.size());  // views of its strings follow: it must not move them
  for (const JobProcess& process : now) {
    fresh->processes.push_back({process.pid, fresh->slots.emplace_back(process.slot)});
  }
  const MutexLock lock(processes_mutex_);
  shared_processes_ = std::move(fresh);
}

void Recorder::take_notes(Batch& out) {
  if (notes_.size() != 0) {
    std::vector<Event> events;
    notes_.take_all(events);
    std::move(events.begin(), events.end(), std::back_inserter(out.events));
  }
  if (loss_notes_.size() != 0) {
    std::vector<LossCount> losses;
    loss_notes_.take_all(losses);
    out.losses.insert(out.losses.end(), losses.begin(), losses.end());
  }
}

std::unique_ptr<Batch> Recorder::next_batch(std::unique_ptr<Batch>& carried) {
  return carried ? std::move(carried) : pool_->get();
}

// What does not fit: samples and spans go, what is rare and cannot be had again waits for the next tick.
void Recorder::push(std::unique_ptr<Batch> batch, std::unique_ptr<Batch>& carried) {
  if (batch->empty()) {
    pool_->put(std::move(batch));
    return;
  }
  if (queue_.try_push(std::move(batch))) return;
  const std::uint64_t samples = batch->samples.size();  // NOLINT(bugprone-use-after-move): untouched when refused
  const std::uint64_t spans = batch->spans.size();
  counters_.samples_dropped.fetch_add(samples, std::memory_order_relaxed);
  counters_.spans_dropped.fetch_add(spans, std::memory_order_relaxed);
  if (samples > 0) batch->losses.push_back({"record.samples_dropped", samples});
  if (spans > 0) batch->losses.push_back({"record.spans_dropped", spans});
  batch->samples.clear();
  batch->spans.clear();
  bound_carried(*batch);
  carried = std::move(batch);
}

// What waits while the writer is stuck, within bounds. Names keep their numbers, so they all stay: the rings bound
// them.
void Recorder::bound_carried(Batch& batch) {
  std::map<std::string_view, std::uint64_t> losses;
  for (const LossCount& loss : batch.losses) losses[loss.counter] += loss.count;
  const auto bound = [&](auto& entries) {
    if (entries.size() <= kCarriedMax) return;
    losses["record.notes_dropped"] += entries.size() - kCarriedMax;
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(kCarriedMax));  // the newest stay
  };
  bound(batch.events);
  bound(batch.processes);
  bound(batch.attributes);
  bound(batch.clock);
  batch.losses.clear();
  for (const auto& [counter, count] : losses) batch.losses.push_back({counter, count});
}

void Recorder::last_words() {
  const std::int64_t t_ns = options_.clock->mono_ns();
  std::unique_ptr<Batch> batch = next_batch(carried_);
  batch->t_ns = t_ns;
  rings_.poll(t_ns, *batch);
  steps_.store(rings_.progress().steps, std::memory_order_relaxed);
  const HookProgress& progress = rings_.progress();
  const bool was_training = progress.phase == Phase::kTraining || progress.phase == Phase::kEvaluation;
  if (was_training && progress.last_step_end_ns >= 0) {
    batch->events.push_back(
        {progress.last_step_end_ns, EventKind::kPhase, 0, std::string(to_string(Phase::kFinalisation))});
  }
  lane_.last_tick(t_ns, {root_pid_.load(std::memory_order_relaxed), {}}, *batch);
  tree_.finish(t_ns, main_exit_, *batch);
  batch->clock.push_back(options_.clock->read());
  take_notes(*batch);
  // The writer is still there and has nothing else to do: wait for room.
  for (const std::int64_t until_ns = t_ns + kLastPushNs; options_.clock->mono_ns() < until_ns;) {
    if (queue_.try_push(std::move(batch))) return;
    queue_.wake().ring();
    options_.clock->sleep_until(options_.clock->mono_ns() + kPollNs, -1);
  }
}

void Recorder::run_slow(SlowLane& slow, const std::stop_token& stop, const WakeEvent& wake) {
  const Clock& clock = *options_.clock;
  while (!stop.stop_requested()) {
    const std::int64_t due_ns = slow.lane.next_due_ns();
    if (due_ns == INT64_MAX) return;  // this machine has none of it
    clock.sleep_until(due_ns, wake.fd());
    if (stop.stop_requested()) return;
    const std::int64_t t_ns = clock.mono_ns();
    if (t_ns < due_ns) continue;
    slow.lane.set_interval(interval_ns_.load(std::memory_order_relaxed));
    std::unique_ptr<Batch> batch = next_batch(slow.carried);
    std::shared_ptr<const SharedProcesses> job;
    {
      const MutexLock lock(processes_mutex_);
      job = shared_processes_;
    }
    const std::span<const JobProcess> processes =
        job != nullptr ? std::span<const JobProcess>(job->processes) : std::span<const JobProcess>();
    slow.lane.tick(t_ns, {root_pid_.load(std::memory_order_relaxed), processes}, *batch);
    push(std::move(batch), slow.carried);
    const MutexLock lock(use_mutex_);
    for (const CollectorUse& use : slow.lane.use()) {
      const auto known = std::find_if(slow_use_.begin(), slow_use_.end(),
                                      [&](const CollectorUse& other) { return other.name == use.name; });
      if (known == slow_use_.end()) {
        slow_use_.push_back(use);
      } else {
        *known = use;
      }
    }
  }
}

void Recorder::run_writer(const std::stop_token& stop) {
  const Clock& clock = *options_.clock;
  std::vector<std::unique_ptr<Batch>> batches;
  // Early, so that a run that is killed in its first second leaves its first samples too.
  std::int64_t commit_at_ns = clock.mono_ns() + std::min(kFirstCommitNs, options_.commit_period_ns);
  const auto drain = [&] {
    queue_.take_all(batches);
    for (auto& batch : batches) {
      write_lane_.apply(*batch);
      pool_->put(std::move(batch));
    }
    batches.clear();
  };
  while (!stop.stop_requested()) {
    const bool is_due = clock.sleep_until(commit_at_ns, queue_.wake().fd());
    queue_.wake().clear();
    drain();
    if (!is_due) continue;
    write_lane_.commit();
    commit_at_ns = clock.mono_ns() + options_.commit_period_ns;
  }
  drain();
  write_lane_.commit();
  closed_ = write_lane_.close();
}

Recorder::Ending Recorder::finish(std::string_view main_exit) {
  HOTLAP_CHECK(!is_finished_);
  is_finished_ = true;
  main_exit_ = main_exit;
  Ending ending;
  const Clock& clock = *options_.clock;
  for (const auto& slow : slow_lanes_) {
    if (slow->thread) slow->thread->request_stop();
  }
  const std::int64_t until_ns = clock.mono_ns() + options_.stuck_after_ns;
  for (const auto& slow : slow_lanes_) {
    if (!slow->thread) continue;
    if (!join_or_leave_behind(std::move(slow->thread), clock, until_ns)) ending.stuck_collector = slow->spec->name;
  }
  if (sched_thread_) {
    sched_thread_->request_stop();
    sched_thread_->join();
  }
  if (write_thread_) {
    write_thread_->request_stop();
    queue_.wake().ring();
    write_thread_->join();
  }
  ending.closed = closed_;
  return ending;
}

}  // namespace hotlap
