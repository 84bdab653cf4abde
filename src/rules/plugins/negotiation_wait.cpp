// Ranks announce their tensors at different times, and all wait for the last: Horovod's negotiations are long.
#include <array>
#include <cmath>

#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"negotiations.summary"}};
constexpr std::array kParams{
    percent_param("share_pct", "20", "of the timeline, in which tensors are negotiated, from which on the rule speaks"),
    ParamDesc{.name = "mean_ms",
              .default_text = "2",
              .min = 0.01,
              .max = 1e6,
              .unit = "ms",
              .help = "of a negotiation: one among ranks that come together takes less"},
    ParamDesc{.name = "negotiations_min",
              .default_text = "8",
              .min = 1,
              .max = 1e6,
              .unit = "",
              .help = "that must have been seen"},
    percent_param("late_pct", "60", "of the negotiations, in which the same rank must come last to be named"),
};

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* all : facts.all("negotiations.summary")) {
    const double mean = all->number("mean_ms").value_or(0);
    const double share = all->number("share_pct").value_or(0);
    const auto operations = all->number("operations_ms");
    if (mean < params.number("mean_ms") || share < params.number("share_pct")) continue;
    if (operations && mean < *operations) continue;
    const double count = all->number("count").value_or(0);
    if (count < params.number("negotiations_min")) continue;
    const auto late = all->number("late_rank");
    const double late_share = all->number("late_share_pct").value_or(0);
    const bool is_one = late && late_share >= params.number("late_pct");
    Finding finding;
    if (is_one) finding.where.rank = static_cast<std::int32_t>(*late);
    finding.cause = is_one ? format("Rank {} comes last to the collectives", std::lround(*late))
                           : std::string("Ranks come to the collectives at different times");
    finding.loss = format("tensors are waited for in {} % of the time", figure(share));
    finding.severity = share >= 50 ? Severity::kCritical : Severity::kWarning;
    finding.certainty = Certainty::kLikely;
    finding.claims = "communication";
    finding.lost_pct = share;
    finding.evidence["mean_ms"] = mean;
    finding.evidence["late_share_pct"] = late_share;
    std::string why =
        format("a negotiation takes {} ms, {} at most", figure(mean), figure(all->number("longest_ms").value_or(0)));
    if (operations) why += format("; the operation itself {} ms", figure(*operations));
    finding.why.push_back(std::move(why));
    if (late) {
      finding.why.push_back(format("rank {} is last in {} % of {}, {} ms each", std::lround(*late), figure(late_share),
                                   std::lround(count), figure(all->number("late_ms").value_or(0))));
    }
    finding.advice.push_back(
        {.change = is_one ? "look at that rank: its data, its GPU, other programs on its machine"
                          : "even work per step: batches of like sizes (bucketing by shape), the same "
                            "number of workers everywhere",
         .note = is_one ? "" : "images or sequences of different shapes make a different rank last each time"});
    finding.look_alikes_excluded.emplace_back("a slow network (the operation itself is shorter than the wait)");
    if (!late) finding.limits.emplace_back("which rank is last: the timeline has no marks of ranks");
    out.add(std::move(finding));
    return {};
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_negotiation_wait{
    .id = "NegotiationWait",
    .title = "Ranks come to Horovod's collectives at different times",
    .why =
        "Compares how long tensors are negotiated with how long their operation takes, and counts which rank announced "
        "them last.",
    .advice = "Where to look: one rank, or uneven work.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
