#include "support/fake_job.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::int64_t kBeginNs = 1'000 * kNsPerS;
constexpr std::int64_t kTickNs = 500 * kNsPerMs;
constexpr std::uint32_t kTrainingThread = 100;
constexpr std::uint32_t kSavingThread = 101;

std::int64_t ns(double ms) { return static_cast<std::int64_t>(ms * static_cast<double>(kNsPerMs)); }

class Noise {
 public:
  explicit Noise(double width) : width_(width) {}
  double next() {  // around 1
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double unit = static_cast<double>(state_ >> 11U) / 9007199254740992.0;
    return 1 + width_ * (2 * unit - 1);
  }

 private:
  double width_;
  std::uint64_t state_ = 42;
};

double wait_of(const FakeJob& job) {
  if (job.wait_ms >= 0) return job.wait_ms;
  if (job.workers == 0) return job.batch_ms;
  return std::max(job.batch_ms / job.workers - job.compute_ms - job.other_ms, 0.2);
}

// A batch of an evaluation: made, waited for, outside of every step. Returns its end.
std::int64_t record_evaluation_batch(const FakeJob& job, std::uint32_t main, std::uint32_t maker, std::uint32_t name,
                                     std::int64_t t, FakeRecording& out) {
  const std::int64_t made = ns(job.evaluation_batch_ms);
  for (const SpanKind kind : {SpanKind::kWorkerBatch, SpanKind::kWorkerFetch}) {
    out.add_span({.start_ns = t,
                  .duration_ns = made,
                  .kind = kind,
                  .process = maker,
                  .name = job.has_loader_names ? name : 0,
                  .value_a = made,
                  .value_b = job.batch_size});
  }
  out.add_span({.start_ns = t,
                .duration_ns = made,
                .kind = SpanKind::kDataWait,
                .process = main,
                .name = name,
                .value_a = job.batch_size});
  return t + made;
}

