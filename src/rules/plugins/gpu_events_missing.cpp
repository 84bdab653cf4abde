// A trace with launches and without kernels: the profiler was not allowed to look at the device.
#include <array>

#include "base/text.h"
#include "rules/rule.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"device.work"}};
constexpr std::array kParams{
    ParamDesc{.name = "launches_min",
              .default_text = "10",
              .min = 1,
              .max = 1e9,
              .unit = "{call}",
              .help = "launches without any kernel from which on the rule speaks: the last ones may run later"},
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const Fact& work = *facts.find("device.work");
  const double launches = work.number("launches").value_or(0);
  if (launches < params.number("launches_min") || work.number("kernels").value_or(0) > 0) return {};
  Finding finding;
  finding.where = work.where;
  finding.cause = "The profiler was not allowed to see the GPU";
  finding.loss = format("{} launches and not one kernel", shown_count(static_cast<std::uint64_t>(launches)));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kLikely;
  finding.claims = "trace";
  finding.evidence["launches"] = launches;
  finding.why.emplace_back("calls that launch kernels are in it, so the GPU did work");
  finding.advice.push_back({.change = "allow it: NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or the "
                                      "container with --cap-add=SYS_ADMIN",
                            .note = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES in the job's output is the same"});
  finding.limits.emplace_back("how busy the GPU was, and everything else about it");
  finding.look_alikes_excluded.emplace_back("activities without CUDA (then no launch would be there either)");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_gpu_events_missing{
    .id = "GPUEventsMissing",
    .title = "A trace shows launches, but nothing that ran on the GPU",
    .why =
        "Counts the calls of a trace that launch kernels, and its kernels. Without any of the latter nothing can be "
        "said "
        "about the GPU, and the host's side alone looks healthy.",
    .advice = "The permission that the profiler lacks.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
