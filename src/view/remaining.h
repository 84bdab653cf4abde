#pragma once
// What is left of a job that goes on, in steps, time and money: as it is, and with the change that was advised, which
// takes a restart. Ranges throughout; nothing where the number of steps of the whole job is not known.
#include <optional>
#include <string>
#include <vector>

#include "model/fact.h"
#include "model/finding.h"
#include "model/run.h"

namespace hotlap {

struct SecondsRange {
  double low = 0;
  double high = 0;
};

struct Remaining {
  double steps_total = 0;
  std::string steps_from;  // "--steps", "--epochs 90 x 1,563 steps"
  double steps_done = 0;
  double steps_left = 0;
  SecondsRange as_is_s;
  // With the first finding's first advice whose step time is predicted.
  std::string change;
  std::optional<SecondsRange> with_fix_s;  // of the steps that are left, without the restart
  // Stopping now, changing it, and going on from the last checkpoint, or from the beginning without one.
  std::optional<SecondsRange> restart_s;  // start-up, the steps that are done again, and those that are left
  double redone_steps = 0;
  bool has_checkpoint = false;
  double start_up_s = 0;
  std::string better;  // "restart", "finish", "no difference"; empty: not known
};

// Steps that the whole job has, and how that is known; nothing when it is not. `epoch_steps`: as epoch_steps_of() says.
struct StepsTotal {
  double steps = 0;
  std::string from;
};
std::optional<StepsTotal> steps_total_of(const RunInfo& run, std::optional<double> epoch_steps);

// Steps of an epoch: the mean of those that ended, before that as many as the loader has batches for. Nothing: not
// known.
std::optional<double> epoch_steps_of(const FactTable& facts);

// Of a run that goes on. `findings` with the first one first.
std::optional<Remaining> remaining_of(const RunInfo& run, const FactTable& facts, const std::vector<Finding>& findings);

// `job_price`: of all nodes. "52,000 steps left: 3.0 h -> 1.4-1.6 h, saves $2.14-$2.45"; the lines of a verdict's end.
std::vector<std::string> remaining_lines(const Remaining& remaining, const std::optional<Price>& job_price);

}  // namespace hotlap
