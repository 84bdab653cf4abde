#include "rules/loader_case.h"

#include <cmath>

namespace hotlap {
namespace {

constexpr double kTraceStepsMin = 3;

// Time in which a process's main thread could run but had no core, of a time that it was looked at.
std::optional<double> core_wait_share(const Fact* process) {
  if (process == nullptr) return std::nullopt;
  const auto pct = process->number("main_wait_pct");
  return pct ? std::optional(*pct / 100) : std::nullopt;
}

// The same of the loader's workers, mean.
std::optional<double> workers_core_wait_share(const FactTable& facts, const LoaderCase& c) {
  double sum = 0;
  int workers = 0;
  for (const Fact* fact : facts.all("core_use.process")) {
    if (fact->text("role") != "loader" || !same_place(fact->where, c.steps->where)) continue;
    if (const auto share = core_wait_share(fact)) sum += *share, ++workers;
  }
  return workers > 0 ? std::optional(sum / workers) : std::nullopt;
}

void read_cores(const FactTable& facts, LoaderCase& c) {
  c.core_use = fact_for(facts, "core_use.summary", c.steps->where);
  if (c.core_use == nullptr) return;
  const auto usable = c.core_use->number("usable_cores");
  if (!usable) return;
  c.has_cores = true;
  c.cores = std::max(*usable, 0.1);
  c.outside = c.core_use->number("outside_cores").value_or(0);
  c.busy_pct = c.core_use->number("busy_pct").value_or(0);
  c.costs.cores = c.cores;
}

// Time per batch of workers and training process as it would be with cores to spare.
void derive_costs(const FactTable& facts, LoaderCase& c) {
  const double wait = c.wait_ms / c.batches;
  double wall = c.loader == nullptr ? 0 : c.loader->number("batch_wall_ms").value_or(0);
  const double cpu_share = wall > 0 ? std::min(c.loader->number("batch_cpu_ms").value_or(wall) / wall, 1.0) : 1.0;
  const bool in_series = c.workers == 0;
  if (in_series) wall = wait;
  double compute = std::max((c.step_ms - c.wait_ms - c.pauses_ms) / c.batches, 0.01);

  const Fact* process = process_of(facts, *c.steps);
  const double per_batch = c.step_ms / c.batches;
  c.costs.worker_cpu_ms = wall * cpu_share;
  const double off_cpu = wall - c.costs.worker_cpu_ms;
  // Who is not on CPU waits for a core or for storage. The kernel counts the former; where it was not asked, full cores
  // stand for it.
  std::optional<double> for_core;
  c.core_wait_share = core_wait_share(process);
  if (const auto share = c.core_wait_share) {
    const double waited = *share * per_batch;
    const double used = std::max(process->number("main_thread_cores").value_or(0) * per_batch, c.costs.worker_cpu_ms);
    // A thread loses its core where it uses it.
    // One that takes batches from workers uses it little there: but it wakes up there and waits for one, as elsewhere.
    double in_loading = waited * wait / (wait + compute);
    if (in_series) {
      in_loading = process->number("main_thread_cores") ? waited * c.costs.worker_cpu_ms / std::max(used, 0.01)
                                                        : waited * wall / (wall + compute);
      for_core = in_loading;
    }
    compute -= std::min(waited - in_loading, 0.6 * compute);
  }
  if (!in_series) {
    if (const auto share = workers_core_wait_share(facts, c)) {
      for_core = *share * per_batch * c.delivering();
      c.core_wait_share = std::max(c.core_wait_share.value_or(0), *share);
    }
  }
  const double crowded = std::clamp((c.busy_pct - 70) / 25, 0.0, 1.0);
  c.costs.worker_io_ms = for_core ? std::max(off_cpu - *for_core, 0.0) : off_cpu * (1 - crowded);
  c.costs.compute_ms = compute;
  c.costs.compute_cpu_ms = compute;
  if (const auto cores = process == nullptr ? std::nullopt : process->number("cores")) {
    const double cpu = *cores * per_batch - (in_series ? c.costs.worker_cpu_ms : 0);
    c.costs.compute_cpu_ms = std::clamp(cpu, 0.05 * compute, std::max(c.cores, 1.0) * compute);
  }
  c.io_share = c.costs.worker_ms() > 0 ? c.costs.worker_io_ms / c.costs.worker_ms() : 0;
  if (c.loader == nullptr) return;
  c.costs.worker_spread = std::min(c.loader->number("batch_wall_cv").value_or(0), 0.6);
  // Workers hand batches over through shared memory: a fixed cost and one per byte, seen on several machines.
  c.costs.transfer_ms = 0.5 + c.loader->number("batch_bytes").value_or(0) / 2e6;
}

}  // namespace

std::optional<LoaderCase> read_loader_case(const FactTable& facts, const Fact& steps, const Params& params) {
  LoaderCase c;
  c.steps = &steps;
  const auto step = steps.number("mean_ms");
  const auto wait = steps.number("data_wait_ms");
  if (!step || !wait || *step <= 0) return std::nullopt;
  // A profiler's trace has few steps, chosen after a warm-up of its own.
  const bool is_trace = steps.number("chosen") == 1;
  const double steps_min = is_trace ? std::min(params.number("steps_min"), kTraceStepsMin) : params.number("steps_min");
  if (steps.number("steady_count").value_or(0) < steps_min) return std::nullopt;
  c.step_ms = *step;
  c.wait_ms = std::min(*wait, *step);
  c.wait_pct = 100 * c.wait_ms / c.step_ms;
  c.batches = std::max(steps.number("batches_per_step").value_or(1), 1.0);
  c.measured_error = steps.number("half_width_ms").value_or(0.05 * *step) / *step;
  if (const Fact* parts = fact_for(facts, "breakdown.parts", steps.where)) {
    c.pauses_ms = (parts->number("checkpoint").value_or(0) + parts->number("evaluation").value_or(0)) / 100 * c.step_ms;
  }
  if (const Fact* software = facts.find("job.software"); software != nullptr && software->number("gpu") == 1) {
    c.party = "the GPU";
  }
  c.loader = fact_for(facts, "loader.summary", steps.where);
  if (c.loader != nullptr) {
    c.workers_seen = static_cast<int>(c.loader->number("workers_seen").value_or(0));
    c.workers = static_cast<int>(c.loader->number("workers").value_or(c.workers_seen));
    c.is_gap = c.loader->text("loader").value_or("").starts_with("before forward");
    const bool has_costs = c.loader->number("batch_wall_ms").has_value();
    c.is_known = c.loader->number("known").value_or(has_costs ? 1 : 0) == 1 && (has_costs || c.workers == 0);
  }
  read_cores(facts, c);
  derive_costs(facts, c);
  return c;
}

namespace {

double square(double x) { return x * x; }

// How far the model's answer may be off, as a share of it: what was measured varies, the model has its limits, and both
// are larger the further we go from what was seen.
double uncertainty(const LoaderCase& c, int workers_then, bool on_full_cores) {
  const double tasks = c.costs.compute_ms > 0 ? c.costs.compute_cpu_ms / c.costs.compute_ms : 1;
  double sum = square(c.measured_error) + square(0.04);
  if (c.workers == 0) sum += square(0.04);
  if (on_full_cores) sum += square(0.06);
  if (on_full_cores && tasks > 1.3) sum += square(0.06);
  if (!c.has_cores) sum += square(0.1);
  if (c.io_share >= kIoShareHigh) sum += square(0.2);  // whether storage gives more was not tried
  sum += square(0.015 * std::log2(1.0 + static_cast<double>(std::max(workers_then, 1)) / std::max(c.workers, 1)));
  return std::clamp(std::sqrt(sum), 0.05, 0.3);
}

// How far off the model is for what was measured, with the workers that the run had.
double model_error(const LoaderCase& c) { return std::clamp(c.step_ms / c.model_ms(c.delivering()), 0.8, 1.3); }

// No step is shorter than its own computation, and none gets longer by what is advised.
MsRange bounded(const LoaderCase& c, MsRange range) {
  range.low = std::max(range.low, 0.97 * (c.batches * c.costs.compute_ms + c.pauses_ms));
  range.low = std::min(range.low, c.step_ms);
  range.high = std::clamp(range.high, range.low, c.step_ms);
  // Other programs may take whatever is won, where it is won on cores.
  if (c.shares_cores() && c.io_share < kIoShareHigh) range.high = std::max(range.high, c.step_ms);
  return range;
}

}  // namespace

// Around the model's answer. Overheads that the model leaves out make a step longer, hardly ever shorter.
MsRange predict_step(const LoaderCase& c, double then_ms, double crowded_ms, int workers_then, bool on_full_cores) {
  const double half = uncertainty(c, workers_then, on_full_cores);
  // On full cores the model is a floor: caches, memory bandwidth and two threads of one physical core make what shares
  // them dearer, nothing makes it cheaper (8 and 20 % were seen).
  const double below = on_full_cores ? 0.35 : 0.7;
  const double above = on_full_cores ? 2.0 : 1.2;
  // Other programs that take much are taken to go on.
  // Where they would take all of the gain it comes when they are done: from there to the step as it is.
  const bool gains_beside_them = c.shares_cores() && crowded_ms < (1 - kGainMin) * c.step_ms;
  MsRange range{(gains_beside_them ? crowded_ms : then_ms) * (1 - below * half),
                std::max(then_ms, crowded_ms) * (1 + above * half)};
  if (c.workers > 0) {
    range.low = std::min(range.low, then_ms * model_error(c));
    range.high = std::max(range.high, then_ms * model_error(c));
  }
  return bounded(c, range);
}

LoaderChoice choose_for(const LoaderCase& c, int workers_max) {
  // Workers that compute all the time need a core each; those that wait for storage do not.
  const double per_core = c.io_share < kIoShareLow ? 1 : 4;
  const int least = c.workers + 1;
  return choose_workers(
      c.costs, std::clamp(static_cast<int>(std::ceil(per_core * c.cores)), least, std::max(workers_max, least)));
}

std::optional<LoaderCase> worst_loader_case(const FactTable& facts, const Params& params) {
  std::optional<LoaderCase> worst;
  for (const Fact* steps : facts.all("steps.summary")) {
    const auto found = read_loader_case(facts, *steps, params);
    if (!found || found->wait_pct < params.number("wait_pct")) continue;
    if (!worst || found->wait_pct > worst->wait_pct) worst = found;
  }
  return worst;
}

}  // namespace hotlap
