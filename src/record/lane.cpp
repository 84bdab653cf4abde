#include "record/lane.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace hotlap {
namespace {

constexpr unsigned kBackOffDoublingsMax = 6;     // 64 periods
constexpr std::int64_t kAtOnce = INT64_MIN / 2;  // due before any tick, and far from overflow
constexpr std::size_t kRefusedNamesMax = 1000;   // so that a refused series is counted once, within bounds

}  // namespace

struct CollectorLane::Member {
  const CollectorSpec* spec = nullptr;
  std::unique_ptr<Collector> collector;
  std::int64_t due_ns = kAtOnce;
  std::uint64_t ticks = 0;
  unsigned failures = 0;
  bool is_absent = false;  // this machine has none of it
  unsigned absences = 0;   // times that it was looked for in vain
  CollectorUse use;
};

class CollectorLane::Sink final : public SampleSink {
 public:
  Sink(CollectorLane& lane, const CollectorSpec& spec, Batch& out) : lane_(lane), spec_(spec), out_(out) {}

  SeriesHandle series(std::uint16_t metric, std::string_view instance) override {
    HOTLAP_CHECK(metric < spec_.metrics.size());
    const MetricDesc& desc = spec_.metrics[metric];
    const SeriesHandle handle = lane_.series_.add(desc, instance);
    if (!handle.valid() && lane_.refused_.size() < kRefusedNamesMax && lane_.refused_.emplace(&desc, instance).second) {
      count_loss("record.series_refused", 1);
    }
    return handle;
  }

  void add(SeriesHandle series, Value value) override {
    if (!series.valid()) return;  // counted when it was refused
    auto& last = lane_.last_tick_of_series_;
    if (series.index >= last.size()) last.resize(std::size_t{series.index} + 64, 0);
    if (last[series.index] == lane_.tick_number_) {
      count_loss("collect.duplicates", 1);
      return;
    }
    last[series.index] = lane_.tick_number_;
    out_.samples.push_back({series, value});
  }

  void event(EventKind kind, std::int64_t value, std::string_view text) override {
    out_.events.push_back({out_.t_ns, kind, value, std::string(text)});
  }

  void attribute(std::string_view key, std::string_view text) override { out_.attributes.emplace_back(key, text); }

  void count_loss(std::string_view counter, std::uint64_t count) override { out_.losses.push_back({counter, count}); }

 private:
  CollectorLane& lane_;
  const CollectorSpec& spec_;
  Batch& out_;
};

CollectorLane::CollectorLane(Setup setup)
    : host_(*setup.host), clock_(*setup.clock), series_(*setup.series), interval_ns_(setup.interval_ns) {}

CollectorLane::~CollectorLane() = default;

void CollectorLane::add(const CollectorSpec& spec) { adopt(spec, nullptr); }

void CollectorLane::adopt(const CollectorSpec& spec, std::unique_ptr<Collector> collector) {
  auto member = std::make_unique<Member>();
  member->spec = &spec;
  member->collector = std::move(collector);
  member->use.name = spec.name;
  members_.push_back(std::move(member));
}

std::int64_t CollectorLane::period_ns(const Member& member) const {
  return std::max(interval_ns_, member.spec->min_period_ns);
}

std::int64_t CollectorLane::next_due_ns() const {
  std::int64_t next = INT64_MAX;
  for (const auto& member : members_) {
    if (!member->is_absent) next = std::min(next, member->due_ns);
  }
  return next;
}

std::vector<CollectorUse> CollectorLane::use() const {
  std::vector<CollectorUse> all;
  for (const auto& member : members_) {
    if (member->collector) all.push_back(member->use);
  }
  return all;
}

void CollectorLane::tick(std::int64_t t_ns, const JobView& job, Batch& out) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  out.t_ns = t_ns;
  ++tick_number_;
  std::int64_t before_ns = clock_.mono_ns();
  for (const auto& member : members_) {
    // Half an interval of tolerance: a tick that comes a little early must not push a collector to the next one.
    if (member->is_absent || t_ns < member->due_ns - interval_ns_ / 2) continue;
    run(*member, {t_ns, member->ticks, job}, out);
    const std::int64_t after_ns = clock_.mono_ns();
    member->use.time_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(0, after_ns - before_ns));
    before_ns = after_ns;
  }
}

void CollectorLane::last_tick(std::int64_t t_ns, const JobView& job, Batch& out) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  out.t_ns = t_ns;
  ++tick_number_;
  for (const auto& member : members_) {
    if (member->spec->sees_end && member->collector) run(*member, {t_ns, member->ticks, job, true}, out);
  }
}

void CollectorLane::run(Member& member, const TickInfo& tick, Batch& out) {
  const std::int64_t t_ns = tick.t_ns;
  const std::int64_t period = period_ns(member);
  // Keeps its phase, unless it fell behind or the period became shorter.
  const std::int64_t on_grid = member.due_ns == kAtOnce ? t_ns + period : member.due_ns + period;
  member.due_ns = on_grid <= t_ns || on_grid > t_ns + 2 * period ? t_ns + period : on_grid;
  if (!member.collector && !open(member, out)) return;

  Sink sink(*this, *member.spec, out);
  const Result<Outcome> outcome = member.collector->sample(tick, sink);
  ++member.ticks;
  if (outcome.ok()) {
    member.failures = 0;
    ++member.use.samples;
    return;
  }
  back_off(member, outcome.error(), out);
}

bool CollectorLane::open(Member& member, Batch& out) {
  Result<std::unique_ptr<Collector>> opened = member.spec->open(host_);
  if (opened.ok()) {
    member.collector = std::move(*opened);
    return true;
  }
  const ErrorCode code = opened.error().code;
  if (code == ErrorCode::kUnsupported || code == ErrorCode::kNotFound) {
    HOTLAP_LOG_DEBUG("collector {}: left out: {}", member.spec->name, opened.error().message);
    member.is_absent = member.spec->look_again_ns == 0;
    member.due_ns += member.spec->look_again_ns << std::min(member.absences, kBackOffDoublingsMax);
    ++member.absences;
    return false;
  }
  back_off(member, opened.error(), out);
  return false;
}

void CollectorLane::back_off(Member& member, const Error& error, Batch& out) {
  if (member.failures == 0) HOTLAP_LOG_WARNING("collector {}: {}", member.spec->name, error.message);
  const std::int64_t periods = std::int64_t{1} << std::min(member.failures, kBackOffDoublingsMax);
  ++member.failures;
  ++member.use.errors;
  member.use.skipped += static_cast<std::uint64_t>(periods - 1);
  member.due_ns += (periods - 1) * period_ns(member);
  out.losses.push_back({"collect.errors", 1});
}

}  // namespace hotlap
