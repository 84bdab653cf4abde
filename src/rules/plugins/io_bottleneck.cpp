// The GPU is idle while cores wait for I/O. Where the hook saw the step, the wait has a nearer cause.
#include <array>

#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"gpu.host"}, std::string_view{"gpu.use"}};
constexpr std::array kParams{
    percent_param("threshold", "50", "share of time from which on the rule speaks"),
    percent_param("gpu_threshold", "10", "use of the GPU below which it is idle"),
    percent_param("io_threshold", "50", "I/O wait of a core above which it waits"),
    patience_param(),
};

void judge(const FactTable& facts, const Fact& host, const Fact& use, double share, FindingSink& out) {
  Finding finding = idle_finding(host, "GPU idle while cores wait for I/O", share);
  finding.distance = 1;
  if (const std::string words = host_words(facts, use); !words.empty()) finding.why.push_back(words);
  finding.why.push_back(format("seen over {} s, second by second", figure(host.number("seconds").value_or(0))));
  const double read = host.number("idle_read_bytes_per_s").value_or(0);
  const double written = host.number("idle_write_bytes_per_s").value_or(0);
  finding.advice.push_back({.change = written > read
                                          ? "save more rarely, asynchronously, or to a faster disk"
                                          : "keep the data on a faster disk or in memory, in fewer, larger files",
                            .note = "its speed is not measured"});
  if (host.number("idle_iowait_cores").value_or(0) < 0.05)
    finding.limits.emplace_back("what waits: a kernel may count idle time as I/O wait");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  if (const auto idle = idle_meeting(facts, params, "iowait_joint", "io_threshold"))
    judge(facts, *idle->host, *idle->use, idle->share_pct, out);
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_io_bottleneck{
    .id = "IOBottleneck",
    .title = "The GPU is idle while cores wait for I/O",
    .why =
        "Counts the seconds of the typical steps in which a GPU of the job was idle and some core of the same machine "
        "waited for I/O. It yields to a finding that says which part of the step waits.",
    .advice = "Faster storage, or rarer saving.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
