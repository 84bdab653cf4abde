// Steps that are mostly communication between ranks, by what the hook, a log or a table says of their parts.
#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/link_ceiling.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"breakdown.parts"}, std::string_view{"steps.summary"}};
constexpr std::array kParams{
    share_param("20",
                "of a typical step, in communication with other ranks, from which on the rule speaks; of several ranks "
                "what the one that waits least has of it"),
    steps_min_param("typical steps that must have been seen"),
};
constexpr double kIdleLinkPct = 20;

// Of the ranks' shares the least: what the others have beyond it is waiting for the one that comes last.
struct Least {
  const Fact* parts = nullptr;
  double share_pct = 0;
  int ranks = 0;
};

Least least_share(const FactTable& facts) {
  Least least;
  for (const Fact* parts : facts.all("breakdown.parts")) {
    const auto share = parts->number("communication");
    if (!share) continue;
    ++least.ranks;
    if (least.parts != nullptr && *share >= least.share_pct) continue;
    least.parts = parts;
    least.share_pct = *share;
  }
  return least;
}

// A trace of the device tells more; its rule speaks.
bool has_device_times(const FactTable& facts) {
  return std::ranges::any_of(facts.all("device.time"),
                             [](const Fact* one) { return one->number("exposed_communication_ms").has_value(); });
}

// "eth0 20 MB/s, 1.6 % of its link": nothing where the link's speed is not known.
std::optional<std::string> idle_link_words(const FactTable& facts, const Where& where) {
  for (const Fact* network : facts.all("ceilings.network")) {
    const auto link = network->number("link_bytes_per_s");
    if (!link || *link <= 0 || !same_place(network->where, {.node = where.node})) continue;
    const double rate = std::max(network->number("receive_p95_bytes_per_s").value_or(0),
                                 network->number("transmit_p95_bytes_per_s").value_or(0));
    const double pct = 100 * rate / *link;
    if (rate <= 0 || pct > kIdleLinkPct) continue;
    return format("{} carries {} MB/s, {} % of what its link gives", network->where.device, figure(rate / 1e6),
                  figure(pct));
  }
  return std::nullopt;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const Least least = least_share(facts);
  if (least.parts == nullptr || least.share_pct < params.number("share_pct") || has_device_times(facts)) return {};
  const Fact* steps = fact_for(facts, "steps.summary", least.parts->where);
  if (steps == nullptr || steps->number("steady_count").value_or(0) < steps_needed(*steps, params)) return {};
  Finding finding = share_finding(least.parts->where, {.cause = "Steps wait for communication between ranks",
                                                       .loss = format("{} % of each step", figure(least.share_pct)),
                                                       .claims = "communication",
                                                       .share_pct = least.share_pct});
  set_step_loss(*steps, least.share_pct, finding);
  if (least.ranks < 2) finding.certainty = Certainty::kLikely;
  finding.distance = 1;  // rules that know the link, or the rank that comes late, are nearer
  if (const auto mean = steps->number("mean_ms")) {
    finding.why.push_back(format("{} of {} ms are collectives", figure(*mean * least.share_pct / 100), figure(*mean)));
    finding.evidence["communication_ms"] = *mean * least.share_pct / 100;
  }
  if (least.ranks > 1) {
    finding.why.push_back(format("of {} ranks none spends less in them", least.ranks));
    finding.look_alikes_excluded.emplace_back("a rank that comes late (it would hardly wait itself)");
  } else {
    finding.limits.emplace_back("whether a rank comes late: one rank's steps do not tell");
  }
  const auto idle = idle_link_words(facts, least.parts->where);
  if (idle) finding.why.push_back(*idle);
  finding.advice.push_back(
      {.change = idle ? "fewer, larger collectives: larger buckets (DDP bucket_cap_mb), gradient accumulation, no "
                        "collectives for metrics in each step"
                      : "send fewer bytes (gradient accumulation, bf16 or compressed gradients), and overlap them with "
                        "backward (DDP buckets, FSDP prefetch)",
       .note = idle ? "the link is hardly used: it is latency, not bandwidth" : ""});
  finding.advice.push_back(
      {.change = "hotlap run --profile on one rank shows which collectives nothing hides", .note = {}});
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_communication_bound{
    .id = "CommunicationBound",
    .title = "Steps wait for communication between ranks",
    .why =
        "Looks at the share of communication in a typical step, of the rank that has least of it: what others have "
        "beyond that is waiting for it. Likely where one rank alone is known. Silent where a trace of the device tells "
        "what nothing hides.",
    .advice = "Fewer bytes, or fewer and larger collectives; overlap.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
