// The control group's CPU quota is the limit: the job is stopped in most of its periods, whatever the machine has.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"core_use.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "throttled_pct",
              .default_text = "25",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "share of the quota's periods in which the job is stopped, from which on the rule speaks"},
};
constexpr double kMostlyPct = 75;  // of the periods, and of the quota: then it is the limit all the time

void judge(const Fact& cores, double quota, double throttled_pct, FindingSink& out) {
  const auto busy_pct = cores.number("busy_pct");
  const bool is_full = busy_pct && *busy_pct >= kMostlyPct;
  Finding finding;
  finding.where = cores.where;
  finding.cause = is_full ? "The CPU quota is the limit" : "The CPU quota stops the job in bursts";
  finding.loss = format("stopped in {} % of its periods", figure(throttled_pct));
  finding.severity = Severity::kWarning;
  finding.certainty = is_full && throttled_pct >= kMostlyPct ? Certainty::kCertain : Certainty::kLikely;
  finding.claims = "cpu_quota";
  finding.evidence["throttled_pct"] = throttled_pct;
  finding.evidence["quota_cores"] = quota;
  std::string why = format("a quota of {} cores", cores_figure(quota));
  if (const auto host = cores.number("host_cores"); host && *host > quota + 0.01)
    why += format(" on a machine of {}", cores_figure(*host));
  if (const auto busy = cores.number("busy_cores")) {
    finding.evidence["busy_cores"] = *busy;
    why += format(", {} in use", figure(*busy));
  }
  finding.why.push_back(std::move(why));
  finding.why.push_back(format("throttled in {} % of the periods of the quota", figure(throttled_pct)));
  finding.advice.push_back({.change = "a larger CPU limit of the container (docker --cpus, resources.limits.cpu)",
                            .note = "cores of the machine that are idle are of no use to it"});
  finding.advice.push_back(
      {.change = format("as many threads as the quota has cores: OMP_NUM_THREADS={}, as many loader workers",
                        std::max(1L, std::lround(std::floor(quota)))),
       .note = "libraries count the machine's cores; threads beyond the quota use it up early in each period"});
  if (is_full) finding.look_alikes_excluded.emplace_back("a quota that is not used up");
  finding.limits.emplace_back("how much faster more cores are");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* cores : facts.all("core_use.summary")) {
    const auto quota = cores->number("quota_cores");
    const auto throttled_pct = cores->number("throttled_pct");
    if (!quota || !throttled_pct || *throttled_pct < params.number("throttled_pct")) continue;
    judge(*cores, *quota, std::min(*throttled_pct, 100.0), out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_cpu_quota{
    .id = "CPUQuota",
    .title = "The control group's CPU quota is the limit",
    .why =
        "Counts the periods of the quota in which the job used it up and was stopped. A quota that is not used up does "
        "not count, and neither does what the machine has besides.",
    .advice = "A larger limit, or threads that fit it.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
