#include "rules/step_period.h"

#include <algorithm>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/series_words.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {

std::optional<double> loader_workers(const FactTable& facts, const Where& where) {
  if (const auto known = number_in(fact_for(facts, "loader.summary", where), "workers"); known && *known > 0)
    return known;
  if (const auto told = number_in(facts.find("job.told"), "workers")) return told;
  const Fact* threads = fact_for(facts, "threads.summary", where);
  const auto loaders = number_in(threads, "loaders");
  const double ranks = std::max(number_in(threads, "ranks").value_or(1), 1.0);
  return loaders && *loaders >= 1 ? std::optional(std::round(*loaders / ranks)) : std::nullopt;
}

bool is_worker_period(const FactTable& facts, const Fact& slow_steps) {
  const auto period = slow_steps.number("period_steps");
  const auto workers = loader_workers(facts, slow_steps.where);
  return period && workers && *workers > 1 && std::fmod(*period, *workers) == 0 && *period <= 4 * *workers;
}

std::string worker_period_words(const FactTable& facts, const Where& where) {
  const Fact* slow = fact_for(facts, "slow_steps.summary", where);
  if (slow == nullptr || !is_worker_period(facts, *slow)) return {};
  return format("each {} step is slow: a batch of each of {} loader workers, then all are awaited",
                ordinal(*slow->number("period_steps")), std::lround(*loader_workers(facts, where)));
}

std::optional<double> epoch_steps(const FactTable& facts, const Where& where) {
  if (const auto seen = number_in(fact_for(facts, "phases.summary", where), "epoch_steps"); seen && *seen >= 2)
    return seen;
  return number_in(facts.find("job.told"), "epoch_steps");
}

}  // namespace hotlap
