// A server of files did not answer: whoever read from it stood still meanwhile.
#include <array>
#include <cmath>

#include "rules/end_of_job.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"kernel.log"}};
constexpr std::array kParams{
    ParamDesc{.name = "stuck_s",
              .default_text = "10",
              .min = 0,
              .max = 1e6,
              .unit = "s",
              .help = "time without an answer, all together, from which on the rule speaks"},
};

// Share of the time from the first step to the last.
std::optional<double> share_of_run(const FactTable& facts, double lost_s) {
  const Fact* steps = facts.find("steps.summary");
  const auto total_s = steps == nullptr ? std::nullopt : steps->number("total_s");
  return total_s && *total_s > 0 ? std::optional(std::min(100 * lost_s / *total_s, 100.0)) : std::nullopt;
}

void judge(const FactTable& facts, const Fact& mount, FindingSink& out) {
  const double stuck_s = mount.number("stuck_s").value_or(0);
  const bool is_open = mount.number("open") == 1;
  const auto step_s = mount.number("step_s");
  const double count = mount.number("count").value_or(0);
  Finding finding;
  finding.where.node = mount.where.node;
  finding.where.device = mount.text("server").value_or("");
  finding.cause = format("{} server {} did not answer", mount.text("kind").value_or("a file"), finding.where.device);
  finding.loss = is_open ? std::string("it had not come back when the log ends")
                         : format("for {} s{}", figure(stuck_s), step_s ? "; training stood still" : "");
  finding.severity = is_open || step_s ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "mount";
  finding.why.push_back(format("{}, {} s till it was back", counted(count, "time", "times"), figure(stuck_s)));
  if (is_open) finding.why.back() = format("{}, the last without an end", counted(count, "time", "times"));
  if (const std::string when = when_words(mount); !when.empty()) finding.why.push_back("first " + when);
  if (step_s) {
    finding.lost_s = *step_s;
    finding.lost_of = LostOf::kRun;
    finding.lost_pct = share_of_run(facts, *step_s);
    finding.why.push_back(format("steps that fell into it took {} s longer", figure(*step_s)));
    // The slow steps are these.
    const Fact* slow = facts.find("slow_steps.summary");
    if (slow != nullptr && 2 * *step_s >= slow->number("lost_s").value_or(0)) finding.claims = "other";
    finding.distance = -2;
  }
  if (const auto hung = mount.number("hung"))
    finding.why.push_back(format("the kernel saw {} wait for minutes", counted(*hung, "process", "processes")));
  if (is_open) tie_to_end(at_end(facts, machine_event(mount, "")), finding);
  finding.evidence["count"] = count;
  finding.evidence["stuck_s"] = stuck_s;
  finding.advice.push_back({.change = "copy what training reads to a local disk, and save checkpoints there first",
                            .note = "why the server did not answer is in its own log"});
  finding.look_alikes_excluded.emplace_back("a slow loader");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* mount : facts.all("kernel.mount")) {
    const bool is_long = mount->number("stuck_s").value_or(0) >= params.number("stuck_s");
    if (is_long || mount->number("open") == 1) judge(facts, *mount, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_mount_stuck{
    .id = "MountStuck",
    .title = "A server of files did not answer",
    .why =
        "Reads the kernel's log: from the first \"not responding\" of a server to its \"OK\". Certain: it was told. "
        "Steps of the job that fell into that time say what it cost.",
    .advice = "A copy on a local disk.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
