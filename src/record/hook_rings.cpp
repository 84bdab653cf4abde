#include "record/hook_rings.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/format.h"
#include "base/host.h"
#include "base/json_reader.h"
#include "base/log.h"
#include "base/text.h"
#include "record/hook_metrics.h"
#include "record/profile_plan.h"

namespace hotlap {
namespace {

constexpr std::size_t kNamesMax = 65'536;
constexpr std::size_t kNameBytesMax = 512;
constexpr std::size_t kInfoBytesMax = 16 * 1024;
constexpr std::size_t kUserCountsMax = 1'000;  // names of hotlap.count() that become series
constexpr std::size_t kFiguresMax = 1'000;     // the hook's own, each about a device
constexpr std::size_t kEventTextMax = 300;
constexpr std::int64_t kAlivePeriodNs = kNsPerS;
constexpr std::int64_t kLivePeriodNs = kNsPerS;  // of page 0
// A ring of a process that was never seen alive is given up after so long without a record: one that was killed before
// we looked, or one that lives where our /proc does not show it and has been heard of.
constexpr std::int64_t kUnseenRestNs = 60 * kNsPerS;
constexpr std::int64_t kHiddenRestNs = 3'600 * kNsPerS;
constexpr std::int64_t kProfileAnswerNs = 120 * kNsPerS;
constexpr std::string_view kDeviceKey = "device.";
constexpr std::size_t kDevicesMax = 64;  // of a process

std::uint64_t inode_of(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

// We are short of descriptors or memory: later it may be opened.
bool may_pass(const Error& error) {
  return error.os_error == EMFILE || error.os_error == ENFILE || error.os_error == ENOMEM;
}

std::string_view step_source(std::uint8_t flags) {
  switch (flags & kStepSourceMask) {
    case kStepByOptimizer: return "optimizer";
    case kStepByLoader: return "loader";
    case kStepByProgram: return "program";
    default: return "unknown";
  }
}

}  // namespace

// A number that a process sends under a name. Several of one tick are sampled once: the last.
struct HookRings::Sent {
  double value = 0;
  bool is_new = false;
  const MetricDesc* metric = nullptr;
  SeriesHandle series;
};

struct HookRings::Ring {
  Ring(RingReader opened, const std::string& file_name, const RingFileName& parsed)
      : reader(std::move(opened)),
        name(file_name),
        source(parsed.source),
        pid(parsed.pid),
        start_ticks(parsed.start_ticks) {}
  // Of a native observer in the process: it leads nothing and is asked nothing, and the hook may be there or not.
  bool is_native() const { return !source.empty(); }
  RingReader reader;
  std::string name;    // of its file
  std::string source;  // "nvtx"; empty: the hook
  std::uint32_t pid;   // as the process itself sees it
  std::uint64_t start_ticks;
  HookPlace place;
  std::uint32_t slot = 0;
  std::vector<std::uint32_t> names{0};               // by the process's own id
  std::array<std::uint32_t, kDevicesMax> devices{};  // slots, by the process's own number; 0: not known
  RingCounters counted;
  std::uint64_t names_missing = 0;  // since the last tick
  bool has_refused_counts = false;
  bool has_refused_figures = false;
  std::map<std::uint32_t, Sent> user_counts;  // by the recorder's number of the name
  std::map<std::uint32_t, Sent> figures;
  std::uint64_t profile_word = 0;  // of a request that is not answered yet
  std::int64_t profile_asked_ns = 0;
  std::string_view step_source;
  bool waits_are_inferred = false;
  bool is_new = true;
  bool was_seen_alive = false;
  std::uint64_t head = 0;  // as of the last drain
  std::int64_t moved_ns = 0;
  bool has_moved = false;  // since it was opened
  std::int64_t next_alive_check_ns = 0;
  std::int64_t next_live_sample_ns = 0;
  std::array<SeriesHandle, kFirstFigure> series{};
};

// Turns the records of one ring into the batch.
class HookRings::Visitor final : public RecordVisitor {
 public:
  Visitor(HookRings& rings, Ring& ring, std::int64_t t_ns, bool leads, Batch& out)
      : rings_(rings), ring_(ring), t_ns_(t_ns), leads_(leads), out_(out) {}

