#pragma once
// What the facts say about one training process and its loader, per batch, and how long a step would take with other
// workers or cores, as a range. Shared by the rules that speak of waiting for data. Thread-safe: nothing here has
// state.
#include <algorithm>
#include <optional>
#include <string>

#include "rules/loader_model.h"
#include "rules/step_findings.h"

namespace hotlap {

inline constexpr double kIoShareHigh = 0.5;   // of a batch's time: the loader waits for storage, not for cores
inline constexpr double kGainMin = 0.03;      // of step time, for a change of workers or cores to be advised
inline constexpr double kIoShareLow = 0.2;    // below, storage is excluded as a cause
inline constexpr double kHandOverPct = 10;    // of step time: so much is waited for batches that were ready all along
inline constexpr double kCoreWaitMin = 0.05;  // of the time without a core: below, others do not hold the job up

// The workers make batches faster than they are used, with time to spare: what is waited for then is that a batch is
// handed over, or bursts.
inline bool keep_up(double worker_ms, int workers, double compute_ms) {
  return workers > 0 && worker_ms > 0 && worker_ms <= 0.8 * workers * compute_ms;
}

struct LoaderCase {
  const Fact* steps = nullptr;
  double step_ms = 0;
  double wait_ms = 0;
  double wait_pct = 0;
  double pauses_ms = 0;  // checkpoints and evaluation inside steps: no part of the pipeline
  double batches = 1;    // per step
  double measured_error = 0.05;
  int workers = 0;
  bool is_known = false;  // the hook knows the loader and saw what a batch costs
  bool is_gap = false;    // the hook saw no loader: the wait is the gap before forward
  int workers_seen = 0;
  int delivering() const { return workers_seen > 0 ? std::min(workers, workers_seen) : workers; }
  double io_share = 0;  // of a batch's time in a worker
  double cores = 1;     // usable
  double outside = 0;   // cores taken by others
  double busy_pct = 0;
  bool has_cores = false;
  std::optional<double> core_wait_share;  // of the time, of who wants most for a core
  LoaderCosts costs;
  std::string party = "training";  // who waits
  const Fact* loader = nullptr;
  const Fact* core_use = nullptr;

  double model_ms(int n) const { return with_cores_ms(n, cores); }
  // Other programs may go on taking their cores, or not.
  double crowded_ms(int n) const { return with_cores_ms(n, std::max(cores - outside, 0.3 * cores)); }
  bool shares_cores() const { return outside > 0.25 * cores; }
  // Others hold it up only where it wants for a core; where that was not measured, full cores stand for it.
  bool is_crowded_out() const { return shares_cores() && core_wait_share.value_or(1) >= kCoreWaitMin; }
  double with_cores_ms(int n, double cores_then) const {
    LoaderCosts then = costs;
    then.cores = cores_then;
    return batches * hotlap::step_ms(then, n) + pauses_ms;
  }
};

// Nothing: no step times, no measured wait, or fewer steps than the parameter steps_min says.
std::optional<LoaderCase> read_loader_case(const FactTable& facts, const Fact& steps, const Params& params);
// Of all training processes the one that waits most for data, if it waits for the parameter wait_pct or more: ranks
// wait for each other.
std::optional<LoaderCase> worst_loader_case(const FactTable& facts, const Params& params);

// The number of workers to advise, at most `workers_max`.
LoaderChoice choose_for(const LoaderCase& c, int workers_max);

struct MsRange {
  double low = 0;
  double high = 0;
  double middle() const { return (low + high) / 2; }
};
// Around the model's answer `then_ms`; `crowded_ms`: the same while other programs go on taking their cores.
MsRange predict_step(const LoaderCase& c, double then_ms, double crowded_ms, int workers_then, bool on_full_cores);

}  // namespace hotlap
