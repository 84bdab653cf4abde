// The job takes very long to get to its first step.
#include <array>

#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"start_up.summary"}};
constexpr std::array kParams{
    ParamDesc{.name = "threshold",
              .default_text = "20",
              .min = 0.01,
              .max = 1e5,
              .unit = "min",
              .help = "time up to the first step from which on the rule speaks"},
};

constexpr double kSecondsPerMinute = 60;

void judge(const Fact& start, double before_s, FindingSink& out) {
  const bool has_step = start.number("has_step") == 1;
  Finding finding;
  finding.where = start.where;
  finding.cause = has_step ? "The first step came late" : "No step yet";
  finding.loss = format("{} min of starting up", figure(before_s / kSecondsPerMinute));
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "start_up";
  finding.distance = 1;
  finding.lost_s = before_s;
  finding.evidence["before_step_s"] = before_s;
  if (const auto received = start.number("received_bytes"); received && *received >= 1e8) {
    finding.why.push_back(format("{} MB received meanwhile, for {} s", figure(*received / 1e6),
                                 figure(start.number("receive_s").value_or(0))));
  }
  if (const auto read = start.number("read_bytes"); read && *read >= 1e8)
    finding.why.push_back(format("{} MB read from disks", figure(*read / 1e6)));
  if (const auto cores = start.number("busy_cores"))
    finding.why.push_back(format("{} cores busy", cores_figure(*cores)));
  if (finding.why.empty()) finding.why.emplace_back("what it did meanwhile was not recorded");
  finding.advice.push_back({.change = "stream the data (FastFile, Pipe, webdataset), store the dataset's index, cache "
                                      "compiled code",
                            .note = "what it did meanwhile was seen from outside only"});
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* start : facts.all("start_up.summary")) {
    const double before_s = start->number("before_step_s").value_or(0);
    // Where the hook never saw a step it is not known that there was none.
    if (start->number("has_step") != 1 && facts.find("phases.summary") == nullptr) continue;
    if (before_s > params.number("threshold") * kSecondsPerMinute) judge(*start, before_s, out);
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_max_initialization_time{
    .id = "MaxInitializationTime",
    .title = "The first step comes very late",
    .why = "Measures from the job's start to its first step; while there is none, up to now.",
    .advice = "What shortens starting up.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
