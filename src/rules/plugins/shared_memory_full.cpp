// /dev/shm is nearly full: loader workers hand their batches over through it, and die with a bus error when it is.
#include <array>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/time_to_limit.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"shared_memory.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "fill_pct",
              .default_text = "85",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "highest fill from which on the rule speaks"},
};
constexpr double kCriticalPct = 95;
constexpr double kSoonS = 1800;  // one that still grows and is full by then ends the job

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* shm : facts.all("shared_memory.summary")) {
    const auto peak_pct = shm->number("peak_pct");
    if (!peak_pct || *peak_pct < params.number("fill_pct")) continue;
    const double total = shm->number("total_bytes").value_or(0);
    Finding finding;
    finding.where = shm->where;
    finding.cause = "/dev/shm is nearly full";
    finding.loss =
        format("{} of {} at the most", format_bytes(shm->number("peak_bytes").value_or(0)), format_bytes(total));
    const auto left_s = shm->number("to_limit_s");
    finding.severity = left_s ? severity_of_limit(*left_s, kSoonS) : Severity::kWarning;
    if (*peak_pct >= kCriticalPct) finding.severity = Severity::kCritical;
    finding.certainty = Certainty::kCertain;
    finding.claims = "shared_memory";
    finding.evidence["peak_pct"] = *peak_pct;
    finding.why.emplace_back("loader workers hand batches over through it; when it is full they die with a bus error");
    const Fact* loader = fact_for(facts, "loader.summary", shm->where);
    if (loader != nullptr && loader->number("batch_bytes") && loader->number("workers").value_or(0) > 0) {
      const double ahead = *loader->number("workers") * loader->number("prefetch_factor").value_or(2);
      finding.why.push_back(format("{} batches of {} made ahead take up to {}", figure(ahead),
                                   format_bytes(*loader->number("batch_bytes")),
                                   format_bytes(ahead * *loader->number("batch_bytes"))));
    }
    if (left_s) finding.why.push_back(format("it grows: full in ~{}", time_words(*left_s)));
    finding.advice.push_back({.change = "a larger /dev/shm (docker run --shm-size, an emptyDir of medium Memory)",
                              .note = "it counts as memory of the container"});
    finding.advice.push_back({.change = "fewer workers, or a smaller prefetch_factor", .note = {}});
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_shared_memory_full{
    .id = "SharedMemoryFull",
    .title = "/dev/shm is nearly full",
    .why =
        "Looks at the highest fill of /dev/shm. Critical from 95 % on, or when it grows and will be full within half "
        "an hour.",
    .advice = "Making it larger, or using less of it.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
