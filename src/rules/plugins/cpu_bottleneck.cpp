// The GPU is idle while a core is full: it waits for the CPU. Where the hook saw the step, the wait has a nearer cause.
#include <array>

#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.host"}, std::string_view{"gpu.use"}};
constexpr std::array kParams{
    percent_param("threshold", "50", "share of time from which on the rule speaks"),
    percent_param("gpu_threshold", "10", "use of the GPU below which it is idle"),
    percent_param("cpu_threshold", "90", "use of the hottest core above which it is full"),
    patience_param(),
};

void judge(const FactTable& facts, const Fact& host, const Fact& use, double share, FindingSink& out) {
  Finding finding = idle_finding(host, "GPU idle while a core is full", share);
  finding.distance = 2;
  if (const std::string words = host_words(facts, use); !words.empty()) finding.why.push_back(words);
  finding.why.push_back(format("seen over {} s, second by second", figure(host.number("seconds").value_or(0))));
  const Fact* thread = fact_for(facts, "core_use.thread", host.where);
  if (thread != nullptr && thread->number("busy_pct").value_or(0) >= 85) {
    finding.why.push_back(format("thread '{}' of {} fills {} % of a core", thread->text("thread").value_or("?"),
                                 thread->text("process").value_or("?"), figure(*thread->number("busy_pct"))));
  }
  finding.advice.push_back({.change = "move that work to loader workers or to the GPU",
                            .note = "which work it is is not known without steps: hotlap run -- python train.py"});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  if (const auto idle = idle_meeting(facts, params, "core_joint", "cpu_threshold"))
    judge(facts, *idle->host, *idle->use, idle->share_pct, out);
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_cpu_bottleneck{
    .id = "CPUBottleneck",
    .title = "The GPU is idle while a core is full",
    .why =
        "Counts the seconds of the typical steps in which a GPU of the job was idle and some core of the same machine "
        "full. It yields to a finding that says which part of the step waits.",
    .advice = "Where that work could go.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
