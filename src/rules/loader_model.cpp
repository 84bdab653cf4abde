#include "rules/loader_model.h"

#include <algorithm>
#include <cmath>

namespace hotlap {
namespace {

// A supply that is this close to the best counts as the best.
constexpr double kAsGood = 1.02;
// Batches may be so much dearer, or cheaper, than they were when measured.
constexpr double kDearer = 1.08;
constexpr double kCheaper = 0.92;
// Batches come in order: a slow one holds up those behind it, the more the more workers there are. Fitted to the
// simulation in loader_model_test.cpp.
constexpr double kOrderCost = 0.25;

struct Shares {
  double waiting = 1;    // share of a core that each runnable task gets while the training process waits
  double computing = 1;  // and while it computes
};

double supply_ms(const LoaderCosts& c, int workers, double compute_ms, const Shares& shares) {
  const double free_ms = c.worker_io_ms + c.worker_cpu_ms / shares.waiting;
  const double shared_ms = c.worker_io_ms + c.worker_cpu_ms / shares.computing;
  // n workers make one batch per step: (step - compute) / free + compute / shared = 1 / n.
  return compute_ms + (1.0 / workers - compute_ms / shared_ms) * free_ms;
}

LoaderCosts scaled(LoaderCosts costs, double factor) {
  costs.worker_cpu_ms *= factor;
  costs.worker_io_ms *= factor;
  return costs;
}

int smallest(const LoaderCosts& costs, int workers_max, double target_ms) {
  for (int n = 1; n < workers_max; ++n) {
    if (step_ms(costs, n) <= target_ms * kAsGood) return n;
  }
  return workers_max;
}

}  // namespace

double step_ms(const LoaderCosts& c, int workers) {
  if (workers <= 0) return c.worker_ms() + c.compute_ms;
  const double compute = c.compute_ms + c.transfer_ms;
  const double compute_cpu = c.compute_cpu_ms + c.transfer_ms;
  if (c.worker_ms() <= 0) return compute;
  const double running = workers * c.worker_cpu_ms / c.worker_ms();
  const double main_tasks = compute > 0 ? compute_cpu / compute : 0;
  const Shares shares{.waiting = running > 0 ? std::min(1.0, c.cores / running) : 1.0,
                      .computing = running + main_tasks > 0 ? std::min(1.0, c.cores / (running + main_tasks)) : 1.0};
  // A training process that computes on the CPU all the time slows down with its share; one that waits for a GPU
  // only in part.
  const double slowed =
      main_tasks >= 1 ? compute / shares.computing : compute - compute_cpu + compute_cpu / shares.computing;
  const double supply = supply_ms(c, workers, slowed, shares);
  const double floor = std::max(compute, (c.worker_cpu_ms + compute_cpu) / c.cores);
  if (supply <= slowed) return std::max(floor, supply);
  const bool is_saturated = running >= c.cores;
  const double order = is_saturated ? 1 : 1 + kOrderCost * std::log2(workers) * c.worker_spread * c.worker_spread;
  return std::max(supply * order, floor);
}

LoaderChoice choose_workers(const LoaderCosts& costs, int workers_max) {
  LoaderChoice choice;
  workers_max = std::max(workers_max, 1);
  choice.best_ms = step_ms(costs, 1);
  for (int n = 2; n <= workers_max; ++n) choice.best_ms = std::min(choice.best_ms, step_ms(costs, n));
  choice.least = smallest(scaled(costs, kCheaper), workers_max, choice.best_ms);
  // With dearer batches the bound itself may move: what does as well as any then.
  const LoaderCosts dear = scaled(costs, kDearer);
  double dear_best = step_ms(dear, 1);
  for (int n = 2; n <= workers_max; ++n) dear_best = std::min(dear_best, step_ms(dear, n));
  choice.workers = std::max(smallest(dear, workers_max, dear_best), choice.least);
  choice.step_ms = step_ms(costs, choice.workers);
  const double compute = costs.compute_ms + costs.transfer_ms;
  choice.limit = choice.best_ms > compute * 1.05 ? LoaderLimit::kCores : LoaderLimit::kCompute;
  return choice;
}

}  // namespace hotlap
