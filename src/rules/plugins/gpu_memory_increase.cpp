// The GPU's memory in use rose over the typical steps, and stays there.
#include <array>

#include "base/text.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.memory"}};
constexpr std::array kParams{
    ParamDesc{.name = "increase",
              .default_text = "5",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "rise of the memory in use, of the GPU's whole memory, from which on the rule speaks"},
    patience_param(),
    window_param(),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* memory : job_gpus(facts, "gpu.memory")) {
    const auto shape = memory->text("shape");
    const auto first = memory->number("first_bytes");
    const auto last = memory->number("last_bytes");
    const auto total = memory->number("total_bytes");
    if (!shape || !first || !last || !total || *total <= 0) continue;
    if (memory->number("window_s").value_or(0) * kSamplesPerS < params.number("patience")) continue;
    // A pool that filled up, or a peak now and then, is no increase.
    if (*shape != "leak" && *shape != "stairs" && *shape != "step") continue;
    const double rise_pct = 100 * (*last - *first) / *total;
    if (rise_pct < params.number("increase")) continue;
    Finding finding;
    finding.where = place_of({memory});
    finding.cause = *shape == "step" ? "GPU memory went up in one step, and stays there" : "GPU memory grows";
    finding.loss = format("{} -> {} of {}", format_bytes(*first), format_bytes(*last), format_bytes(*total));
    finding.severity = memory->number("peak_pct").value_or(0) >= 90 ? Severity::kWarning : Severity::kInfo;
    finding.certainty = Certainty::kCertain;
    finding.claims = "gpu_memory";
    finding.distance = 2;
    finding.evidence["rise_pct"] = rise_pct;
    finding.why.push_back(format("+{} % of its memory over {} s of typical steps", figure(rise_pct),
                                 figure(memory->number("window_s").value_or(0))));
    if (const auto at = memory->number("growth_from_s"); at && *shape == "step")
      finding.why.push_back(format("{} s after typical steps began", figure(*at)));
    finding.advice.push_back({.change = *shape == "step"
                                            ? "look at what changed then: image size, sequence length, a second model"
                                            : "look for a tensor that is kept across steps",
                              .note = "nothing to do while it fits"});
    finding.look_alikes_excluded.emplace_back("a pool that fills up");
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_gpu_memory_increase{
    .id = "GPUMemoryIncrease",
    .title = "The memory in use of a GPU rises and stays up",
    .why =
        "Compares the floor of the memory in use at the begin and at the end of the typical steps. Pools that fill up "
        "and "
        "peaks do not count. A leak has a finding of its own, which comes first.",
    .advice = "Where to look.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
