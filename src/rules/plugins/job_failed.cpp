// The job's log ends in an error, or says that it was started again. Never a healthy run.
#include <array>
#include <cmath>

#include "base/text.h"
#include "rules/end_of_job.h"
#include "rules/fact_number.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeedsOneOf{std::string_view{"log.failure"}, std::string_view{"log.restart"}};
constexpr std::array kParams{
    ParamDesc{.name = "lost_s",
              .default_text = "1",
              .min = 0,
              .max = 1e9,
              .unit = "s",
              .help = "that starting again has cost, from which on the rule speaks of it"},
};

struct Kind {
  std::string_view kind;
  std::string_view cause;
  std::string_view change;
};
constexpr std::array kKinds{
    Kind{"worker_killed", "The job died: a loader worker was killed, as the kernel does for want of memory",
         "fewer loader workers or less prefetched, or a higher memory limit"},
    Kind{"shared_memory", "The job died: a loader worker found no shared memory",
         "docker run --shm-size=8g (or --ipc=host), or torch.multiprocessing.set_sharing_strategy('file_system')"},
    Kind{"gpu", "The job died: the GPU or its program failed",
         "look at the kernel's log (dmesg, NVRM: Xid): its number says whether it was the program or the board"},
    Kind{"other", "The job's log ends in an error", "mend what it says; go on from the last checkpoint"},
};

// Errors that other rules read with their figures; such a message is told by them and not here.
std::string_view claims_of(const FactTable& facts, std::string_view text) {
  const auto says = [&](std::string_view word) { return text.empty() || text.find(word) != std::string_view::npos; };
  if (facts.find("log.out_of_memory") != nullptr && (says("out of memory") || says("OutOfMemory"))) return "gpu_memory";
  if (facts.find("log.collective") != nullptr && (says("NCCL") || says("DistBackend") || says("ollective")))
    return "hang";
  return kClaimsEnd;
}

Finding failed(const FactTable& facts, const Fact& failure, std::size_t ranks) {
  const std::string name = failure.text("kind").value_or("other");
  Kind kind = kKinds.back();
  for (const Kind& one : kKinds) {
    if (one.kind == name) kind = one;
  }
  Finding finding;
  finding.where = failure.where;
  finding.cause = kind.cause;
  finding.loss = "what was done since the last checkpoint is lost";
  finding.severity = Severity::kCritical;
  finding.certainty = Certainty::kCertain;
  finding.claims = claims_of(facts, failure.text("text").value_or(""));
  finding.distance = 1;
  if (const auto text = failure.text("text")) {
    finding.why.push_back(format("\"{}\"", *text));
    finding.evidence["text"] = *text;
  } else {
    finding.why.emplace_back("a traceback without a message");
  }
  if (ranks > 1) finding.why.push_back(format("{} ranks say so: others fail with the first", ranks));
  finding.evidence["kind"] = name;
  finding.advice.push_back({.change = std::string(kind.change)});
  return finding;
}

Finding restarted(const FactTable& facts, const Fact& restart) {
  const double lost_s = restart.number("lost_s").value_or(0);
  Finding finding;
  finding.where = restart.where;
  finding.cause = "The job failed and was started again";
  finding.lost_s = lost_s;
  finding.lost_of = LostOf::kRun;
  if (const auto total_s = number_in(facts.find("steps.summary"), "total_s"); total_s && *total_s > 0)
    finding.lost_pct = std::min(100 * lost_s / *total_s, 100.0);
  finding.loss = format("{} min lost", figure(lost_s / 60));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "restart";
  const auto steps = static_cast<std::uint64_t>(restart.number("steps").value_or(0));
  const double count = restart.number("count").value_or(1);
  finding.why.push_back(format("{} steps done anew{}", shown_count(steps),
                               count > 1 ? format(", in {} restarts", std::lround(count)) : std::string()));
  finding.evidence["steps"] = static_cast<double>(steps);
  finding.evidence["lost_s"] = lost_s;
  finding.advice.push_back({.change = "save a checkpoint more often",
                            .note = "worth it while it costs less than what a failure loses times how often it fails"});
  return finding;
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const std::vector<const Fact*> failures = facts.all("log.failure");
  if (!failures.empty()) out.add(failed(facts, *failures.front(), failures.size()));
  if (const Fact* restart = facts.find("log.restart");
      restart != nullptr && restart->number("lost_s").value_or(0) >= params.number("lost_s"))
    out.add(restarted(facts, *restart));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_job_failed{
    .id = "JobFailed",
    .title = "The job's log ends in an error, or the job was started again",
    .why =
        "Reads the last error of a log behind which no step comes, and steps that were done anew. Certain: it was "
        "told. "
        "What the kernel or the driver say of that moment comes first, since it is nearer to the cause.",
    .advice = "What to do about that kind of error.",
    .needs_one_of = kNeedsOneOf,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