  void on_span(const Span& span, std::uint8_t flags) override {
    if (span.kind == SpanKind::kStep) note_step(span, flags);
    if (span.kind == SpanKind::kDataWait && (flags & kWaitBeforeForward) != 0 &&
        !std::exchange(ring_.waits_are_inferred, true)) {
      attribute("wait_source", "gap before forward");
    }
    Span& copy = out_.spans.emplace_back(span);
    copy.process = ring_.slot;
    copy.name = name(span.name);
    if (ring_.is_native()) place_device_work(copy, flags);
    if (span.name != 0 && copy.name == 0) ++ring_.names_missing;
  }

  void on_name(std::uint32_t id, std::string_view text_untrusted) override {
    if (id == 0 || id > kNamesMax) return;
    if (ring_.names.size() <= id) ring_.names.resize(std::size_t{id} + 1, 0);
    ring_.names[id] = rings_.intern(text_untrusted, out_);
  }

  void on_info(std::int64_t t_ns, std::string_view key_untrusted, std::string_view json_untrusted) override {
    if (ring_.is_native() && key_untrusted.starts_with(kDeviceKey)) return note_device(key_untrusted, json_untrusted);
    const std::string key = strip_control(to_valid_utf8(key_untrusted.substr(0, kNameBytesMax)));
    const std::string json = to_valid_utf8(json_untrusted.substr(0, kInfoBytesMax));
    attribute(key, json);
    if (key == "oom") note_oom(t_ns, json);
  }

  void on_count(std::uint32_t id, std::int64_t, double value, std::int64_t, std::uint8_t flags) override {
    const bool is_figure = (flags & kCountOfHook) != 0;
    std::map<std::uint32_t, Sent>& sent = is_figure ? ring_.figures : ring_.user_counts;
    bool& has_refused = is_figure ? ring_.has_refused_figures : ring_.has_refused_counts;
    const std::uint32_t number = name(id);
    if (number == 0) {  // figures of different things must not end in one series
      ++ring_.names_missing;
      return;
    }
    const auto found = sent.find(number);
    if (found == sent.end() && sent.size() >= (is_figure ? kFiguresMax : kUserCountsMax)) {
      if (!std::exchange(has_refused, true)) out_.losses.push_back({"record.series_refused", 1});
      return;
    }
    Sent& one = found == sent.end() ? sent[number] : found->second;
    one.value = value;
    one.is_new = true;
  }

  void on_phase(std::int64_t t_ns, std::uint32_t phase, std::int64_t) override {
    if (!leads_ || phase > static_cast<std::uint32_t>(Phase::kUploading)) return;
    const auto told = static_cast<Phase>(phase);
    if (told == rings_.progress_.phase) return;
    rings_.progress_.phase = told;
    out_.events.push_back({t_ns, EventKind::kPhase, 0, std::string(to_string(told))});
  }

  void on_process(const ProcessRecord& process) override {
    ring_.place.role = static_cast<ProcessRole>(process.role);
    ring_.place.rank = process.rank;
    ring_.place.worker_id = process.worker_id;
    rings_.announce(ring_, t_ns_, out_);
  }

  void on_end(std::int64_t, std::uint32_t) override {}

  // Another recorder was told the phase.
  void on_first_drain() {
    const RingLive& live = ring_.reader.live();
    if (ring_.reader.was_read_before() && rings_.progress_.phase == Phase::kStarting && live.phase > 0) {
      on_phase(t_ns_, static_cast<std::uint32_t>(live.phase), live.step);
    }
  }

 private:
  std::uint32_t name(std::uint32_t id) const { return id < ring_.names.size() ? ring_.names[id] : 0; }

  void attribute(std::string_view key, std::string_view text) {
    out_.attributes.emplace_back(format("process.{}.{}", rings_.tree_.label_of(ring_.slot), key), text);
  }

  // "device.0": "gpu3".
  void note_device(std::string_view key, std::string_view json) {
    const auto ordinal = parse_u64(key.substr(kDeviceKey.size()));
    if (!ordinal || *ordinal >= ring_.devices.size() || json.size() < 2) return;
    const std::string_view label = json.substr(1, json.size() - 2);
    if (!label.starts_with("gpu") || !parse_u64(label.substr(3))) return;
    ring_.devices[*ordinal] = rings_.tree_.device(label, ring_.slot, t_ns_, out_);
  }

