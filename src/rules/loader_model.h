#pragma once
// How long a step takes with n loader workers: a closed form, checked against a discrete-event simulation and
// against real jobs (docs/design/0007-loader-model.md).
//
// Per batch: a worker needs `worker_cpu_ms` of a core and `worker_io_ms` besides, the training process
// `compute_ms`, of which it uses `compute_cpu_ms` of CPU time (more than compute_ms when its arithmetic has several
// threads). On `cores` cores a step takes as long as the slowest of: the workers' supply, the computation, and the
// CPU time of both.
namespace hotlap {

struct LoaderCosts {
  double worker_cpu_ms = 0;
  double worker_io_ms = 0;
  double compute_ms = 0;
  double compute_cpu_ms = 0;
  double cores = 1;          // free for the job, fractions allowed
  double worker_spread = 0;  // standard deviation of a batch's time over its mean
  double transfer_ms = 0;    // handing a batch from a worker process to the training process, in the latter

  double worker_ms() const { return worker_cpu_ms + worker_io_ms; }
};

// Time per batch with `workers` (0: batches are made between the steps, in series).
double step_ms(const LoaderCosts& costs, int workers);

// What bounds the step when there are more workers than needed.
enum class LoaderLimit { kCompute, kCores };
struct LoaderChoice {
  int workers = 0;     // the smallest number that does as well as any
  int least = 0;       // the smallest that could suffice, if batches are a little cheaper than measured
  double step_ms = 0;  // with `workers`
  double best_ms = 0;  // with as many as you like
  LoaderLimit limit = LoaderLimit::kCompute;
};
LoaderChoice choose_workers(const LoaderCosts& costs, int workers_max);

}  // namespace hotlap
