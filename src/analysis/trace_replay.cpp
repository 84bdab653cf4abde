#include "analysis/trace_replay.h"

#include <algorithm>

#include "base/clock.h"

namespace hotlap {
namespace {

constexpr std::size_t kNamesMax = 1'000'000;
// A launch on its way; what waits longer waits for something else.
constexpr std::int64_t kOnItsWayNs = 10 * kNsPerUs;
// From such waits on, of the time since the wait before, workers of a loader are what is slow: a faster host would only
// wait longer. Shorter ones are the work of taking a batch from them.
constexpr std::int64_t kLoaderIsSlowNs = 500 * kNsPerUs;
constexpr double kLoaderIsSlowShare = 0.05;

std::size_t index(Freed freed) { return static_cast<std::size_t>(freed); }

std::int64_t& part(CriticalPath& path, PathPart which) { return path[static_cast<std::size_t>(which)]; }

}  // namespace

std::string_view to_string(Freed freed) {
  constexpr std::array<std::string_view, kFreedCount> kNames{"nothing", "waits",  "dispatch",      "host code",
                                                             "data",    "copies", "communication", "matrix type"};
  return kNames[index(freed)];
}

std::string_view name_of_part(std::size_t part) {
  if (part < kKernelSortCount) return to_string(static_cast<KernelSort>(part));
  constexpr std::array<std::string_view, kPathPartCount - kKernelSortCount> kNames{"copies",
                                                                                   "waiting for data",
                                                                                   "dispatching operators",
                                                                                   "allocating, loading code",
                                                                                   "other host code",
                                                                                   "waking up after a wait",
                                                                                   "launch",
                                                                                   "waits not in trace"};
  return kNames[part - kKernelSortCount];
}

TraceReplay::TraceReplay(std::function<std::string(std::uint32_t)> name_of) : name_of_(std::move(name_of)) {}

const TraceReplay::Name& TraceReplay::look_up(std::uint32_t name, SpanKind span) {
  if (name >= kNamesMax) return beyond_;
  if (name >= names_.size()) names_.resize(name + 1);
  Name& known = names_[name];
  if (known.kind != NameKind::kUnseen) return known;
  const std::string text = name_of_(name);
  known.kind = NameKind::kPlain;
  if (span == SpanKind::kRuntime) {
    known.may_set_up = may_set_up(text);
    if (names_synchronisation(text)) {
      known.kind = NameKind::kSync;
    } else if (names_launch(text)) {
      known.kind = NameKind::kLaunch;
    }
  } else if (span == SpanKind::kKernel) {
    const KernelTraits traits = traits_of_kernel(text);
    known.sort = traits.sort;
    if (traits.sort == KernelSort::kCommunication) {
      known.kind = NameKind::kCommunication;
    } else if (is_matrix_work(traits.sort) && traits.type == KernelType::kFp32 && traits.on_matrix_units == false) {
      known.kind = NameKind::kSlowMatrix;
    }
  } else if (span == SpanKind::kDataWait && text.find("SingleProcess") != std::string::npos) {
    known.kind = NameKind::kInProcessLoader;
  }
  return known;
}

void TraceReplay::add(const Span& span) {
  if (span.duration_ns < 0) return;
  switch (span.kind) {
    case SpanKind::kRuntime:
    case SpanKind::kDataWait:
    case SpanKind::kOperator:
    case SpanKind::kOptimizer:
    case SpanKind::kKernel:
    case SpanKind::kTransfer: break;
    default: return;
  }
  course_.close_syncs(span.start_ns);
  course_.first_ns = std::min(course_.first_ns, span.start_ns);
  course_.last_ns = std::max(course_.last_ns, span.start_ns + span.duration_ns);
  switch (span.kind) {
    case SpanKind::kRuntime: on_call(span); break;
    case SpanKind::kDataWait: on_wait(span); break;
    case SpanKind::kKernel:
    case SpanKind::kTransfer: on_device(span); break;
    default: (void)busy_host(span); break;
  }
}

TraceReplay::Host& TraceReplay::busy_host(const Span& span) {
  Host& host = course_.hosts[span.process];
  host.busy.add(span.start_ns, span.start_ns + span.duration_ns);
  host.last_ns = std::max(host.last_ns, span.start_ns + span.duration_ns);
  return host;
}

// What the host did since it was looked at last: with its operators free it would be earlier by those, and so on.
void TraceReplay::Course::advance_host(Host& host, std::int64_t to_ns) const {
  if (host.at_ns == INT64_MIN) host.at_ns = first_ns;
  if (to_ns <= host.at_ns) return;
  const std::int64_t data_ns = host.data.within(host.at_ns, to_ns);
  const std::int64_t sync_ns = host.syncs.within(host.at_ns, to_ns);
  const std::int64_t all_ns = to_ns - host.at_ns;
  const std::int64_t busy_ns = std::clamp<std::int64_t>(host.busy.within(host.at_ns, to_ns), 0, all_ns);
  const std::int64_t setup_ns = host.setups.within(host.at_ns, to_ns);
  const std::int64_t dispatch_ns = std::max<std::int64_t>(0, busy_ns - data_ns - sync_ns - setup_ns);
  host.saved_ns[index(Freed::kDispatch)] += dispatch_ns;
  part(host.path, PathPart::kDispatch) += dispatch_ns;
  part(host.path, PathPart::kHostCode) += all_ns - busy_ns;
  // What is left of the time in which it was busy, to its owners in turn.
  std::int64_t left_ns = busy_ns - dispatch_ns;
  for (const auto& [owner, ns] : {std::pair{PathPart::kSetup, setup_ns}, std::pair{PathPart::kSync, sync_ns},
                                  std::pair{PathPart::kData, left_ns}}) {
    part(host.path, owner) += std::min(ns, left_ns);
    left_ns -= std::min(ns, left_ns);
  }
  host.saved_ns[index(Freed::kHostCode)] += all_ns - busy_ns;
  host.at_ns = to_ns;
}

void TraceReplay::on_call(const Span& span) {
  const std::int64_t end_ns = span.start_ns + span.duration_ns;
  Host& host = busy_host(span);
  const Name name = look_up(span.name, SpanKind::kRuntime);
  const NameKind kind = name.kind;
  if (name.may_set_up && span.duration_ns >= kSetupNs) host.setups.add(span.start_ns, end_ns);
  if (kind == NameKind::kPlain) return;
  if (kind == NameKind::kLaunch) {
    course_.advance_host(host, end_ns);
    calls_.put(span.value_a, {end_ns, host.saved_ns, host.path});
    return;
  }
  course_.advance_host(host, span.start_ns);
  calls_.put(span.value_a, {span.start_ns, host.saved_ns, host.path});
  host.syncs.add(span.start_ns, end_ns);
  host.open_syncs.push_back(span);
  course_.next_sync_end_ns = std::min(course_.next_sync_end_ns, end_ns);
}

// A wait ends where everything it may have waited for has been seen.
void TraceReplay::Course::close_syncs(std::int64_t now_ns) {
  if (now_ns < next_sync_end_ns) return;
  next_sync_end_ns = INT64_MAX;
  for (auto& [process, host] : hosts) {
    std::erase_if(host.open_syncs, [&](const Span& sync) {
      const std::int64_t end_ns = sync.start_ns + sync.duration_ns;
      if (end_ns <= now_ns) {
        end_sync(host, sync);
        return true;
      }
      next_sync_end_ns = std::min(next_sync_end_ns, end_ns);
      return false;
    });
  }
}

void TraceReplay::Course::end_sync(Host& host, const Span& sync) {
  const std::int64_t end_ns = sync.start_ns + sync.duration_ns;
  // The last work that had ended by then, on any stream: what it waited for, if it waited.
  const Stream* waited_for = nullptr;
  for (const auto& [key, stream] : streams) {
    if (stream.end_ns > end_ns || stream.end_ns == INT64_MIN) continue;
    if (waited_for == nullptr || stream.end_ns > waited_for->end_ns) waited_for = &stream;
  }
  const bool has_waited = waited_for != nullptr && waited_for->end_ns > sync.start_ns;
  for (std::size_t i = 0; i < kFreedCount; ++i) {
    const std::int64_t arrives_ns = sync.start_ns - host.saved_ns[i];
    std::int64_t leaves_ns = arrives_ns;
    if (i == index(Freed::kWaits)) {
      host.saved_ns[i] += sync.duration_ns;
      continue;
    }
    if (has_waited) {
      // What the call takes when nothing is left to wait for: after the work's end.
      leaves_ns = std::max(arrives_ns, waited_for->ends_ns[i]) + (end_ns - waited_for->end_ns);
    } else {
      leaves_ns = arrives_ns + sync.duration_ns;  // it did not wait, or for what the trace does not have
    }
    host.saved_ns[i] = end_ns - leaves_ns;
  }
  if (has_waited) {
    host.path = waited_for->path;
    part(host.path, PathPart::kSync) += end_ns - waited_for->end_ns;
  } else {
    part(host.path, PathPart::kSync) += sync.duration_ns;
  }
  host.at_ns = std::max(host.at_ns, end_ns);
}

void TraceReplay::on_wait(const Span& span) {
  Host& host = busy_host(span);
  const std::int64_t end_ns = span.start_ns + span.duration_ns;
  course_.advance_host(host, span.start_ns);
  host.data.add(span.start_ns, end_ns);
  const bool is_long =
      span.duration_ns >= kLoaderIsSlowNs &&
      static_cast<double>(span.duration_ns) >=
          kLoaderIsSlowShare * static_cast<double>(end_ns - std::max(host.data_end_ns, course_.first_ns));
  const bool is_loader_slow = is_long && look_up(span.name, SpanKind::kDataWait).kind != NameKind::kInProcessLoader;
  host.data_end_ns = end_ns;
  for (std::size_t i = 0; i < kFreedCount; ++i) {
    if (i == index(Freed::kData)) {
      host.saved_ns[i] += span.duration_ns;
    } else if (is_loader_slow) {
      // Workers hand over the batch when it is ready, however early somebody asks.
      host.saved_ns[i] = std::min<std::int64_t>(host.saved_ns[i], 0);
    }
  }
  part(host.path, PathPart::kData) += span.duration_ns;
  host.at_ns = std::max(host.at_ns, end_ns);
}

TraceReplay::Begin TraceReplay::begin_of(const Span& work, const Stream& stream) const {
  Begin begin;
  begin.call = calls_.find(work.value_a);
  begin.is_first = stream.end_ns == INT64_MIN;
  begin.ready_ns = begin.call != nullptr ? std::min(begin.call->ready_ns, work.start_ns) : work.start_ns;
  begin.is_late_launch = begin.is_first || (begin.call != nullptr && stream.end_ns < begin.ready_ns);
  const std::int64_t free_ns = begin.is_late_launch ? begin.ready_ns : stream.end_ns;
  begin.wait_ns = work.start_ns - free_ns;
  if (begin.wait_ns <= kOnItsWayNs) return begin;
  // Beyond its launch and its stream it waited for work of another stream that ended just then, else for what is
  // unseen.
  for (const auto& [key, candidate] : course_.streams) {
    if (&candidate == &stream || candidate.end_ns > work.start_ns || candidate.end_ns < free_ns) continue;
    if (begin.other == nullptr || candidate.end_ns > begin.other->end_ns) begin.other = &candidate;
  }
  return begin;
}

CriticalPath TraceReplay::path_to(const Span& work, const Stream& stream, const Begin& begin) const {
  CriticalPath path{};
  std::int64_t from_ns = course_.first_ns;
  if (begin.other != nullptr) {
    path = begin.other->path;
    from_ns = begin.other->end_ns;
  } else if (!begin.is_late_launch) {
    path = stream.path;
    from_ns = stream.end_ns;
  } else if (begin.call != nullptr) {
    path = begin.call->path;
    from_ns = begin.ready_ns;
    part(path, PathPart::kDispatch) -= begin.call->ready_ns - begin.ready_ns;  // it began before the call had ended
  }
  const std::int64_t wait_ns = std::max<std::int64_t>(0, work.start_ns - from_ns);
  part(path, PathPart::kLaunch) += std::min(wait_ns, kOnItsWayNs);
  part(path, PathPart::kUnseen) += wait_ns - std::min(wait_ns, kOnItsWayNs);
  return path;
}

// When it would begin: not before its launch, its stream, and what else it waited for.
std::int64_t TraceReplay::replayed_start(const Span& work, const Stream& stream, const Begin& begin,
                                         std::size_t freed) {
  if (begin.is_first && begin.call == nullptr) return work.start_ns;  // nothing is known of what it follows
  std::int64_t launched_ns = begin.call == nullptr ? INT64_MIN : begin.ready_ns - begin.call->saved_ns[freed];
  std::int64_t free_ns = begin.is_first ? INT64_MIN : stream.ends_ns[freed];
  if (begin.other != nullptr) {
    const std::int64_t behind_ns = work.start_ns - begin.other->end_ns;
    return std::max({launched_ns, free_ns, begin.other->ends_ns[freed] + behind_ns});
  }
  // The way to the device takes the same again, and so does a wait for what is unseen.
  const bool is_unseen = begin.wait_ns > kOnItsWayNs;
  if ((is_unseen || begin.is_late_launch) && launched_ns != INT64_MIN) launched_ns += begin.wait_ns;
  if ((is_unseen || !begin.is_late_launch) && free_ns != INT64_MIN) free_ns += begin.wait_ns;
  return std::max(launched_ns, free_ns);
}

void TraceReplay::on_device(const Span& span) {
  const auto key = std::pair(span.process, span.thread);
  auto found = course_.streams.find(key);
  if (found == course_.streams.end()) {
    if (course_.streams.size() >= kStreamsMax) return;
    found = course_.streams.emplace(key, Stream{}).first;
  }
  has_device_ = true;
  Stream& stream = found->second;
  const Begin begin = begin_of(span, stream);
  const bool is_copy = span.kind == SpanKind::kTransfer;
  const Name name = is_copy ? Name{.kind = NameKind::kPlain} : look_up(span.name, SpanKind::kKernel);
  const std::int64_t end_ns = span.start_ns + span.duration_ns;
  if (end_ns > stream.end_ns) {
    const std::size_t sort =
        is_copy ? static_cast<std::size_t>(PathPart::kCopies) : static_cast<std::size_t>(name.sort);
    CriticalPath path = path_to(span, stream, begin);
    // Of work that overlaps the one before it on its stream, what that has not covered.
    path[sort] += begin.is_first ? span.duration_ns : end_ns - std::max(span.start_ns, stream.end_ns);
    stream.path = path;
  }
  for (std::size_t i = 0; i < kFreedCount; ++i) {
    std::int64_t duration_ns = span.duration_ns;
    if (is_copy && i == index(Freed::kCopies)) duration_ns = 0;
    if (name.kind == NameKind::kCommunication && i == index(Freed::kCommunication)) duration_ns = 0;
    if (name.kind == NameKind::kSlowMatrix && i == index(Freed::kMatrixType)) {
      duration_ns = static_cast<std::int64_t>(static_cast<double>(duration_ns) / kMatrixGain);
    }
    const std::int64_t ends_ns = replayed_start(span, stream, begin, i) + duration_ns;
    stream.ends_ns[i] = begin.is_first ? ends_ns : std::max(stream.ends_ns[i], ends_ns);
  }
  stream.end_ns = std::max(stream.end_ns, end_ns);
}

TraceReplay::Result TraceReplay::result() const {
  Result out;
  out.has_device = has_device_;
  if (course_.last_ns <= course_.first_ns) return out;
  Course closed = course_;
  closed.close_syncs(INT64_MAX - 1);
  for (auto& [process, host] : closed.hosts) closed.advance_host(host, host.last_ns);
  out.wall_ns = closed.last_ns - closed.first_ns;
  std::int64_t latest_ns = closed.first_ns;
  const auto take_path = [&](std::int64_t end_ns, const CriticalPath& path) {
    if (end_ns <= latest_ns) return;
    latest_ns = end_ns;
    out.path = path;
  };
  for (const auto& [process, host] : closed.hosts) take_path(host.at_ns, host.path);
  for (const auto& [key, stream] : closed.streams) take_path(stream.end_ns, stream.path);
  for (std::size_t i = 0; i < kFreedCount; ++i) {
    std::int64_t end_ns = closed.first_ns;
    for (const auto& [process, host] : closed.hosts) {
      if (host.at_ns != INT64_MIN) end_ns = std::max(end_ns, host.at_ns - host.saved_ns[i]);
    }
    for (const auto& [key, stream] : closed.streams) end_ns = std::max(end_ns, stream.ends_ns[i]);
    out.replayed_ns[i] = end_ns - closed.first_ns;
  }
  return out;
}

}  // namespace hotlap