  // Of what a device did, or was asked to do. Processes number their launches alike: the slot tells them apart.
  void place_device_work(Span& span, std::uint8_t ordinal) {
    const bool is_work = span.kind == SpanKind::kKernel || span.kind == SpanKind::kTransfer;
    if (is_work || span.kind == SpanKind::kDeviceWindow) {
      span.process = ordinal < ring_.devices.size() ? ring_.devices[ordinal] : 0;
    }
    if ((is_work || span.kind == SpanKind::kRuntime) && span.value_a >= 0) {
      span.value_a = (std::int64_t{ring_.slot} << 32) | (span.value_a & 0xFFFF'FFFF);
    }
  }

  // The text is the framework's own; what the event shows is its first line.
  void note_oom(std::int64_t t_ns, const std::string& json) {
    const Result<JsonDocument> document = JsonDocument::parse(json);
    const auto text = document.ok() ? document->root()["text"].text() : std::nullopt;
    const std::string_view said = text ? std::string_view(*text) : std::string_view("out of device memory");
    out_.events.push_back({t_ns, EventKind::kNote, 0,
                           format("{}: {}", rings_.tree_.label_of(ring_.slot),
                                  strip_control(said.substr(0, std::min(said.find('\n'), kEventTextMax))))});
  }

  void note_step(const Span& span, std::uint8_t flags) {
    if (leads_) {
      rings_.progress_.steps = std::max(rings_.progress_.steps, span.step + 1);
      rings_.progress_.last_step_end_ns = span.start_ns + std::max<std::int64_t>(0, span.duration_ns);
    }
    const std::string_view source = step_source(flags);
    if (source == ring_.step_source) return;
    ring_.step_source = source;
    attribute("step_source", source);
  }

  HookRings& rings_;
  Ring& ring_;
  std::int64_t t_ns_;
  bool leads_;
  Batch& out_;
};

HookRings::HookRings(std::filesystem::path folder, std::uint32_t owner_uid, JobTree& tree, SeriesTable& series)
    : folder_(std::move(folder)), owner_uid_(owner_uid), tree_(tree), series_(series) {
  if (folder_.empty()) return;
  inotify_fd_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  // Without inotify (its watches are limited per user) the folder is listed at each tick.
  if (inotify_fd_ >= 0 && ::inotify_add_watch(inotify_fd_, folder_.c_str(), IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
    ::close(std::exchange(inotify_fd_, -1));
  }
}

HookRings::~HookRings() {
  if (inotify_fd_ >= 0) ::close(inotify_fd_);
}

void HookRings::poll(std::int64_t t_ns, Batch& out) {
  if (folder_.empty()) return;
  find_files(t_ns, out);
  for (auto ring = rings_.begin(); ring != rings_.end();) {
    // Asked before the last read: what an ended process wrote is then all there.
    const bool is_last = has_ended(*ring->second, t_ns, out);
    if (drain(*ring->second, t_ns, out) && !is_last) {
      ++ring;
    } else {
      ring = close(ring);
    }
  }
}

bool HookRings::has_ended(Ring& ring, std::int64_t t_ns, Batch& out) {
  if (ring.reader.live().closed == 1) return true;
  if (t_ns < ring.next_alive_check_ns) return false;
  ring.next_alive_check_ns = t_ns + kAlivePeriodNs;
  bool is_alive = tree_.is_alive(ring.place.pid, ring.place.start_ticks);
  if (!is_alive && !ring.was_seen_alive) {
    const auto pid = tree_.pid_seen_here(static_cast<std::int32_t>(ring.pid), ring.start_ticks, t_ns, out);
    is_alive = pid != ring.place.pid;
    ring.place.pid = pid;
    if (is_alive) announce(ring, t_ns, out);
  }
  if (is_alive) {
    ring.was_seen_alive = true;
    return false;
  }
  return ring.was_seen_alive || t_ns - ring.moved_ns >= (ring.has_moved ? kHiddenRestNs : kUnseenRestNs);
}

HookRings::Rings::iterator HookRings::close(Rings::iterator ring) {
  const std::string path = (folder_ / ring->first).native();
  must_list_ |= rings_.size() >= kRingsMax;  // there is room for one that was refused
  if (leader_ == ring->first) leader_.clear();
  if (!ring->second->reader.is_replaced_at(path)) ::unlink(path.c_str());
  return rings_.erase(ring);
}

void HookRings::find_files(std::int64_t t_ns, Batch& out) {
  alignas(inotify_event) std::array<char, 8192> buffer;
  while (inotify_fd_ >= 0) {
    const ssize_t n = ::read(inotify_fd_, buffer.data(), buffer.size());
    if (n <= 0) break;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(n);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof(inotify_event) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) must_list_ = true;
      if (event->len == 0) continue;
      if ((event->mask & IN_MOVED_TO) != 0) refused_.erase(event->name);  // a new file, maybe with the inode of the old
      look_at(event->name, t_ns, out);
    }
  }
  if (inotify_fd_ >= 0 && !std::exchange(must_list_, false)) return;
  for (const std::string& name : system_host().list(folder_.native()).value_or({})) look_at(name, t_ns, out);
}

void HookRings::look_at(const std::string& name, std::int64_t t_ns, Batch& out) {
  const auto id = parse_ring_file_name(name);
  if (!id) return;
  const std::string path = (folder_ / name).native();
  if (id->suffix == kRingSuffix) {
    const auto known = rings_.find(name);
    if (known != rings_.end()) {
      if (!known->second->reader.is_replaced_at(path)) return;
      drain(*known->second, t_ns, out);
      close(known);
    }
    const auto refused = refused_.find(name);
    if (refused == refused_.end() || refused->second == 0 || refused->second != inode_of(path)) {
      open_ring(name, t_ns, out);
    }
    return;
  }
  const auto pid = tree_.pid_seen_here(static_cast<std::int32_t>(id->pid), id->start_ticks, t_ns, out);
  if (!id->source.empty()) {
    const Result<std::string> reason = read_off_reason(path, owner_uid_);
    if (reason.ok()) note_observer_off(*id, pid, *reason, t_ns, out);
  } else if (id->suffix == kRingOnSuffix) {
    tree_.hook_seen(pid, id->start_ticks, t_ns, out);
  } else {
    Result<std::string> reason = read_off_reason(path, owner_uid_);
    tree_.hook_refused(pid, id->start_ticks, std::move(reason).value_or("its hook gave no reason"), t_ns, out);
  }
  ::unlink(path.c_str());
}

// An observer that was asked for and sees nothing in this process.
void HookRings::note_observer_off(const RingFileName& id, std::int32_t pid, std::string_view reason, std::int64_t t_ns,
                                  Batch& out) {
  const std::uint32_t slot = tree_.attach({.pid = pid, .start_ticks = id.start_ticks}, t_ns, out);
  out.attributes.emplace_back(format("process.{}.observer.{}", tree_.label_of(slot), id.source),
                              format("off: {}", reason));
}

// A ring that cannot be used: said once, also where the folder is listed at each tick.
void HookRings::refuse(const std::string& name, const Error& why, std::int64_t t_ns, Batch& out) {
  if (why.code == ErrorCode::kNotFound) return;
  const std::string path = (folder_ / name).native();
  if (refused_.size() >= kRefusedMax) refused_.clear();
  const std::uint64_t inode = may_pass(why) ? 0 : inode_of(path);
  must_list_ |= inode == 0;
  const auto [entry, is_new] = refused_.emplace(name, inode);
  if (!is_new && std::exchange(entry->second, inode) == inode) return;
  HOTLAP_LOG_WARNING("ring {}", why.message);
  std::string_view reason = why.message;
  if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);
  const auto id = parse_ring_file_name(name);
  const auto pid = tree_.pid_seen_here(static_cast<std::int32_t>(id->pid), id->start_ticks, t_ns, out);
  if (!id->source.empty()) {
    return note_observer_off(*id, pid, format("its ring cannot be read: {}", reason), t_ns, out);
  }
  tree_.hook_refused(pid, id->start_ticks, format("its ring cannot be read: {}", reason), t_ns, out);
}

void HookRings::open_ring(const std::string& name, std::int64_t t_ns, Batch& out) {
  if (rings_.size() >= kRingsMax) {
    if (refused_.size() >= kRefusedMax) refused_.clear();
    if (refused_.emplace(name, 0).second) out.losses.push_back({"record.processes_refused", 1});
    return;
  }
  Result<RingReader> opened = RingReader::open((folder_ / name).native(), owner_uid_);
  if (!opened.ok()) return refuse(name, opened.error(), t_ns, out);
  refused_.erase(name);
  // The name is the kernel's word for who it is; the page's is the process's own.
  auto ring = std::make_unique<Ring>(std::move(*opened), name, *parse_ring_file_name(name));
  const RingIdentity& identity = ring->reader.identity();
  const auto pid = static_cast<std::int32_t>(ring->pid);
  ring->moved_ns = t_ns;
  ring->head = ring->reader.head();
  ring->place = {.pid = tree_.pid_seen_here(pid, ring->start_ticks, t_ns, out),
                 .start_ticks = ring->start_ticks,
                 .parent_pid = static_cast<std::int32_t>(identity.parent_pid),
                 .role = static_cast<ProcessRole>(identity.role),
                 .rank = identity.rank,
                 .worker_id = identity.worker_id};
  announce(*ring, t_ns, out);
  if (ring->reader.was_read_before()) {
    const Result<std::uint64_t> asked = ring->reader.send(HookCommand::kSayAgain, 0);
    if (!asked.ok()) HOTLAP_LOG_WARNING("ring {}: {}", name, asked.error().message);
  }
  rings_.emplace(name, std::move(ring));
}

void HookRings::announce(Ring& ring, std::int64_t t_ns, Batch& out) {
  const std::uint32_t before = ring.slot;
  ring.slot = ring.is_native() ? tree_.attach(ring.place, t_ns, out) : tree_.announce(ring.place, t_ns, out);
  if (ring.slot == before) return;
  const std::string label(tree_.label_of(ring.slot));
  ring.series = {};  // those of collectives come with the first one: most jobs have none
  if (ring.is_native()) {
    ring.series[kOwnTime] = series_.add(hook_metrics()[kOwnTime], format("{} {}", label, ring.source));
  } else {
    for (const HookMetric m : {kOwnTime, kStepsEnded, kPartsShed}) {
      ring.series[m] = series_.add(hook_metrics()[m], label);
    }
  }
  for (auto* sent : {&ring.user_counts, &ring.figures}) {
    for (auto& [number, one] : *sent) one.series = {};
  }
}

void HookRings::sample_sent(Ring& ring, Batch& out) {
  const std::string_view label = tree_.label_of(ring.slot);
  for (auto& [number, one] : ring.user_counts) {
    if (!std::exchange(one.is_new, false)) continue;
    if (!one.series.valid()) {
      one.series = series_.add(hook_metrics()[kUserCount], format("{} {}", label, text_of(number)));
    }
    if (one.series.valid()) out.samples.push_back({one.series, Value::of(one.value)});
  }
  for (auto& [number, one] : ring.figures) {
    if (!std::exchange(one.is_new, false)) continue;
    if (!one.series.valid()) {
      const std::string_view text = text_of(number);
      const std::size_t space = text.find(' ');
      one.metric = hook_figure(text.substr(0, space));
      if (one.metric == nullptr) {
        out.losses.push_back({"hook.records_unknown", 1});
        continue;
      }
      const std::string_view about = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
      one.series = series_.add(*one.metric, about.empty() ? std::string(label) : format("{}/{}", label, about));
    }
    if (one.series.valid()) out.samples.push_back({one.series, figure_value(*one.metric, one.value)});
  }
}

void HookRings::sample_live(Ring& ring, Batch& out) {
  const RingLive& live = ring.reader.live();
  if (live.collective_sequence >= 0 && !ring.series[kCollectiveSequence].valid()) {
    for (const HookMetric m : {kCollectiveEntered, kCollectiveSequence}) {
      ring.series[m] = series_.add(hook_metrics()[m], tree_.label_of(ring.slot));
    }
  }
  const std::array<std::pair<HookMetric, std::int64_t>, 5> now{
      {{kOwnTime, live.own_time_ns},
       {kStepsEnded, live.step < INT64_MAX ? live.step + 1 : -1},
       {kPartsShed, static_cast<std::int64_t>(live.parts_shed)},
       {kCollectiveEntered, live.collective_group < INT64_MAX ? live.collective_group + 1 : -1},
       {kCollectiveSequence, live.collective_sequence}}};
  for (const auto& [metric, value] : now) {
    const SeriesHandle series = ring.series[metric];
    if (series.valid() && value >= 0) out.samples.push_back({series, Value::of(static_cast<std::uint64_t>(value))});
  }
}

std::string_view HookRings::text_of(std::uint32_t number) const {
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const auto& n) { return n.second == number; });
  return found == names_.end() ? std::string_view("?") : std::string_view(found->first);
}

