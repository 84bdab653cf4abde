#pragma once
// A larger size of the machine's own type, with the same GPUs and more cores, for a job whose loader fills all cores:
// the step then, and what a step costs then. Thread-safe: nothing here has state.
#include <optional>
#include <string>

#include "cost/price.h"
#include "rules/loader_case.h"

namespace hotlap {

struct BiggerSize {
  InstanceType now;
  InstanceType then;
  double cores = 0;  // usable then
  int workers = 0;
  MsRange step_ms;
  double price_change_pct = 0;  // of an hour
  MsRange cost_change_pct;      // of a step; negative: cheaper

  std::string change() const;  // "g5.2xlarge and num_workers=6"
  std::string note() const;    // "same GPU, 8 vCPU; price per hour +20 %, cost per step -30 to -44 %"
};

// The size in the catalogue, of the provider and with the GPUs of `machine.type`, with which a step costs least.
// Nothing: the type is not known, has no GPU, there is no larger one, or the steps gain less than kGainMin.
std::optional<BiggerSize> bigger_size(const FactTable& facts, const LoaderCase& c, int workers_max);

}  // namespace hotlap