void record_steps(const FakeJob& job, std::uint32_t main, const std::vector<std::uint32_t>& loaders, FakeRecording& out,
                  std::int64_t& end_ns) {
  const std::uint32_t train_name = out.add_name("loader 1 (Images)");
  const std::uint32_t evaluation_name = out.add_name("loader 2 (Proofs)");
  const std::uint32_t collective_name = job.collective_ms > 0 ? out.add_name("all_reduce (gloo, group 0)") : 0;
  const std::uint32_t named_name = job.named_ms > 0 ? out.add_name("metrics") : 0;
  const std::uint32_t worker_name = job.has_loader_names ? train_name : 0;
  Noise noise(job.jitter);
  std::int64_t t = kBeginNs;
  for (std::int64_t i = 0; i < job.steps; ++i) {
    const double slow = (i < job.warmup_steps ? 3 : 1) * noise.next();
    const std::int64_t start = t;
    const std::int64_t wait = ns(wait_of(job) * slow);
    const double batch = job.batch_ms * noise.next();
    const std::uint32_t maker = loaders.empty() ? main : loaders[static_cast<std::size_t>(i) % loaders.size()];
    const std::int64_t made = loaders.empty() ? t : std::max(t + wait - ns(batch), kBeginNs);
    const std::int64_t batch_ns = loaders.empty() ? wait - ns(0.1) : ns(batch);
    const std::int64_t cpu = ns(job.batch_cpu_ms * static_cast<double>(batch_ns) / (job.batch_ms * kNsPerMs));
    const bool ragged = job.ragged_every > 0 && (i + 1) % job.ragged_every == 0;
    const std::int64_t samples = ragged ? job.batch_size / 4 : job.batch_size;
    out.add_span({.start_ns = made,
                  .duration_ns = batch_ns,
                  .kind = SpanKind::kWorkerBatch,
                  .process = maker,
                  .name = worker_name,
                  .value_a = cpu,
                  .value_b = 1'000'000});
    out.add_span({.start_ns = made,
                  .duration_ns = batch_ns * 9 / 10,
                  .kind = SpanKind::kWorkerFetch,
                  .process = maker,
                  .name = worker_name,
                  .value_a = cpu * 9 / 10,
                  .value_b = samples});
    out.add_span({.start_ns = t,
                  .duration_ns = wait,
                  .kind = SpanKind::kDataWait,
                  .process = main,
                  .name = train_name,
                  .step = i,
                  .value_a = samples,
                  .value_b = 1'000'000});
    t += wait;
    const double slower = job.slower_from >= 0 && i >= job.slower_from ? job.slower_by : 1;
    const std::int64_t compute = ns(job.compute_ms * slow * slower);
    const auto part = [&](SpanKind kind, double share) {
      const auto duration = static_cast<std::int64_t>(static_cast<double>(compute) * share);
      out.add_span({.start_ns = t, .duration_ns = duration, .kind = kind, .process = main, .step = i});
      t += duration;
    };
    part(SpanKind::kForward, 0.35);
    part(SpanKind::kBackward, 0.55);
    if (job.collective_ms > 0) {
      out.add_span({.start_ns = t,
                    .duration_ns = ns(job.collective_ms),
                    .kind = SpanKind::kCollective,
                    .process = main,
                    .name = collective_name,
                    .step = i,
                    .value_a = 400,
                    .value_b = i});
    }
    if (job.named_ms > 0) {
      out.add_span({.start_ns = t,
                    .duration_ns = ns(job.named_ms * slow),
                    .kind = SpanKind::kUser,
                    .process = main,
                    .thread = kTrainingThread,
                    .name = named_name,
                    .step = i});
    }
    t += ns(job.other_ms * slow);
    if (job.checkpoint_every > 0 && (i + 1) % job.checkpoint_every == 0) {
      out.add_span({.start_ns = t,
                    .duration_ns = ns(job.checkpoint_ms),
                    .kind = SpanKind::kCheckpoint,
                    .process = main,
                    .step = i});
      t += ns(job.checkpoint_ms);
    }
    if (job.compile_every > 0 && i % job.compile_every == 0) {
      out.add_span(
          {.start_ns = t, .duration_ns = ns(job.compile_ms), .kind = SpanKind::kCompile, .process = main, .step = i});
      t += ns(job.compile_ms);
    }
    part(SpanKind::kOptimizer, 0.1);
    if (job.beside_save_every > 0 && (i + 1) % job.beside_save_every == 0) {
      out.add_span({.start_ns = start,
                    .duration_ns = ns(job.beside_save_ms),
                    .kind = SpanKind::kCheckpoint,
                    .process = main,
                    .thread = kSavingThread,
                    .step = i,
                    .value_a = 1'000'000});
    }
    out.add_span({.start_ns = start,
                  .duration_ns = t - start,
                  .kind = SpanKind::kStep,
                  .process = main,
                  .thread = kTrainingThread,
                  .step = i,
                  .value_a = samples,
                  .value_b = job.tokens});
    out.add_span({.start_ns = start,
                  .duration_ns = 15 * kNsPerUs,
                  .kind = SpanKind::kHook,
                  .process = main,
                  .step = i,
                  .value_a = 0,
                  .value_b = 1});
    if (job.evaluation_every == 0 || (i + 1) % job.evaluation_every != 0) continue;
    // Making its iterator was still taken for a part of the next step: nobody knew yet.
    out.add_span({.start_ns = t,
                  .duration_ns = ns(2),
                  .kind = SpanKind::kDataWait,
                  .process = main,
                  .name = evaluation_name,
                  .step = i + 1,
                  .value_a = 0});
    const std::int64_t evaluated_from = t;
    t += ns(2);
    for (std::int64_t n = 0; n < job.evaluation_batches; ++n) {
      const std::uint32_t of = loaders.empty() ? main : loaders[static_cast<std::size_t>(n) % loaders.size()];
      t = record_evaluation_batch(job, main, of, evaluation_name, t, out);
    }
    out.add_span({.start_ns = evaluated_from,
                  .duration_ns = t - evaluated_from,
                  .kind = SpanKind::kEvaluation,
                  .process = main,
                  .value_a = job.evaluation_batches});
  }
  end_ns = t;
}

}  // namespace

double FakeJob::step_ms() const { return wait_of(*this) + compute_ms + other_ms; }