bool HookRings::drain(Ring& ring, std::int64_t t_ns, Batch& out) {
  // The hook in the same process may have told since what the process is.
  if (ring.is_native()) {
    const std::uint32_t slot = tree_.slot_of(ring.place.pid, ring.place.start_ticks);
    if (slot != 0 && slot != ring.slot) announce(ring, t_ns, out);
  }
  const bool may_lead =
      !ring.is_native() && (ring.place.role == ProcessRole::kMain || ring.place.role == ProcessRole::kRank);
  if (leader_.empty() && may_lead && ring.reader.live().step >= 0) leader_ = ring.name;
  const auto leader = rings_.find(leader_);
  const bool leads = leader == rings_.end() ? may_lead : leader->second.get() == &ring;
  Visitor visitor(*this, ring, t_ns, leads, out);
  const Result<void> polled = ring.reader.poll(visitor);
  if (std::exchange(ring.is_new, false)) visitor.on_first_drain();
  if (std::exchange(ring.head, ring.reader.head()) != ring.reader.head()) {
    ring.moved_ns = t_ns;
    ring.has_moved = true;
  }
  count_losses(ring, out);
  if (ring.profile_word != 0) note_answer(ring, t_ns, out);
  sample_sent(ring, out);
  if (polled.ok() && t_ns < ring.next_live_sample_ns) return true;
  ring.next_live_sample_ns = t_ns + kLivePeriodNs;
  sample_live(ring, out);
  if (polled.ok()) return true;
  refuse(ring.name, polled.error(), t_ns, out);
  return false;
}

