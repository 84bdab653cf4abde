// "Busy" but hardly at work: some kernel runs all the time and uses little of the GPU.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.use"}};
constexpr std::array kParams{
    percent_param("busy_pct", "80", "use of the GPU from which on it counts as busy"),
    percent_param("sm_active_pct", "50", "share of its multiprocessors at work below which it does little"),
    percent_param("power_pct", "50", "power of its limit below which it does little, where the former is not known"),
    patience_param(),
};

void judge(const FactTable& facts, const Fact& use, bool by_counters, FindingSink& out) {
  const double busy = use.number("mean_pct").value_or(0);
  Finding finding;
  finding.where = place_of({&use});
  finding.cause = "The GPU is busy, but hardly at work";
  finding.severity = Severity::kWarning;
  finding.certainty = by_counters ? Certainty::kLikely : Certainty::kPossible;
  finding.claims = "gpu_efficiency";
  finding.evidence["busy_pct"] = busy;
  const auto power = use.number("power_w");
  const auto limit = use.number("power_limit_w");
  if (by_counters) {
    finding.loss = format("\"{} % busy\" but SM active {} %", figure(busy), figure(*use.number("sm_active_pct")));
    finding.evidence["sm_active_pct"] = *use.number("sm_active_pct");
    std::string why;
    for (const auto& [field, words] :
         {std::pair{"sm_occupancy_pct", "occupancy"}, std::pair{"tensor_active_pct", "tensor cores"},
          std::pair{"dram_active_pct", "memory bandwidth"}}) {
      if (const auto share = use.number(field))
        why += format("{}{} {} %", why.empty() ? "" : ", ", words, figure(*share));
    }
    if (!why.empty()) finding.why.push_back(std::move(why));
  } else {
    finding.loss =
        format("\"{} % busy\" at {} of {} W", figure(busy), figure(power.value_or(0)), figure(limit.value_or(0)));
  }
  if (power && limit) finding.why.push_back(format("{} of {} W", figure(*power), figure(*limit)));
  finding.why.emplace_back("busy says only that some kernel ran");
  const Fact* memory = same_device(facts, "gpu.memory", use);
  const auto fill = number_in(memory, "peak_pct");
  if (fill && *fill < 50) {
    finding.why.push_back(format("memory at most {} of {}", format_bytes(memory->number("peak_bytes").value_or(0)),
                                 format_bytes(memory->number("total_bytes").value_or(0))));
    finding.advice.push_back({.change = "larger batches: a short run with each, and hotlap compare them",
                              .note = "changes training: retune the learning rate, or cut gradient accumulation"});
  }
  const bool no_tensor_cores = use.number("tensor_active_pct") && *use.number("tensor_active_pct") < 2;
  finding.advice.push_back(
      {.change = no_tensor_cores ? "bfloat16 or TF32 (torch.autocast, torch.set_float32_matmul_precision('high'))"
                                 : "torch.compile, fused optimizers, CUDA graphs: fewer and larger kernels",
       .note = no_tensor_cores ? "tensor cores are idle; precision changes, check the loss"
                               : "a trace shows which: --profile steps=10:3"});
  if (!by_counters) finding.limits.emplace_back("how many of its multiprocessors work: there is no figure of it");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* use : job_gpus(facts, "gpu.use")) {
    if (use->number("mean_pct").value_or(0) < params.number("busy_pct") ||
        !is_seen_for(*use, params.number("patience")))
      continue;
    // A figure that stands still was not measured.
    if (number_in(same_device(facts, "gpu.health", *use), "frozen_busy_pct")) continue;
    const auto active = use->number("sm_active_pct");
    const auto power = use->number("power_w");
    const auto limit = use->number("power_limit_w");
    // Counters that say 0 while the GPU is busy have stopped counting.
    const bool counts = active && *active >= 1;
    const bool is_low_by_counters = counts && *active < params.number("sm_active_pct");
    const bool is_low_by_power =
        !counts && power && limit && *limit > 0 && 100 * *power / *limit < params.number("power_pct");
    if (!is_low_by_counters && !is_low_by_power) continue;
    judge(facts, *use, is_low_by_counters, out);
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_low_gpu_efficiency{
    .id = "LowGPUEfficiency",
    .title = "A GPU is busy, but hardly at work",
    .why =
        "\"Busy\" says that some kernel ran. Looks at the share of multiprocessors at work, or at power where that is "
        "not "
        "known, of GPUs that are busy. By counters likely, by power possible.",
    .advice = "What makes kernels fewer and larger.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
