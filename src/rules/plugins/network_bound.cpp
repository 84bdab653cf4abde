// The network between machines is full while GPUs wait: gradients, or data, take all of it.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/link_ceiling.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"ceilings.network"}};
constexpr std::array kParams{
    percent_param("link_pct", "80", "of the link's speed from which on it is full"),
    percent_param("flat_pct", "60", "share of time near the highest rate from which on that is a ceiling"),
    percent_param("gpu_pct", "60", "mean use of the GPUs up to which they may wait for the network"),
};

const Fact* waiting_gpu(const FactTable& facts, const Where& where, double gpu_pct) {
  const Fact* least = nullptr;
  for (const Fact* use : job_gpus(facts, "gpu.use")) {
    const auto mean = use->number("mean_pct");
    if (!mean || *mean > gpu_pct || !same_place(use->where, where)) continue;
    if (least == nullptr || *mean < *least->number("mean_pct")) least = use;
  }
  return least;
}

// The network mount whose reads are most of what comes in; null: none is, or it was not recorded.
const Fact* mount_behind(const FactTable& facts, const LinkCeiling& link) {
  constexpr double kMost = 0.7;
  if (link.is_both || !link.is_receive) return nullptr;
  for (const Fact* mount : facts.all("ceilings.mount")) {
    if (same_place(mount->where, {.node = link.network->where.node}) &&
        mount->number("read_p95_bytes_per_s").value_or(0) >= kMost * link.rate_bytes_per_s)
      return mount;
  }
  return nullptr;
}

void tell_mount(const Fact& mount, Finding& finding) {
  const std::string name = mount.text("mount").value_or("?");
  finding.cause = format("Storage: {} ({}) fills the link {}", name, mount.text("type").value_or("network mount"),
                         finding.where.device);
  finding.certainty = Certainty::kLikely;
  finding.claims = "data_wait";
  finding.why.push_back(
      format("{} MB/s are read from {}", figure(mount.number("read_bytes_per_s").value_or(0) / 1e6), name));
  finding.advice.push_back({.change = "copy the data once to a local disk",
                            .note = "workers and prefetch won't help; whether there is room was not looked at"});
  finding.advice.push_back({.change = "a faster link to the server", .note = {}});
  finding.limits.emplace_back("how long training waits: no step was seen");
}

void tell_traffic(const LinkCeiling& link, bool is_exchange, Finding& finding) {
  if (link.is_both) {
    finding.why.push_back(format("it sends and receives alike ({} and {} MB/s): ranks exchange gradients",
                                 figure(link.network->number("transmit_p95_bytes_per_s").value_or(0) / 1e6),
                                 figure(link.network->number("receive_p95_bytes_per_s").value_or(0) / 1e6)));
  }
  finding.advice.push_back({.change = "fewer bytes: gradient accumulation, bf16 or compressed gradients "
                                      "(DDP communication hooks), a larger batch per GPU",
                            .note = "a larger batch changes training"});
  finding.advice.push_back(
      {.change = "a faster network (EFA, InfiniBand, 25 Gbit/s or more), or all GPUs in one machine", .note = {}});
  if (is_exchange) {
    finding.look_alikes_excluded.emplace_back("latency (the link is full, not idle)");
  } else {
    finding.limits.emplace_back("whether data or gradients fill it: what a step waits for was not measured");
  }
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto link = full_link(facts, {}, params.number("link_pct"), params.number("flat_pct"));
  if (!link) return {};
  const Where where{.node = link->network->where.node};
  const Fact* parts = fact_for(facts, "breakdown.parts", where);
  const auto communication = number_in(parts, "communication");
  const auto waits = number_in(parts, "data_wait");
  const Fact* gpu = waiting_gpu(facts, where, params.number("gpu_pct"));
  // Where training waits for data that only comes in, the mount's rule speaks.
  if (!link->is_both && link->is_receive && waits && *waits >= 3) return {};
  if (gpu == nullptr && communication.value_or(0) < 5) return {};
  const bool is_exchange = link->is_both || !link->is_receive || communication.value_or(0) >= 5;
  Finding finding;
  finding.where = where;
  finding.where.device = link->network->where.device;
  finding.cause = format("Network-bound: {} is full", link->network->where.device);
  finding.severity = Severity::kCritical;
  finding.certainty = is_exchange ? Certainty::kLikely : Certainty::kPossible;
  finding.claims = "communication";
  const Fact* steps = fact_for(facts, "steps.summary", where);
  if (steps != nullptr && communication && *communication >= 3) {
    set_step_loss(*steps, *communication, finding);
  } else if (gpu != nullptr) {
    finding.loss = format("{} busy {} % of the time", gpu->where.device, figure(*gpu->number("mean_pct")));
    finding.lost_pct = 100 - *gpu->number("mean_pct");  // one that never idles a whole sample may still wait most of it
  }
  finding.why.push_back(link_words(*link));
  finding.evidence["rate_bytes_per_s"] = link->rate_bytes_per_s;
  finding.evidence["link_bytes_per_s"] = link->link_bytes_per_s;
  if (gpu != nullptr) finding.evidence["gpu_pct"] = *gpu->number("mean_pct");
  if (const Fact* mount = mount_behind(facts, *link); mount != nullptr && steps == nullptr) {
    tell_mount(*mount, finding);
  } else {
    tell_traffic(*link, is_exchange, finding);
  }
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_network_bound{
    .id = "NetworkBound",
    .title = "The network between machines is full",
    .why =
        "Looks for an interface at the speed of its link while GPUs wait, or while communication takes a part of the "
        "steps. Likely where it sends and receives alike, as an exchange of gradients does.",
    .advice = "Fewer bytes, or a faster network.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
