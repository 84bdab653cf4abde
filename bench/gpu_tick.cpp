// What the NVIDIA collector costs a tick, all in, over the fake libnvidia-ml.so.1: 8 H100 with a process each, at
// 10 Hz. The fake's own look-ups are part of it; a real driver's calls cost more and are not measured here.
//
// Prints CPU time of the thread per tick in µs: mean, median (most ticks have only what is fast) and the 95th
// percentile (once a second there is what is slow as well).
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "collect/registry.h"
#include "support/capture_sink.h"
#include "support/fake_host.h"

namespace hotlap {
namespace {

constexpr int kTicks = 200;
constexpr std::int64_t kTickNs = 100 * kNsPerMs;

// Takes what a recorder's sink takes in the steady state: one store per value.
class OneStore final : public SampleSink {
 public:
  SeriesHandle series(std::uint16_t, std::string_view) override {
    values_.emplace_back();
    return {static_cast<std::uint32_t>(values_.size() - 1)};
  }
  void add(SeriesHandle series, Value value) override {
    if (series.valid()) values_[series.index] = value;
    ++added;
  }
  void event(EventKind, std::int64_t, std::string_view) override {}
  void count_loss(std::string_view, std::uint64_t) override {}
  std::size_t size() const { return values_.size(); }
  std::size_t added = 0;

 private:
  std::vector<Value> values_;
};

std::int64_t thread_cpu_ns() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::int64_t{spent.tv_sec} * kNsPerS + spent.tv_nsec;
}

int measure() {
  std::string script = "@tick 0s\n@dir /dev/nvidiactl\n@link /proc/self/ns/pid pid:[4026531836]\n@job 1000\n";
  for (int rank = 0; rank < 8; ++rank) script += format("@process {} rank {}\n", 1001 + rank, rank);
  script += "@nvml current\ngpu 0-7 like h100\n";
  for (int rank = 0; rank < 8; ++rank) script += format("gpu {} process {} 16000\n", rank, 1001 + rank);
  auto host = test::FakeHost::parse(script);
  if (!host.ok() || !(*host)->advance().ok()) return 1;
  const auto specs = all_collectors();
  const auto spec = std::find_if(specs.begin(), specs.end(), [](const auto* s) { return s->name == "nvidia"; });
  auto collector = (*spec)->open(**host);
  if (!collector.ok()) return 1;
  OneStore sink;
  TickInfo tick = (*host)->tick();
  (void)(*collector)->sample(tick, sink);  // registers and allocates: not what a tick costs
  std::vector<double> took_us;
  std::int64_t due_ns = system_clock().mono_ns();
  sink.added = 0;
  for (int t = 1; t <= kTicks; ++t) {
    due_ns += kTickNs;
    system_clock().sleep_until(due_ns, -1);
    tick.t_ns += kTickNs;
    tick.number = static_cast<std::uint64_t>(t);
    const std::int64_t begin_ns = thread_cpu_ns();
    (void)(*collector)->sample(tick, sink);
    took_us.push_back(static_cast<double>(thread_cpu_ns() - begin_ns) / 1e3);
  }
  double sum = 0;
  for (const double one : took_us) sum += one;
  std::sort(took_us.begin(), took_us.end());
  std::printf("%zu series, %zu values a tick; CPU per tick: mean %.0f us, median %.0f us, p95 %.0f us\n", sink.size(),
              sink.added / kTicks, sum / kTicks, took_us[kTicks / 2], took_us[kTicks * 95 / 100]);
  return 0;
}

}  // namespace
}  // namespace hotlap

int main() { return hotlap::measure(); }
