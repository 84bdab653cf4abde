#include "rules/bigger_size.h"

#include <algorithm>

#include "base/format.h"
#include "rules/words.h"

namespace hotlap {
namespace {

bool has_same_gpus(const InstanceType& a, const InstanceType& b) {
  return a.provider == b.provider && a.region == b.region && a.gpus == b.gpus && a.gpu_model == b.gpu_model;
}

BiggerSize sized(const LoaderCase& c, const InstanceType& now, const InstanceType& then, int workers_max) {
  BiggerSize out{.now = now, .then = then};
  out.cores = c.cores * then.vcpus / now.vcpus;
  LoaderCase larger = c;
  larger.cores = out.cores;
  larger.costs.cores = out.cores;
  const LoaderChoice choice = choose_for(larger, workers_max);
  out.workers = choice.workers;
  const double then_ms = c.with_cores_ms(choice.workers, out.cores);
  out.step_ms = predict_step(c, then_ms, then_ms, choice.workers, choice.limit == LoaderLimit::kCores);
  const double price = then.usd_per_hour / now.usd_per_hour;
  out.price_change_pct = 100 * (price - 1);
  out.cost_change_pct = {100 * (price * out.step_ms.low / c.step_ms - 1),
                         100 * (price * out.step_ms.high / c.step_ms - 1)};
  return out;
}

}  // namespace

std::string BiggerSize::change() const { return format("{} and num_workers={}", then.name, workers); }

std::string BiggerSize::note() const {
  return format("same GPU, {} vCPU; price per hour {:+.0f} %, cost per step {:+.0f} to {:+.0f} %", then.vcpus,
                price_change_pct, cost_change_pct.low, cost_change_pct.high);
}

std::optional<BiggerSize> bigger_size(const FactTable& facts, const LoaderCase& c, int workers_max) {
  const Fact* machine = fact_for(facts, "machine.type", c.steps->where);
  const auto name = machine == nullptr ? std::nullopt : machine->text("instance");
  const auto now = name ? find_instance(*name) : std::nullopt;
  if (!now || now->vcpus <= 0 || now->gpus <= 0 || now->usd_per_hour <= 0) return std::nullopt;
  std::optional<BiggerSize> best;
  for (const InstanceType& then : instance_catalogue()) {
    if (!has_same_gpus(*now, then) || then.vcpus <= now->vcpus || then.usd_per_hour <= 0) continue;
    const BiggerSize one = sized(c, *now, then, workers_max);
    if (one.step_ms.middle() > (1 - kGainMin) * c.step_ms) continue;
    if (!best || one.cost_change_pct.middle() < best->cost_change_pct.middle()) best = one;
  }
  return best;
}

}  // namespace hotlap
