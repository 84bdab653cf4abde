// What collectors cost.
//
// paced/…   the CPU time of the whole thread per tick at 10 Hz, waking up included: what a recorder really pays,
// since
//           caches are cold after 100 ms of other work. `floor` reads the host's files from kept descriptors and drops
//           the text; `collectors` runs every collector of the fast lane, split up in the counters (µs per tick).
//           Compare the two within one run: the figures depend on the machine and on what else runs.
// hot/…     one collector in a loop: for comparing two versions of its code, not for budgets.
//
// Followed as a job: this process, or the pids in HOTLAP_BENCH_PIDS ("12,13").
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "collect/registry.h"

namespace hotlap {
namespace {

constexpr std::int64_t kTickNs = 100 * kNsPerMs;
constexpr std::int64_t kTicks = 100;

std::int64_t thread_cpu_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * kNsPerS + t.tv_nsec;
}

// Takes what a recorder's sink takes in the steady state: one store per value.
class BenchSink final : public SampleSink {
 public:
  SeriesHandle series(std::uint16_t, std::string_view) override {
    values_.emplace_back();
    return {static_cast<std::uint32_t>(values_.size() - 1)};
  }
  void add(SeriesHandle series, Value value) override {
    if (series.valid()) values_[series.index] = value;
  }
  void event(EventKind, std::int64_t, std::string_view) override {}
  void count_loss(std::string_view, std::uint64_t) override {}
  std::size_t size() const { return values_.size(); }

 private:
  std::vector<Value> values_;
};

struct Job {
  std::vector<std::string> slots;
  std::vector<JobProcess> processes;

  Job() {
    const char* listed = std::getenv("HOTLAP_BENCH_PIDS");  // NOLINT(concurrency-mt-unsafe): before any thread
    std::vector<std::int32_t> pids;
    for (const std::string_view pid : split(listed == nullptr ? "" : listed, ',')) {
      if (const auto id = parse_i64(pid)) pids.push_back(static_cast<std::int32_t>(*id));
    }
    if (pids.empty()) pids.push_back(::getpid());
    for (const std::int32_t pid : pids) slots.push_back(format("process {}", pid));
    for (std::size_t i = 0; i < pids.size(); ++i) processes.push_back({pids[i], slots[i]});
  }
  TickInfo tick(std::uint64_t number, std::int64_t t_ns) const {
    return {.t_ns = t_ns, .number = number, .job = {.root_pid = processes.front().pid, .processes = processes}};
  }
};

// One collector, sampled when it is due.
struct Lap {
  const CollectorSpec* spec;
  std::unique_ptr<Collector> collector;
  std::int64_t last_ns = 0;
  std::uint64_t number = 0;
  std::int64_t cpu_ns = 0;

  void tick(const Job& job, std::int64_t t_ns, BenchSink& sink) {
    if (number > 0 && t_ns - last_ns < spec->min_period_ns - spec->min_period_ns / 16) return;
    last_ns = t_ns;
    benchmark::DoNotOptimize(collector->sample(job.tick(number++, t_ns), sink).ok());
  }
};

void paced_collectors(benchmark::State& state) {
  const Job job;
  BenchSink sink;
  std::vector<Lap> laps;
  for (const CollectorSpec* spec : all_collectors()) {
    if (spec->lane != Lane::kFast) continue;
    auto opened = spec->open(system_host());
    if (opened.ok()) laps.push_back({.spec = spec, .collector = std::move(opened).value()});
  }
  // The first tick registers and allocates; it is not what a tick costs.
  for (Lap& lap : laps) lap.tick(job, system_clock().mono_ns(), sink);
  std::int64_t due_ns = system_clock().mono_ns();
  for ([[maybe_unused]] auto _ : state) {
    const std::int64_t begin_ns = thread_cpu_ns();
    due_ns += kTickNs;
    system_clock().sleep_until(due_ns, -1);
    const std::int64_t t_ns = system_clock().mono_ns();
    std::int64_t before_ns = thread_cpu_ns();
    for (Lap& lap : laps) {
      lap.tick(job, t_ns, sink);
      const std::int64_t after_ns = thread_cpu_ns();
      lap.cpu_ns += after_ns - before_ns;
      before_ns = after_ns;
    }
    state.SetIterationTime(static_cast<double>(before_ns - begin_ns) * 1e-9);
  }
  for (const Lap& lap : laps) {
    state.counters[std::string(lap.spec->name)] =
        static_cast<double>(lap.cpu_ns) / 1e3 / static_cast<double>(state.iterations());
  }
  state.counters["series"] = static_cast<double>(sink.size());
}
BENCHMARK(paced_collectors)
    ->Name("paced/collectors")
    ->Iterations(kTicks)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// The same sources at the same rates, without looking at the text.
struct FloorFile {
  std::string_view path;
  int each;  // ticks
};
constexpr std::array kFloorFiles{FloorFile{"/proc/stat", 1},
                                 FloorFile{"/proc/meminfo", 1},
                                 FloorFile{"/proc/diskstats", 1},
                                 FloorFile{"/proc/net/dev", 1},
                                 FloorFile{"/proc/pressure/cpu", 5},
                                 FloorFile{"/proc/pressure/io", 5},
                                 FloorFile{"/proc/pressure/memory", 5},
                                 FloorFile{"/proc/vmstat", 10},
                                 FloorFile{"/proc/self/stat", 2},
                                 FloorFile{"/proc/self/io", 10},
                                 FloorFile{"/proc/self/status", 10},
                                 FloorFile{"/proc/self/schedstat", 10},
                                 FloorFile{"/proc/self/smaps_rollup", 50}};

void paced_floor(benchmark::State& state) {
  std::vector<int> descriptors;
  descriptors.reserve(kFloorFiles.size());
  for (const FloorFile& file : kFloorFiles)
    descriptors.push_back(::open(std::string(file.path).c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<char> buffer(1U << 17U);
  std::int64_t due_ns = system_clock().mono_ns();
  int tick = 0;
  for ([[maybe_unused]] auto _ : state) {
    const std::int64_t begin_ns = thread_cpu_ns();
    due_ns += kTickNs;
    system_clock().sleep_until(due_ns, -1);
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      if (tick % kFloorFiles[i].each != 0 || descriptors[i] < 0) continue;
      off_t at = 0;
      for (ssize_t n = 1; n > 0; at += n) n = ::pread(descriptors[i], buffer.data(), buffer.size(), at);
    }
    ++tick;
    state.SetIterationTime(static_cast<double>(thread_cpu_ns() - begin_ns) * 1e-9);
  }
  for (const int descriptor : descriptors) {
    if (descriptor >= 0) ::close(descriptor);
  }
}
BENCHMARK(paced_floor)->Name("paced/floor")->Iterations(kTicks)->UseManualTime()->Unit(benchmark::kMicrosecond);

void hot(benchmark::State& state, const CollectorSpec* spec) {
  const Job job;
  BenchSink sink;
  auto opened = spec->open(system_host());
  if (!opened.ok()) return state.SkipWithError(opened.error().message.c_str());
  // Time passes fast, so that slow parts have their share.
  std::int64_t t_ns = kNsPerS;
  std::uint64_t number = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize((*opened)->sample(job.tick(number++, t_ns), sink).ok());
    t_ns += kTickNs;
  }
  state.counters["series"] = static_cast<double>(sink.size());
}

void register_hot() {
  for (const CollectorSpec* spec : all_collectors()) {
    benchmark::RegisterBenchmark(format("hot/{}", spec->name).c_str(), hot, spec)->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace hotlap

int main(int argc, char** argv) {
  hotlap::register_hot();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