void FakeJob::record(FakeRecording& out) const {
  const std::string label = role == ProcessRole::kRank ? format("rank {}", rank) : "main";
  const std::uint32_t main = out.add_process({.pid = 100,
                                              .role = role,
                                              .index = rank,
                                              .start_ns = kBeginNs - kNsPerS,
                                              .command = "python3 train.py",
                                              .has_hook = has_hook});
  std::uint32_t parent = main;
  if (has_fork_server) {
    parent = out.add_process({.pid = 150,
                              .role = ProcessRole::kOther,
                              .index = 1,
                              .parent = main,
                              .start_ns = kBeginNs,
                              .command = "python3 -c from multiprocessing.forkserver import main; main(9, 11, [])",
                              .has_hook = has_hook});
  }
  std::vector<std::uint32_t> loaders;
  for (std::int32_t w = 0; w < workers; ++w) {
    loaders.push_back(out.add_process({.pid = 200 + w,
                                       .role = ProcessRole::kLoader,
                                       .index = w,
                                       .parent = parent,
                                       .start_ns = kBeginNs,
                                       .command = "python3 train.py",
                                       .has_hook = has_hook}));
  }
  std::int64_t end_ns = kBeginNs + ns(step_ms()) * steps;
  if (has_hook) {
    out.add_event({kBeginNs - kNsPerS, EventKind::kPhase, 0, "initialisation"});
    out.add_event({kBeginNs, EventKind::kPhase, 0, "training"});
    const auto settings = [&](std::string_view dataset, std::int32_t processes) {
      return format(R"({{"known": true, "num_workers": {}, "batch_size": {}, "prefetch_factor": {}, )"
                    R"("persistent_workers": true, "pin_memory": false, "dataset": "{}"}})",
                    processes, batch_size, processes > 0 ? "2" : "null", dataset);
    };
    const std::string key = format("process.{}.loader", label);
    out.add_attribute(has_loader_names ? key + ".1" : key, settings("Images", workers));
    if (has_loader_names && evaluation_every > 0) out.add_attribute(key + ".2", settings("Proofs", workers + 4));
    out.add_attribute(format("process.{}.step_source", label), "optimizer");
    record_steps(*this, main, loaders, out, end_ns);
  }

  // Cores in use: the training process, the workers, others.
  const double step = step_ms();
  const double in_main = (compute_cpu_ms + other_ms + (workers == 0 ? batch_cpu_ms : 0)) / step;
  const double in_loaders = workers == 0 ? 0 : batch_cpu_ms / step;
  const double busy = std::min(in_main + in_loaders + outside_cores, static_cast<double>(cores));
  const auto counter = [&](const std::string& metric, const std::string& instance, std::int64_t t, double per_s,
                           double scale) {
    const double seconds = static_cast<double>(t - kBeginNs) / static_cast<double>(kNsPerS);
    out.add_sample(metric, instance, MetricKind::kCounter, scale,
                   {t, Value::of(static_cast<std::uint64_t>(1'000'000 + std::max(seconds, 0.0) * per_s / scale))});
  };
  const auto gauge = [&](const std::string& metric, std::int64_t t, double value) {
    out.add_sample(metric, "", MetricKind::kGauge, 1, {t, Value::of(value)});
  };
  const std::int32_t all_cores = host_cores > 0 ? host_cores : cores;
  for (std::int64_t t = kBeginNs; t <= end_ns + kTickNs; t += kTickNs) {
    counter("cpu.busy.seconds", "", t, busy + neighbour_cores, 1e-6);
    if (has_steal) counter("cpu.steal.seconds", "", t, 0, 1e-6);
    if (host_cores > 0) counter("cgroup.cpu.usage.seconds", "", t, busy, 1e-6);
    double rest = busy + neighbour_cores;
    for (std::int32_t core = 0; core < all_cores; ++core) {
      // The busiest first: a thread stays where it is.
      const double use = std::min(rest, 1.0);
      rest -= use;
      counter("cpu.core.busy.seconds", format("core {}", core), t, use, 1e-6);
    }
    counter("process.cpu.seconds", label, t, in_main, 1e-9);
    counter("process.main_thread.cpu.seconds", label, t, std::min(in_main, 1.0), 1e-9);
    if (has_threads)
      counter("process.thread.cpu.seconds", label + "/thread " + main_thread, t, std::min(in_main, 1.0), 1e-9);
    for (std::int32_t w = 0; w < workers; ++w) {
      counter("process.cpu.seconds", format("loader {}", w), t, in_loaders / workers, 1e-9);
    }
    gauge("cpu.count", t, all_cores);
    gauge("cpu.usable.cores", t, cores);
    if (has_runnable) gauge("cpu.runnable", t, std::max(busy, 1.0));
  }
}

}  // namespace hotlap
