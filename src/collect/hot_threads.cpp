#include "collect/hot_threads.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "collect/process_files.h"

namespace hotlap {
namespace {

constexpr std::size_t kThreadsLookedAt = 256;
constexpr std::size_t kThreadsFollowed = 8;
constexpr std::size_t kThreadsTakenUp = 4;  // at one look
constexpr std::int64_t kHotShare = 20;      // a twentieth of a core

}  // namespace

void HotThreads::look(const Host& host, std::int32_t pid, std::string_view slot, std::int64_t t_ns,
                      std::uint16_t metric, SampleSink& out) {
  const bool is_first = last_ns_ == 0;
  const auto hot_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(t_ns - last_ns_, 1) / kHotShare);
  last_ns_ = t_ns;
  read_threads(host, pid);
  if (is_first) return;
  const std::vector<Followed> ended = take_out_ended();
  std::vector<Thread> hottest(threads_);
  std::ranges::sort(hottest, std::greater{}, &Thread::grown_ns);
  if (hottest.size() > kThreadsTakenUp) hottest.resize(kThreadsTakenUp);
  for (const Thread& thread : hottest) {
    if (thread.grown_ns >= hot_ns) take_up(host, pid, slot, thread, metric, out);
  }
  for (const Followed& followed : followed_) {
    const auto thread = std::ranges::lower_bound(threads_, followed.id, {}, &Thread::id);
    out.add(followed.series, Value::of(thread->run_ns));
  }
  // A thread of the same name may have got the series in this very look.
  for (const Followed& lost : ended) {
    if (std::ranges::find(followed_, lost.label, &Followed::label) != followed_.end()) continue;
    out.add(lost.series, Value::missing(MissingReason::kSourceLost));
  }
}

void HotThreads::read_threads(const Host& host, std::int32_t pid) {
  previous_.swap(threads_);
  threads_.clear();
  const std::string folder = format("/proc/{}/task", pid);
  const Result<std::vector<std::string>> names = host.list(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (threads_.size() == kThreadsLookedAt) break;
    const auto id = parse_i64(name);
    if (!id) continue;
    const Result<std::string> text = host.read_text(format("{}/{}/schedstat", folder, name));
    const auto times = text.ok() ? parse_schedstat(*text) : std::nullopt;
    if (times) threads_.push_back({static_cast<std::int32_t>(*id), times->run_ns, 0});
  }
  std::ranges::sort(threads_, {}, &Thread::id);
  for (Thread& thread : threads_) {
    const auto before = std::ranges::lower_bound(previous_, thread.id, {}, &Thread::id);
    const bool is_known = before != previous_.end() && before->id == thread.id && before->run_ns <= thread.run_ns;
    thread.grown_ns = is_known ? thread.run_ns - before->run_ns : 0;
  }
}

std::vector<HotThreads::Followed> HotThreads::take_out_ended() {
  std::vector<Followed> ended;
  std::erase_if(followed_, [&](Followed& followed) {
    const auto thread = std::ranges::lower_bound(threads_, followed.id, {}, &Thread::id);
    if (thread != threads_.end() && thread->id == followed.id) {
      followed.grown_ns = thread->grown_ns;
      return false;
    }
    ended.push_back(followed);
    return true;
  });
  return ended;
}

void HotThreads::take_up(const Host& host, std::int32_t pid, std::string_view slot, const Thread& thread,
                         std::uint16_t metric, SampleSink& out) {
  if (std::ranges::find(followed_, thread.id, &Followed::id) != followed_.end()) return;
  if (followed_.size() == kThreadsFollowed) {
    const auto coldest = std::ranges::min_element(followed_, {}, &Followed::grown_ns);
    if (coldest->grown_ns >= thread.grown_ns) return;
    followed_.erase(coldest);
  }
  const Result<std::string> comm = host.read_text(format("/proc/{}/task/{}/comm", pid, thread.id));
  std::string name = comm.ok() ? strip_control(trim(*comm)) : std::string();
  if (name.empty()) name = "?";
  Followed followed{.id = thread.id, .label = free_label(slot, name), .series = {}, .grown_ns = thread.grown_ns};
  followed.series = out.series(metric, followed.label);
  followed_.push_back(std::move(followed));
}

std::string HotThreads::free_label(std::string_view slot, const std::string& name) const {
  std::string label = format("{}/thread {}", slot, name);
  for (int n = 2; std::ranges::find(followed_, label, &Followed::label) != followed_.end(); ++n) {
    label = format("{}/thread {} #{}", slot, name, n);
  }
  return label;
}

void HotThreads::forget(SampleSink& out, bool is_lost) {
  for (const Followed& followed : followed_) {
    if (is_lost) out.add(followed.series, Value::missing(MissingReason::kSourceLost));
  }
  followed_.clear();
  threads_.clear();
  previous_.clear();
  last_ns_ = 0;
}

}  // namespace hotlap
