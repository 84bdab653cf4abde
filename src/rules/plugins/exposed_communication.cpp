// GPUs wait for collectives that nothing computes under; many small ones wait for latency, not for bandwidth.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/trace_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"device.time"}};
constexpr std::array kParams{
    percent_param("share_pct", "10",
                  "of the time, in collectives under which nothing is computed, from which on the rule speaks"),
    ParamDesc{.name = "calls_per_step",
              .default_text = "50",
              .min = 1,
              .max = 1e6,
              .unit = "{call}",
              .help = "collectives of a step from which on, where each is short, latency is what they wait for"},
};
constexpr double kShortMs = 1;
constexpr double kAlike = 0.7;  // of the longest wait: GPUs that all wait so long wait for no single one of them

struct Collectives {
  double calls = 0;
  double total_ms = 0;
  std::string name;  // the one that takes most
};

bool is_collective(const std::string& name) {
  for (const std::string_view part : {"nccl", "rccl", "mscclpp", "AllReduce", "AllGather", "ReduceScatter"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

Collectives collectives_of(const FactTable& facts) {
  Collectives all;
  for (const Fact* kernel : facts.all("kernels.kernel")) {
    const std::string name = kernel->text("name").value_or("");
    if (!is_collective(name)) continue;
    if (all.name.empty()) all.name = name;
    all.calls += kernel->number("calls").value_or(0);
    all.total_ms += kernel->number("total_ms").value_or(0);
  }
  return all;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const Fact* worst = nullptr;
  double worst_pct = 0;
  double least_pct = 100;
  double devices = 0;
  for (const Fact* device : facts.all("device.time")) {
    const auto wall = device->number("wall_ms");
    const auto exposed = device->number("exposed_communication_ms");
    devices += 1;
    if (!wall || !exposed || *wall <= 0) continue;
    const double pct = 100 * *exposed / *wall;
    least_pct = std::min(least_pct, pct);
    if (pct <= worst_pct) continue;
    worst_pct = pct;
    worst = device;
  }
  if (worst == nullptr || worst_pct < params.number("share_pct")) return {};
  const double wall = worst->number("wall_ms").value_or(1);
  const double exposed = worst->number("exposed_communication_ms").value_or(0);
  const double all_ms = worst->number("communication_ms").value_or(exposed);
  const Fact* steps = facts.find("steps.summary");
  const Collectives collectives = collectives_of(facts);
  const auto count = steps_watched(facts, *worst, steps);
  const double per_step = count && *count > 0 ? collectives.calls / devices / *count : 0;
  const double each_ms = collectives.calls > 0 ? collectives.total_ms / collectives.calls : 0;
  const bool is_latency = per_step >= params.number("calls_per_step") && each_ms < kShortMs;
  Finding finding;
  finding.where = place_of({worst});
  const std::string_view devices_word = device_word(worst->where.device);
  finding.cause = is_latency ? format("Many small collectives: {}s wait for latency, not for bandwidth", devices_word)
                             : format("{}s wait for communication that nothing hides", devices_word);
  finding.loss = format("{} % of the time", figure(worst_pct));
  finding.severity = worst_pct >= 25 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "communication";
  if (steps != nullptr) {
    set_step_loss(*steps, worst_pct, finding);
  } else {
    finding.lost_pct = worst_pct;
  }
  finding.evidence["exposed_ms"] = exposed;
  finding.evidence["communication_ms"] = all_ms;
  finding.why.push_back(format("{} of {} ms are collectives, {} ms of it with nothing computed meanwhile",
                               figure(all_ms), figure(wall), figure(exposed)));
  if (count && *count > 0) finding.why.push_back(format("{} ms of each step", figure(exposed / *count)));
  if (per_step >= 1) {
    finding.why.push_back(format("{} a step of {} ms each, most in {}", counted(std::lround(per_step), "collective"),
                                 figure(each_ms), collectives.name.substr(0, 40)));
    finding.evidence["calls_per_step"] = per_step;
  }
  if (is_latency) {
    finding.advice.push_back({.change =
                                  "fewer, larger ones: larger buckets (DDP bucket_cap_mb, HOROVOD_FUSION_THRESHOLD), "
                                  "tensors flattened together, no collectives for metrics in each step",
                              .note = "a faster link does not help"});
    finding.look_alikes_excluded.emplace_back("bandwidth (each is small and short)");
  } else {
    finding.advice.push_back(
        {.change = "overlap it with backward (DDP does, with gradients in buckets; FSDP: prefetch), "
                   "accumulate gradients, or send fewer bytes (bf16, compression)",
         .step_ms_low = std::nullopt,
         .step_ms_high = std::nullopt,
         .basis = Basis::kRuleOfThumb,
         .note = devices > 1 ? ""
                             : "a collective also lasts as long as the slowest rank comes late: traces of all ranks "
                               "tell"});
    if (devices > 1 && least_pct >= kAlike * worst_pct) {
      finding.look_alikes_excluded.emplace_back("a rank that comes late (all wait alike)");
    } else {
      finding.limits.emplace_back(
          devices > 1 ? "whether it is bandwidth or who comes late: the GPUs do not wait alike"
                      : "whether it is bandwidth or a rank that comes late: one rank's trace does not tell");
    }
  }
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_exposed_communication{
    .id = "ExposedCommunication",
    .title = "GPUs wait for collectives that nothing computes under",
    .why =
        "Looks at the time of collectives in a trace during which no other kernel runs. Many short ones in a step wait "
        "for latency. Certain: it is measured.",
    .advice = "Overlap, or fewer collectives.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
