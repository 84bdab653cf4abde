// A log says nothing for long between two steps, and nothing says why.
#include <array>

#include "rules/step_findings.h"
#include "rules/time_to_limit.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"log.silence"}};
constexpr std::array kParams{
    ParamDesc{.name = "silence",
              .type = ParamType::kDuration,
              .default_text = "10min",
              .min = 1e9,
              .max = 3.6e15,
              .unit = "ns",
              .help = "without a line, beyond what the steps usually take, from which on the rule speaks"},
};
constexpr double kRecurs = 3;

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const Fact* most = nullptr;
  for (const Fact* fact : facts.all("log.silence")) {
    if (most == nullptr || fact->number("longest_s").value_or(0) > most->number("longest_s").value_or(0)) most = fact;
  }
  if (most == nullptr) return {};
  const double longest_s = most->number("longest_s").value_or(0);
  if (longest_s * 1e9 < static_cast<double>(params.duration_ns("silence"))) return {};
  const double sum_s = most->number("sum_s").value_or(longest_s);
  const double count = most->number("count").value_or(1);
  Finding finding;
  finding.where = most->where;
  finding.cause = "The log says nothing for long";
  finding.loss = format("{} after step {}", time_words(longest_s), count_figure(most->number("step").value_or(0)));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kPossible;
  finding.claims = "silence";
  finding.lost_of = LostOf::kRun;
  finding.lost_s = sum_s;
  finding.evidence["longest_s"] = longest_s;
  finding.evidence["count"] = count;
  finding.why.push_back(
      format("the steps before and after it take as long as ever{}",
             count > 1 ? format("; {} times, {} together", count_figure(count), time_words(sum_s)) : ""));
  finding.advice.push_back(
      {.change = count >= kRecurs ? "print what begins there (an evaluation, a checkpoint, a download): the log "
                                    "does not say it"
                                  : "look into the machine's own log for that time: suspend, clock set, "
                                    "storage that did not answer",
       .note = {}});
  finding.limits.emplace_back(
      "whether the job stood still, the machine slept or the clock was set on: a log does not "
      "tell");
  out.add(std::move(finding));
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_log_silence{
    .id = "LogSilence",
    .title = "A log says nothing for long",
    .why =
        "Looks for stretches between two steps of ten minutes or more, a hundred times what these steps take, before "
        "which no line tells of an epoch's end, an evaluation or a checkpoint. They count for no step.",
    .advice = "Where to look for what happened.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
