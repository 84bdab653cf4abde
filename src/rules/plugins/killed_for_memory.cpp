// The kernel killed a process for want of memory: which, how large it was, and which limit was full.
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/end_of_job.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"kernel.log"}};
constexpr std::array kParams{
    ParamDesc{.name = "kills",
              .default_text = "1",
              .min = 1,
              .max = 1e6,
              .unit = "{process}",
              .help = "processes killed from which on the rule speaks"},
};

// Processes of Python, and of those that run it under another name.
bool may_be_the_job(std::string_view process) {
  return process.starts_with("python") || process.starts_with("pt_") || process.starts_with("ray") ||
         process.starts_with("torchrun") || process.starts_with("train");
}

void judge(const FactTable& facts, const Fact& kill, FindingSink& out) {
  const AtEnd at = at_end(facts, machine_event(kill, "worker_killed"));
  const bool is_group = kill.text("by") == "group";
  const std::string name = kill.where.process.empty() ? "a process" : kill.where.process;
  Finding finding;
  finding.where = kill.where;
  finding.cause = format("The kernel killed {} for want of memory", name);
  finding.loss = at == AtEnd::kNo ? "what it did is lost" : "the job died of it";
  finding.severity = may_be_the_job(name) || at != AtEnd::kNo ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "host_memory";
  std::string why;
  if (const auto rss = kill.number("rss_bytes")) why = format("it held {}", format_bytes(*rss));
  if (const auto pid = kill.number("pid")) why += format("{}process {}", why.empty() ? "" : ", ", std::lround(*pid));
  if (!why.empty()) finding.why.push_back(why);
  if (const std::string when = when_words(kill); !when.empty()) finding.why.push_back(when);
  if (is_group) {
    const auto limit = kill.number("limit_bytes");
    finding.why.push_back(format("its control group was full{}{}", limit ? " at " + format_bytes(*limit) : "",
                                 kill.text("group") ? " (" + *kill.text("group") + ")" : ""));
    finding.look_alikes_excluded.emplace_back("a full machine (the limit of a container or a batch job was it)");
  } else if (kill.text("by") == "host") {
    finding.why.emplace_back("the machine itself was full");
    finding.look_alikes_excluded.emplace_back("the limit of a container");
  }
  const double count = kill.number("count").value_or(1);
  if (count > 1) finding.why.push_back(format("{} processes of this name were", std::lround(count)));
  tie_to_end(at, finding);
  finding.evidence["count"] = count;
  for (const std::string_view field : {"rss_bytes", "limit_bytes", "pid"}) {
    if (const auto value = kill.number(field)) finding.evidence[std::string(field)] = *value;
  }
  finding.advice.push_back(
      {.change = is_group ? "a higher limit (--memory, --mem), or fewer loader workers and less prefetched"
                          : "fewer loader workers and less prefetched, or a machine with more memory",
       .note = "where memory grew all the time it is a leak: record the run to see"});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* kill : facts.all("kernel.kill")) {
    if (kill->number("count").value_or(0) >= params.number("kills")) judge(facts, *kill, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_killed_for_memory{
    .id = "KilledForMemory",
    .title = "The kernel killed a process for want of memory",
    .why =
        "Reads the kernel's log: which process, how much it held, and whether its control group or the machine was "
        "full. Certain: it was told. Where a job's log ends at that time, or names the process, it is what ended the "
        "job.",
    .advice = "A higher limit, or less memory taken.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
