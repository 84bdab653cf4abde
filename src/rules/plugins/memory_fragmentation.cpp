// Memory that the framework's allocator holds and cannot use: stranded between tensors.
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.allocator"}};
constexpr std::array kParams{
    percent_param("gap_pct", "20", "of the memory taken, that is not in tensors, from which on the rule speaks"),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* allocator : facts.all("gpu.allocator")) {
    const auto gap = allocator->number("gap_bytes");
    const auto reserved = allocator->number("reserved_bytes");
    if (!gap || !reserved || *reserved <= 0 || 100 * *gap / *reserved < params.number("gap_pct")) continue;
    const auto grows = allocator->number("gap_bytes_per_s");
    const double retries = allocator->number("retries").value_or(0);
    // A gap that stays is a cache. One that grows, or for which blocks could not be had, is stranded.
    if (!grows && retries < 1) continue;
    Finding finding;
    finding.where = allocator->where;
    finding.where.process = allocator->text("process").value_or("");
    finding.where.device = allocator->text("device").value_or("");
    finding.cause = "GPU memory is fragmented";
    finding.loss = format("{} of {} taken and not used", format_bytes(*gap), format_bytes(*reserved));
    finding.severity = retries >= 1 ? Severity::kWarning : Severity::kInfo;
    finding.certainty = Certainty::kLikely;
    finding.claims = "gpu_memory";
    finding.distance = 1;
    finding.evidence["gap_bytes"] = *gap;
    finding.evidence["retries"] = retries;
    std::string why = format("tensors {}", format_bytes(allocator->number("allocated_bytes").value_or(0)));
    if (grows) why += format(", what lies between them grows by {} a minute", format_bytes(60 * *grows));
    finding.why.push_back(std::move(why));
    if (retries >= 1)
      finding.why.push_back(format("{} times cached memory had to be given back to get a block", std::lround(retries)));
    finding.advice.push_back({.change = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                              .note = "or pad inputs to few lengths: varying sizes strand blocks"});
    finding.look_alikes_excluded.emplace_back("a leak (tensors do not grow as fast)");
    out.add(std::move(finding));
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_memory_fragmentation{
    .id = "MemoryFragmentation",
    .title = "Memory that the allocator holds and cannot use",
    .why =
        "Looks at what the allocator took from the driver and does not have in tensors: it must grow, or blocks must "
        "have "
        "been short. A gap that stays is a cache.",
    .advice = "How the allocator joins pieces.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
