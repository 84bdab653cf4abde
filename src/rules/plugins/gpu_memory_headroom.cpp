// The GPU's memory is so full that one larger input ends the job.
#include <array>

#include "base/text.h"
#include "rules/fact_number.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.memory"}};
constexpr std::array kParams{
    percent_param("fill_pct", "95", "highest fill from which on the rule speaks"),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::vector<const Fact*> tight;
  for (const Fact* memory : job_gpus(facts, "gpu.memory")) {
    const auto peak = memory->number("peak_pct");
    // What grows has a finding of its own; frameworks that take all memory at once leave no room by design.
    if (!peak || *peak < params.number("fill_pct") || memory->number("growth_bytes_per_s")) continue;
    tight.push_back(memory);
  }
  if (tight.empty()) return {};
  const Fact& worst = *tight.front();
  const bool by_spikes = worst.text("shape") == "spikes";
  const Fact* allocator = fact_for(facts, "gpu.allocator", worst.where);
  Finding finding;
  finding.where = place_of(tight);
  finding.cause = by_spikes ? "Single inputs nearly fill the GPU's memory" : "The GPU's memory is nearly full";
  finding.loss =
      format("{} left on {}", format_bytes(worst.number("headroom_bytes").value_or(0)), devices_words(tight));
  finding.severity = by_spikes ? Severity::kWarning : Severity::kInfo;
  finding.certainty = by_spikes ? Certainty::kLikely : Certainty::kPossible;
  finding.claims = "gpu_memory";
  finding.distance = 3;
  finding.evidence["peak_pct"] = *worst.number("peak_pct");
  finding.why.push_back(format("at most {} of {}, {} on average", format_bytes(worst.number("peak_bytes").value_or(0)),
                               format_bytes(worst.number("total_bytes").value_or(0)),
                               format_bytes(worst.number("mean_bytes").value_or(0))));
  if (const auto others = worst.number("other_bytes"); others && *others >= 1e8)
    finding.why.push_back(format("other programs hold {} of it", format_bytes(*others)));
  const auto in_tensors = number_in(allocator, "allocated_peak_bytes");
  if (in_tensors) {
    finding.why.push_back(format("tensors at most {}", format_bytes(*in_tensors)));
  } else {
    finding.limits.emplace_back("how much of it is a cache of the framework, which shrinks when needed");
  }
  finding.advice.push_back({.change = by_spikes ? "cap the longest inputs, or bucket them by length"
                                                : "a smaller batch, or activation checkpointing",
                            .note = "a larger batch or input ends the job; nothing to do if all inputs are alike"});
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_gpu_memory_headroom{
    .id = "GPUMemoryHeadroom",
    .title = "A GPU's memory is nearly full",
    .why = "Looks at the highest fill of each GPU's memory in the whole recording. What grows is told apart.",
    .advice = "What takes less memory.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