void HookRings::ask_profile(std::uint64_t argument, std::int64_t t_ns, Batch& out) {
  const bool is_for_leader = profile_mode(argument) == ProfileMode::kNow;
  std::size_t asked = 0;
  for (const auto& [name, ring] : rings_) {
    const bool trains = ring->place.role == ProcessRole::kMain || ring->place.role == ProcessRole::kRank;
    if (!trains || ring->is_native() || (is_for_leader && !leader_.empty() && name != leader_)) continue;
    const Result<std::uint64_t> word = ring->reader.send(HookCommand::kProfile, argument);
    if (!word.ok()) continue;
    ring->profile_word = *word;
    ring->profile_asked_ns = t_ns;
    ++asked;
  }
  if (asked == 0) out.events.push_back({t_ns, EventKind::kNote, 0, "profile: no process with a hook is there to ask"});
}

void HookRings::note_answer(Ring& ring, std::int64_t t_ns, Batch& out) {
  const RingAnswer& answer = ring.reader.answer();
  std::string_view said;
  if (answer.word == ring.profile_word) {
    switch (static_cast<HookAnswer>(answer.result)) {
      case HookAnswer::kDone: said = "will do as asked"; break;
      case HookAnswer::kFailed: said = "will not: an attempt has failed before, or it does not know how"; break;
      default: said = "cannot: no framework whose profiler is known"; break;
    }
  } else if (t_ns - ring.profile_asked_ns >= kProfileAnswerNs) {
    said = "has not answered: no step has ended since";
  } else {
    return;
  }
  ring.profile_word = 0;
  out.events.push_back({t_ns, EventKind::kNote, 0, format("profile: {} {}", tree_.label_of(ring.slot), said)});
}

