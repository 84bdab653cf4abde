// Others on the same hardware take time from this machine, and steps are slower while they do.
#include <algorithm>
#include <array>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"neighbours.summary"}};
constexpr std::array kParams{
    ParamDesc{
        .name = "steal_pct",
        .default_text = "5",
        .min = 0.1,
        .max = 100,
        .unit = "%",
        .help = "share of the cores' time given to others by the hypervisor, mean, from which on the rule speaks"},
    ParamDesc{.name = "outside_pct",
              .default_text = "20",
              .min = 1,
              .max = 100,
              .unit = "%",
              .help = "share of time in which other programs take a quarter of the cores, from which on it speaks"},
    ParamDesc{.name = "slowdown_pct",
              .default_text = "5",
              .min = 0.1,
              .max = 1000,
              .unit = "%",
              .help = "so much longer steps must be meanwhile, for other programs to count"},
    ParamDesc{.name = "wait_pct",
              .default_text = "10",
              .min = 0.1,
              .max = 100,
              .unit = "%",
              .help = "share of the steps in which training could not run for want of a core, for other programs to "
                      "count that are there all the time"},
};

constexpr double kWindowMinS = 10;        // a moment of steal is none to speak of
constexpr double kOvercommittedPct = 10;  // of steal, for long: the host has given away more than it has

Finding finding_of(const FactTable& facts, const Fact& around, std::optional<double> slowdown, double share_pct) {
  Finding finding;
  finding.where = around.where;
  finding.severity = Severity::kWarning;
  finding.certainty = slowdown ? Certainty::kCertain : Certainty::kLikely;
  finding.claims = kClaimsNeighbour;
  const Fact* steps = fact_for(facts, "steps.summary", around.where);
  if (slowdown && *slowdown > 0 && steps != nullptr) {
    // Of the time in which they are there, the part by which it is longer.
    const double lost = share_pct * *slowdown / (100 + *slowdown);
    if (lost >= 3) set_step_loss(*steps, lost, finding);
    finding.why.push_back(format("steps take {} % longer in that time than otherwise", figure(*slowdown)));
    finding.evidence["slowdown_pct"] = *slowdown;
  }
  return finding;
}

void by_hypervisor(const FactTable& facts, const Fact& around, double steal, FindingSink& out) {
  const double high = around.number("steal_high_pct").value_or(0);
  Finding finding = finding_of(facts, around, around.number("steal_slowdown_pct"), high);
  finding.cause = "The hypervisor gives this machine's cores to others";
  finding.loss = format("{} % of their time", figure(steal));
  if (steal >= kOvercommittedPct) finding.severity = Severity::kCritical;
  finding.evidence["steal_pct"] = steal;
  finding.why.insert(finding.why.begin(),
                     format("steal is {} %, at 10 % or more in {} % of the time, for up to {} s", figure(steal),
                            figure(high), figure(around.number("steal_longest_s").value_or(0))));
  finding.advice.push_back({.change = "another host (stop and start the instance), or a type with cores of its own",
                            .note = "burstable types run out of credits: it looks the same"});
  finding.look_alikes_excluded.emplace_back("own load (steal is not use)");
  out.add(std::move(finding));
}

// `taken_pct`: of the steps, in which training waited for a core that they had.
void by_programs(const FactTable& facts, const Fact& around, std::optional<double> taken_pct, FindingSink& out) {
  const double share = around.number("outside_high_pct").value_or(0);
  Finding finding = finding_of(facts, around, around.number("outside_slowdown_pct"), share);
  finding.cause = "Other programs take cores from the job";
  finding.loss = format("in {} % of the time", figure(share));
  if (const Fact* steps = fact_for(facts, "steps.summary", around.where); taken_pct && steps != nullptr) {
    finding.loss = format("{} % of each step", figure(*taken_pct));
    set_step_loss(*steps, *taken_pct, finding);
    finding.severity = *taken_pct >= kCriticalShare ? Severity::kCritical : Severity::kWarning;
    finding.evidence["taken_pct"] = *taken_pct;
    finding.why.push_back(format("training could run but had no core in {} % of the time", figure(*taken_pct)));
  }
  finding.evidence["outside_cores"] = around.number("outside_cores").value_or(0);
  finding.why.insert(finding.why.begin(), format("{} of {} cores busy with others, mean",
                                                 cores_figure(around.number("outside_cores").value_or(0)),
                                                 cores_figure(around.number("usable_cores").value_or(0))));
  finding.advice.push_back(
      {.change = "cores of its own (taskset, a cgroup), or run it when they are done", .note = {}});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* around : facts.all("neighbours.summary")) {
    if (around->number("window_s").value_or(kWindowMinS) < kWindowMinS && around->number("steps_only") != 1) continue;
    if (const auto steal = around->number("steal_pct"); steal && *steal >= params.number("steal_pct")) {
      by_hypervisor(facts, *around, *steal, out);
      continue;
    }
    if (around->number("outside_high_pct").value_or(0) < params.number("outside_pct")) continue;
    // Where training waits for data the loader's finding speaks of them.
    const Fact* parts = fact_for(facts, "breakdown.parts", around->where);
    if (parts != nullptr && parts->number("data_wait").value_or(0) >= 10) continue;
    const auto slowdown = around->number("outside_slowdown_pct");
    if (slowdown.value_or(0) >= params.number("slowdown_pct")) by_programs(facts, *around, std::nullopt, out);
    if (slowdown) continue;
    // They were there all the time: no step shows how long it takes without them, but the kernel counts the waiting.
    const Fact* steps = fact_for(facts, "steps.summary", around->where);
    const auto taken = steps == nullptr ? std::nullopt : taken_by_others_pct(facts, *steps);
    if (taken.value_or(0) >= params.number("wait_pct")) by_programs(facts, *around, taken, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_noisy_neighbour{.id = "NoisyNeighbour",
                                                     .title = "Others take time from this machine",
                                                     .why =
                                                         "Looks at steal, and at cores that other programs take, and "
                                                         "compares the length of steps while they do with that "
                                                         "of the others. Certain when steps were seen in both.",
                                                     .advice = "Another place or another time.",
                                                     .needs = kNeeds,
                                                     .params = kParams,
                                                     .evaluate = evaluate};

}  // namespace hotlap
