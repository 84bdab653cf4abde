// A program died of a fault of its own: in which library.
#include <array>
#include <cmath>

#include "rules/end_of_job.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"kernel.log"}};
constexpr std::array kParams{
    ParamDesc{.name = "crashes",
              .default_text = "1",
              .min = 1,
              .max = 1e6,
              .unit = "{process}",
              .help = "crashes of programs of one name from which on the rule speaks"},
};

std::string_view fault_words(std::string_view fault) {
  if (fault == "instruction") return "an instruction that this CPU does not have";
  if (fault == "division") return "a division by zero";
  if (fault == "protection") return "a forbidden access to memory";
  return "an access to memory that is not its own (segmentation fault)";
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  for (const Fact* crash : facts.all("kernel.crash")) {
    const double count = crash->number("count").value_or(0);
    if (count < params.number("crashes")) continue;
    const AtEnd at = at_end(facts, machine_event(*crash, "other"));
    const std::string fault = crash->text("fault").value_or("");
    const bool is_python = crash->where.process.starts_with("python") || crash->where.process.starts_with("pt_");
    Finding finding;
    finding.where = crash->where;
    finding.cause = format("{} crashed: {}", crash->where.process, fault_words(fault));
    finding.loss = at == AtEnd::kNo ? "what it did is lost" : "the job died of it";
    finding.severity = is_python || at != AtEnd::kNo ? Severity::kCritical : Severity::kInfo;
    finding.certainty = Certainty::kCertain;
    finding.claims = "crash";
    const auto module = crash->text("module");
    if (module) finding.why.push_back("in " + *module);
    if (const auto pid = crash->number("pid")) finding.why.push_back(format("process {}", std::lround(*pid)));
    if (const std::string when = when_words(*crash); !when.empty()) finding.why.push_back(when);
    if (count > 1) finding.why.push_back(format("{} processes of this name did", std::lround(count)));
    tie_to_end(at, finding);
    finding.evidence["count"] = count;
    if (module) finding.evidence["module"] = *module;
    finding.advice.push_back(
        {.change = fault == "instruction" ? "a build of that library for this CPU"
                                          : "run again with python -X faulthandler: it prints where in Python it was",
         .note = fault == "instruction" ? "" : "libraries built against another version are the usual cause"});
    finding.look_alikes_excluded.emplace_back("a kill for want of memory");
    out.add(std::move(finding));
  }
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_process_crashed{
    .id = "ProcessCrashed",
    .title = "A program died of a fault of its own",
    .why =
        "Reads the kernel's log: which program, which fault, in which library. Certain: it was told. Where a job's log "
        "ends at that time, or names the process, it is what ended the job.",
    .advice = "How to find the place.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