void HookRings::count_losses(Ring& ring, Batch& out) {
  const RingCounters& now = ring.reader.counters();
  const RingCounters before = std::exchange(ring.counted, now);
  const HookLosses lost = ring.reader.take_losses();
  const auto count = [&](std::string_view counter, std::uint64_t more) {
    if (more > 0) out.losses.push_back({counter, more});
  };
  count(ring.is_native() ? "observe.records_dropped" : "hook.records_dropped", lost.records_dropped);
  count("observe.spans_left_out", lost.spans_left_out);
  count("hook.errors", lost.errors);
  count("hook.names_missing", lost.names_refused + std::exchange(ring.names_missing, 0));
  count("hook.frames_damaged",
        now.frames_damaged + now.records_malformed - before.frames_damaged - before.records_malformed);
  count("hook.records_unknown", now.records_unknown - before.records_unknown);
}

std::uint32_t HookRings::intern(std::string_view text_untrusted, Batch& out) {
  const std::string text = to_valid_utf8(text_untrusted.substr(0, kNameBytesMax));
  if (const auto found = names_.find(text); found != names_.end()) return found->second;
  if (names_.size() >= kNamesMax) return 0;
  const auto number = static_cast<std::uint32_t>(names_.size() + 1);
  names_.emplace(text, number);
  out.names.push_back(text);
  return number;
}

bool HookRings::has_live_rank() const {
  return std::any_of(rings_.begin(), rings_.end(), [](const auto& ring) {
    return ring.second->place.role == ProcessRole::kRank && (ring.second->was_seen_alive || ring.second->has_moved);
  });
}

}  // namespace hotlap
