#pragma once
// Slow steps that come at a period, and what that period is: the number of loader workers, or an epoch. Thread-safe:
// nothing here has state.
#include <optional>
#include <string>

#include "model/fact.h"
#include "rules/rule.h"

namespace hotlap {

// Loader workers of a training process: as the hook saw, else as meta.json tells, else as processes were seen.
std::optional<double> loader_workers(const FactTable& facts, const Where& where);

// "each 8th step is slow: a batch of each of 8 loader workers, then all are awaited"; empty: the period of the slow
// steps is not that of the workers.
std::string worker_period_words(const FactTable& facts, const Where& where);
bool is_worker_period(const FactTable& facts, const Fact& slow_steps);

// Steps of an epoch, as seen or told.
std::optional<double> epoch_steps(const FactTable& facts, const Where& where);

}  // namespace hotlap
